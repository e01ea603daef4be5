// Times the dashboard with much data: `node scripts/scale.mjs PROGRAM`, or `make scale`.
//
// Runs a demo with 100,000 torrents, 20,000 peers and 50,000 users. Most users send HTTP heartbeats, because many machines
// limit a process to 20,000 files; the pages show them like connected ones. Then every page is opened in Chromium for a while.
// Measured for each: time to the first row, longest unresponsive time, and API latency as the page sees it, including the
// wait for a free connection.
//
// environment: SCALE_TORRENTS, SCALE_PEERS, SCALE_PEOPLE, CHROMIUM
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { chromium } from "@playwright/test";

const program = process.argv[2];
if (!program) {
  console.error("usage: scale.mjs PROGRAM");
  process.exit(2);
}
const TORRENTS = Number(process.env.SCALE_TORRENTS ?? 100_000);
const PEERS = Number(process.env.SCALE_PEERS ?? 20_000);
const PEOPLE = Number(process.env.SCALE_PEOPLE ?? 50_000);
/** Users with connections, which connect and disconnect. */
const CONNECTED = Math.min(500, PEOPLE);
const FIRST_PERSON = 1_000_000;
const LOOK_MS = 8_000;
/** Concurrent heartbeats. */
const LANES = 64;
/** Time limit for peers to announce, and the share of them that is active at any time. */
const PEERS_WAIT_MS = 180_000;
const PEERS_PART = 0.8;
/** Noticeable delays. */
const SLOW_API_MS = 300;
const SLOW_PAGE_MS = 200;
const SECRET = "a secret of the scale check, 32 characters and more";

/** Returns the output of the demo. */
async function startDemo() {
  const settings = [
    `gateway.token_hmac_secret=${SECRET}`,
    "site.requests_per_address_per_s=0",
    // Clients of a tracker of this size announce every half hour. At the pace of a small demo, announces would dominate.
    "tracker.announce_interval_s=300",
    "tracker.min_announce_interval_s=60",
    // One heartbeat keeps a user online for the whole run.
    "presence.background_away_s=86400",
    "presence.background_gone_s=86400",
  ];
  const size = ["--torrents", TORRENTS, "--peers", PEERS, "--members", CONNECTED].map(String);
  const args = ["demo", "--json", "--port", "0", "--tracker-port", "0", ...size, ...settings.flatMap((one) => ["--set", one])];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const bytes of child.stdout) {
    said += bytes;
    try {
      return { child, demo: JSON.parse(said) };
    } catch {
      // Incomplete output.
    }
  }
  throw new Error("the demo ended before it began");
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const TOKEN_HEAD = encode({ alg: "HS256", typ: "JWT" });

function tokenOf(user) {
  const now = Math.floor(Date.now() / 1000);
  const said = `${TOKEN_HEAD}.${encode({ sub: String(user), iat: now, exp: now + 3600 })}`;
  return `${said}.${createHmac("sha256", SECRET).update(said).digest("base64url")}`;
}

