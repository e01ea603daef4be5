// People in a real browser: each has a page with the library of clients/js, served by a small site of this program's own,
// which also signs their tokens, as a site's back end does.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { Chromium } from "./chromium.mjs";
import { serve, sign, tell } from "./dialogue.mjs";

const ROOT = new URL("..", import.meta.url);
const PAGE = `<!doctype html><title>presence</title>
<script type="importmap">{"imports": {"centrifuge": "/node_modules/centrifuge/build/index.mjs"}}</script>
<script type="module">
  import { Rollcall } from "/dist/index.js";
  const query = new URLSearchParams(location.search);
  const tell = (event, details) => window.say(JSON.stringify({ event, ...details }));
  const rollcall = new Rollcall(query.get("url"), {
    getToken: async () => (await fetch("/token?user=" + query.get("user"))).text(),
    idleMs: Number(query.get("idle_ms")),
  });
  rollcall.state.subscribe(({ kind, why }) => tell(kind, why));
  rollcall.me.subscribe((me) => me !== null && tell("me", { user: me }));
  rollcall.friends.subscribe(({ changed }) => changed.forEach((id) => tell("friend", { user: rollcall.friends.get(id) })));
  rollcall.connect();
  window.rollcall = rollcall;
</script>`;

let secret;
let browser;
const people = new Map();

async function answer(request, response) {
  const url = new URL(request.url, "http://localhost");
  try {
    if (url.pathname === "/") {
      response.setHeader("Content-Type", "text/html").end(PAGE);
    } else if (url.pathname === "/empty") {
      response.setHeader("Content-Type", "text/html").end("<title>something else</title>");
    } else if (url.pathname === "/token") {
      response.end(sign({ secret, user: url.searchParams.get("user") }));
    } else if (/^\/(dist|node_modules\/centrifuge)\/[\w/.-]+\.m?js$/.test(url.pathname)) {
      response.setHeader("Content-Type", "text/javascript").end(await readFile(new URL(`.${url.pathname}`, ROOT)));
    } else {
      response.writeHead(404).end();
    }
  } catch {
    response.writeHead(404).end();
  }
}

const site = createServer(answer);

/** Starts browser and site, and says where the site is. */
async function launch({ profile }) {
  browser = Chromium.start(profile);
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { product } = await browser.send("Browser.getVersion");
  return { origin: origin(), product };
}

const origin = () => `http://127.0.0.1:${site.address().port}`;

/** Opens a person's page. */
async function open({ who, url, identity, idle_ms }) {
  secret = identity.secret;
  const person = await browser.newPerson();
  const query = new URLSearchParams({ url, user: identity.user, idle_ms: idle_ms ?? 300_000 });
  const tab = await browser.open(person, `${origin()}/?${query}`, ({ event, ...details }) => tell(event, { who, ...details }));
  people.set(who, { person, tab });
}

const tabOf = ({ who }) => people.get(who).tab;

/** Opens another tab in front, which hides the page, as it does for people. */
async function hide({ who }) {
  const { person } = people.get(who);
  await browser.open(person, `${origin()}/empty`, () => {});
}

/** Makes the page's script hang, while its browser is well. */
function hang(details) {
  const { ms } = details;
  // Not awaited: it cannot answer before it is over.
  void tabOf(details).evaluate(`{ const end = Date.now() + ${ms}; while (Date.now() < end); }`).catch(() => {});
}

function cutNetwork(details) {
  const conditions = { offline: details.on, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
  return tabOf(details).send("Network.emulateNetworkConditions", conditions).then(() => {});
}

/** Ends browser and program, once the browser uses its profile no more. */
async function quit() {
  const ended = new Promise((resolve) => browser.child.once("exit", resolve));
  await browser.send("Browser.close");
  await ended;
  process.exit(0);
}

serve({
  launch,
  open,
  hide,
  hang,
  show: (details) => tabOf(details).show().then(() => {}),
  freeze: (details) => tabOf(details).send("Page.setWebLifecycleState", { state: "frozen" }).then(() => {}),
  thaw: (details) => tabOf(details).send("Page.setWebLifecycleState", { state: "active" }).then(() => {}),
  touch: (details) => tabOf(details).send("Input.dispatchMouseEvent", { type: "mouseMoved", x: 9, y: 9 }).then(() => {}),
  offline: cutNetwork,
  close: (details) => tabOf(details).close().then(() => {}),
  reload: (details) => tabOf(details).send("Page.reload").then(() => {}),
  // It has no answer: the page that would answer is gone.
  crash: (details) => void tabOf(details).send("Page.crash").catch(() => {}),
  visibility: (details) => tabOf(details).evaluate("document.visibilityState"),
  evaluate: (details) => tabOf(details).evaluate(details.expression),
  quit,
});
