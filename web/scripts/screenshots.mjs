// Takes the screenshots of the README from a running demo: `node scripts/screenshots.mjs DEMO.json FOLDER`. DEMO.json is the
// output of `rollcall demo --json`. `make screenshots` runs both.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "@playwright/test";

const [demoFile, folder] = process.argv.slice(2);
if (!demoFile || !folder) {
  console.error("usage: screenshots.mjs DEMO.json FOLDER");
  process.exit(2);
}
const demo = JSON.parse(await readFile(demoFile, "utf8"));
const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });

async function ask(path) {
  const response = await fetch(`${demo.site}${path}`, { headers: { "x-api-key": demo.key } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function signedIn({ locale = "en-GB", colorScheme = "light", viewport = WIDE, ...rest } = {}) {
  const context = await browser.newContext({ locale, colorScheme, viewport, timezoneId: "UTC", ...rest });
  const page = await context.newPage();
  await page.goto(demo.sign_in);
  await page.locator(".connection-live").waitFor({ timeout: 60_000 });
  return page;
}

/** Waits until the page has loaded. */
async function take(page, name, options = {}) {
  await page.waitForFunction(() => document.querySelector("main h1, main.member h1") && !document.querySelector(".loading"), null, { timeout: 60_000 });
  await page.evaluate(() => (document.activeElement instanceof HTMLElement ? document.activeElement.blur() : undefined));
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled", ...options });
  console.log(`${name}.png`);
}

async function takeAt(page, route, name, options) {
  await page.goto(`${demo.site}/#${route}`);
  await take(page, name, options);
}

// A user with upload and download on several torrents.
async function interestingUser() {
  const { items } = await ask(`/api/v1/torrents/${await busyTorrent()}/accounts?limit=50`);
  const score = ({ figures }) => Math.min(Number(figures.uploaded), Number(figures.downloaded));
  return items.sort((one, other) => score(other) - score(one))[0].user;
}

async function busyTorrent() {
  const { items } = await ask("/api/v1/swarms?sort=leechers&limit=5");
  return items[0].torrent.id;
}

const page = await signedIn();
await takeAt(page, "/", "overview");
await takeAt(page, "/swarms", "swarms");
await takeAt(page, `/swarms/${await busyTorrent()}`, "torrent");
await page.goto(`${demo.site}/#/users/${await interestingUser()}?tab=why`);
await page.getByRole("heading", { name: "Entries" }).waitFor();
// All entries of the journal.
const further = page.getByRole("button", { name: /Load more|Look further back/ });
for (let times = 0; times < 20 && (await further.isVisible()); times += 1) {
  await further.click();
  await page.waitForFunction(() => !document.querySelector("main .spinner"), null, { timeout: 60_000 });
}
await page.getByRole("heading", { level: 1 }).scrollIntoViewIfNeeded();
await take(page, "user-why");
await takeAt(page, "/presence", "presence");
await takeAt(page, "/pipeline", "pipeline");
await page.goto(demo.member);
await page.getByRole("heading", { name: "My ratio" }).waitFor();
await take(page, "member");

await takeAt(await signedIn({ colorScheme: "dark" }), "/", "overview-dark");
await takeAt(await signedIn({ locale: "zh-CN" }), "/", "overview.zh-CN");
await takeAt(await signedIn({ viewport: PHONE, isMobile: true, hasTouch: true, deviceScaleFactor: 1.5 }), "/", "phone");
await browser.close();