function beat(site, agent, user) {
  const body = JSON.stringify({
    device: "scale",
    platform: ["phone", "computer", "web"][user % 3],
    app_state: "background",
    status: ["online", "away", "busy"][user % 7 === 0 ? 2 : user % 5 === 0 ? 1 : 0],
  });
  const headers = { authorization: `Bearer ${tokenOf(user)}`, "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const asked = request(`${site}/api/v1/presence/heartbeat`, { method: "POST", agent, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`heartbeat: ${answer.statusCode}`))));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

async function connectUsers(site) {
  const began = Date.now();
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  let next = 0;
  const lane = async () => {
    while (next < PEOPLE - CONNECTED) {
      next += 1;
      if (next % 5000 === 0) console.error(`users: ${next}`);
      await beat(site, agent, FIRST_PERSON + next);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  agent.destroy();
  console.error(`users: all, after ${Math.round((Date.now() - began) / 1000)} s`);
}

async function waitForPeers(ask) {
  const until = Date.now() + PEERS_WAIT_MS;
  while (Date.now() < until) {
    const { tracker } = await ask("/api/v1/overview");
    if (Number(tracker.peers) >= PEERS * PEERS_PART) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  console.error("peers: not all have announced");
}

/** Runs in the page: records unresponsive times and API requests. */
function watchPage() {
  window.longest = 0;
  window.asked = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
  }).observe({ type: "longtask" });
  new PerformanceObserver((list) => {
    for (const { name, duration } of list.getEntries()) {
      const { pathname } = new URL(name);
      if (pathname.startsWith("/api/v1/")) window.asked.push({ path: pathname, ms: duration });
    }
  }).observe({ type: "resource" });
}

/** Opens a route and observes it for a while. */
async function observe(page, [route, row]) {
  const from = await page.evaluate((hash) => {
    // Rows of the previous page must not count.
    for (const old of document.querySelectorAll("main tbody tr, main .stat")) old.dataset.old = "yes";
    window.longest = 0;
    window.asked = [];
    location.hash = hash;
    return performance.now();
  }, route);
  const hasRows = (rows) => document.querySelector(`:is(${rows}):not([data-old])`) || (window.asked.length > 0 && document.querySelector(rows));
  await page.waitForFunction(hasRows, row, { timeout: 120_000 });
  const firstRowMs = (await page.evaluate(() => performance.now())) - from;
  await page.waitForTimeout(LOOK_MS);
  const { longest, asked } = await page.evaluate(() => ({ longest: window.longest, asked: window.asked }));
  const slowest = asked.reduce((worst, one) => (one.ms > worst.ms ? one : worst), { path: "–", ms: 0 });
  return { route, firstRowMs, longest, slowest };
}

const { child, demo } = await startDemo();
try {
  const ask = async (path) => (await fetch(`${demo.site}${path}`, { headers: { "x-api-key": demo.key } })).json();
  await connectUsers(demo.site);
  await waitForPeers(ask);
  const { torrent } = (await ask("/api/v1/swarms?sort=leechers&limit=1")).items[0];
  const { presence, tracker } = await ask("/api/v1/overview");
  console.log(`online: ${presence.online}, torrents: ${TORRENTS}, peers: ${tracker.peers}\n`);

  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB" })).newPage();
  await page.addInitScript(watchPage);
  await page.goto(demo.sign_in);
  await page.locator("main h1").waitFor();
  const routes = [
    ["/swarms", "main tbody tr"],
    ["/swarms?sort=added&order=asc", "main tbody tr"],
    ["/swarms?search=the", "main tbody tr"],
    [`/swarms/${torrent.id}`, "main tbody tr"],
    ["/users", "main tbody tr"],
    ["/users?sort=ratio", "main tbody tr"],
    ["/users?state=leeching&sort=last_announce", "main tbody tr"],
    ["/staff", "main tbody tr"],
    ["/users/1", "main .stat"],
    ["/users/1?tab=why", "main tbody tr"],
    ["/presence", "main tbody tr"],
    ["/presence?status=busy&platform=phone", "main tbody tr"],
    ["/pipeline", "main tbody tr"],
    ["/access/users", "main tbody tr"],
    ["/access/torrents", "main tbody tr"],
    ["/audit", "main tbody tr"],
    ["/", "main .stat"],
  ];
  const line = (...cells) => console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(38) : String(cell).padStart(at === 4 ? 0 : 12))).join("  "));
  line("page", "first row", "blocked max", "API max", "slowest request");
  let findings = 0;
  for (const route of routes) {
    const seen = await observe(page, route);
    findings += Number(seen.slowest.ms > SLOW_API_MS) + Number(seen.longest > SLOW_PAGE_MS);
    line(seen.route, `${Math.round(seen.firstRowMs)} ms`, seen.longest === 0 ? "< 50 ms" : `${Math.round(seen.longest)} ms`, `${Math.round(seen.slowest.ms)} ms`, seen.slowest.path);
  }
  console.log(`\ntoo slow (API over ${SLOW_API_MS} ms, page blocked over ${SLOW_PAGE_MS} ms): ${findings}`);
  await browser.close();
} finally {
  child.kill("SIGTERM");
  await once(child, "exit");
}
