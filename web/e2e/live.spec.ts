// What happens elsewhere appears by itself: nothing here loads a page twice.
import { expect, figure, test } from "./fixtures";
import { Person } from "./person";
import { eventually } from "./wait";

test("somebody connects, says something and leaves: all of it appears without a reload", async ({ open, server }) => {
  await server.addUser(110);
  const page = await open("/presence");
  await expect(page.getByRole("heading", { name: "Who is here" })).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSameLoad: true }));
  const line = page.getByRole("table", { name: "Who is here" }).getByRole("row").filter({ has: page.getByRole("link", { name: "110", exact: true }) });
  await expect(line).toHaveCount(0);
  const person = await Person.connect(server, 110);
  await expect(line).toContainText("online");
  await person.declare("away", "out for a walk");
  await expect(line).toContainText("away");
  await expect(line).toContainText("out for a walk");
  const feed = page.getByRole("list", { name: "As it happens" });
  const events = feed.getByRole("listitem").filter({ has: page.getByRole("link", { name: "110", exact: true }) });
  await expect(events.filter({ hasText: "online → away" })).toHaveCount(1);
  await expect(events.filter({ hasText: "joined" })).toHaveCount(1);
  person.leave();
  await expect(line).toHaveCount(0);
  await expect(events.filter({ hasText: "left" })).toHaveCount(1);
  expect(await page.evaluate(() => "isSameLoad" in window)).toBe(true);
});

test("a new peer announces: the torrent's page and the overview count it without a reload", async ({ open, server, context }) => {
  await server.addUser(111);
  await server.addTorrent(111, "A torrent for a new peer");
  const page = await open("/swarms/111");
  await expect(page.getByText("Nobody is on it right now")).toBeVisible();
  const overview = await context.newPage();
  await overview.goto(`${server.url}/#/`);
  await expect(figure(overview, "Leeching")).toHaveText(/\d/);
  const before = Number(await figure(overview, "Leeching").textContent());
  await server.announce(111, 111, { left: 500_000 });
  const peers = page.getByRole("table", { name: "Peers" });
  await expect(peers.getByRole("row").filter({ hasText: "User 111" })).toContainText("leeching");
  await expect(figure(page, "Leechers")).toHaveText("1");
  await eventually("the overview to count it", 40_000, async () => Number(await figure(overview, "Leeching").textContent()) > before);
  // It finishes: the same peer seeds, and it is a snatch.
  await server.announce(111, 111, { left: 0, downloaded: 500_000, event: "completed" });
  await expect(peers.getByRole("row").filter({ hasText: "User 111" })).toContainText("seeding");
  await expect(figure(page, "Snatches")).toHaveText("1");
});

test("the server is away: the overview does not call that well, and says how old its figures are", async ({ open, ownServer, watch }) => {
  watch.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket connection to|status of 503/);
  const server = await ownServer();
  const page = await open("/", server);
  await expect(page.getByText("All is well.")).toBeVisible();
  await server.halt();
  await expect(page.getByText(/The server cannot be reached\. The figures are from \d\d:\d\d:\d\d, \d+ s ago/)).toBeVisible();
  await expect(page.getByText(/Whether all is well is not known: these figures are \d+ s old/)).toBeVisible();
  await expect(page.getByText("All is well.")).toHaveCount(0);
  await server.launch();
  await expect(page.getByText("All is well.")).toBeVisible();
});

test("the server is restarted while the page is open: it says so, and recovers without signing in", async ({ open, ownServer, watch }) => {
  watch.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket connection to|status of 503/);
  const server = await ownServer();
  const page = await open("/presence", server);
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSameLoad: true }));
  await server.halt();
  await expect(page.getByText(/The server cannot be reached/)).toBeVisible();
  await server.launch();
  await expect(page.getByText("The server is back.")).toBeVisible();
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  // It is one that works: what happens now is shown.
  await server.addUser(7);
  const person = await Person.connect(server, 7);
  await expect(page.getByRole("table", { name: "Who is here" }).getByRole("link", { name: "7", exact: true })).toBeVisible();
  person.leave();
  expect(await page.evaluate(() => "isSameLoad" in window)).toBe(true);
  expect(page.url()).toContain("#/presence");
});
