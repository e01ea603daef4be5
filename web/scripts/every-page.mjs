// Takes screenshots of every page of a running demo at three widths: `node scripts/every-page.mjs DEMO.json FOLDER`. DEMO.json
// is the output of `rollcall demo --json`. THEME=dark and LOCALE=zh-CN in the environment select theme and language. Prints
// the height of each page and elements that overflow it.
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "@playwright/test";

const [demoFile, folder] = process.argv.slice(2);
if (!demoFile || !folder) {
  console.error("usage: every-page.mjs DEMO.json FOLDER");
  process.exit(2);
}
const demo = JSON.parse(await readFile(demoFile, "utf8"));
// The pages may come from `npm run dev`.
const site = process.env.SITE ?? demo.site;
const here = (url) => url.replace(demo.site, site);
const ask = async (path) => (await fetch(`${demo.site}${path}`, { headers: { "x-api-key": demo.key } })).json();

const torrent = (await ask("/api/v1/swarms?sort=leechers&limit=1")).items[0].torrent.id;
const accounts = (await ask(`/api/v1/torrents/${torrent}/accounts?limit=50`)).items;
const user = accounts.sort((one, other) => Number(other.figures.uploaded) - Number(one.figures.uploaded))[0].user;
const ROUTES = [
  "/", "/swarms", `/swarms/${torrent}`, "/users", `/users/${user}`,
  ...["torrents", "hit-and-run", "risks", "why", `why&torrent=${torrent}`].map((tab) => `/users/${user}?tab=${tab}`),
  `/users/${demo.member_id}?tab=presence`,
  "/presence", "/pipeline", ...["users", "torrents", "clients", "ports", "multipliers", "keys"].map((tab) => `/access/${tab}`), "/audit",
];
const only = process.env.ONLY ? new RegExp(process.env.ONLY) : /./;

/** Elements beyond the right edge, outside of scrolling frames. */
function tooWide() {
  const scrolls = (element) => element && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
  const found = [...document.querySelectorAll("main *, header *")].filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > window.innerWidth + 1 && !scrolls(element.parentElement));
  return found.slice(0, 5).map((element) => `${element.tagName.toLowerCase()}.${element.className}`);
}

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
const theme = { colorScheme: process.env.THEME === "dark" ? "dark" : "light", locale: process.env.LOCALE ?? "en-GB" };

async function take(page, width, name) {
  await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".loading"), null, { timeout: 60_000 });
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(folder, String(width), `${name}.png`), animations: "disabled", fullPage: true });
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  console.log(`${width} ${name}: ${height} px tall ${(await page.evaluate(tooWide)).join(" ")}`);
}

for (const width of (process.env.WIDTHS ?? "390 1024 1440").split(" ").map(Number)) {
  await mkdir(join(folder, String(width)), { recursive: true });
  const page = await (await browser.newContext({ ...theme, viewport: { width, height: 844 }, timezoneId: "UTC" })).newPage();
  if (only.test("sign-in")) {
    await page.goto(`${site}/`);
    await take(page, width, "sign-in");
  }
  await page.goto(here(demo.sign_in));
  await page.locator(".connection-live").waitFor({ timeout: 60_000 });
  for (const route of ROUTES.filter((one) => only.test(one))) {
    await page.goto(`${site}/#${route}`);
    await take(page, width, route.replace(/\d+/g, "N").replace(/[^a-zA-Z]+/g, "-").replace(/^-|-$/g, "") || "overview");
  }
  if (only.test("member")) {
    await page.goto(here(demo.member));
    await take(page, width, "member");
  }
  await page.context().close();
}
await browser.close();
