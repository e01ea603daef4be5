// Changes appear without a reload.
import { expect, figure, test } from "./fixtures";
import { MemberClient } from "./member-client";
import { eventually } from "./wait";

test("a member connects, sets a status and disconnects: it appears without a reload", async ({ open, server }) => {
  await server.addUser(110);
  const page = await open("/presence");
  await expect(page.getByRole("heading", { name: "Online users" })).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSameLoad: true }));
  const userRow = page.getByRole("table", { name: "Online users" }).getByRole("row").filter({ has: page.getByRole("link", { name: "110", exact: true }) });
  await expect(userRow).toHaveCount(0);
  const member = await MemberClient.connect(server, 110);
  await expect(userRow).toContainText("online");
  await member.setStatus("away", "out for a walk");
  await expect(userRow).toContainText("away");
  await expect(userRow).toContainText("out for a walk");
  const feed = page.getByRole("list", { name: "Presence events" });
  const events = feed.getByRole("listitem").filter({ has: page.getByRole("link", { name: "110", exact: true }) });
  await expect(events.filter({ hasText: "online → away" })).toHaveCount(1);
  await expect(events.filter({ hasText: "joined" })).toHaveCount(1);
  member.disconnect();
  await expect(userRow).toHaveCount(0);
  await expect(events.filter({ hasText: "left" })).toHaveCount(1);
  expect(await page.evaluate(() => "isSameLoad" in window)).toBe(true);
});

test("a new peer is counted on the torrent's page and the overview without a reload", async ({ open, server, context }) => {
  await server.addUser(111);
  await server.addTorrent(111, "A torrent for a new peer");
  const page = await open("/swarms/111");
  await expect(page.getByText("No peers")).toBeVisible();
  const overview = await context.newPage();
  await overview.goto(`${server.url}/#/`);
  await expect(figure(overview, "Leeching")).toHaveText(/\d/);
  const before = Number(await figure(overview, "Leeching").textContent());
  await server.announce(111, 111, { left: 500_000 });
  const peers = page.getByRole("table", { name: "Peers" });
  await expect(peers.getByRole("row").filter({ hasText: "User 111" })).toContainText("leeching");
  await expect(figure(page, "Leechers")).toHaveText("1");
  await eventually("the overview", 40_000, async () => Number(await figure(overview, "Leeching").textContent()) > before);
  // It completes: the peer seeds, and a snatch is counted.
  await server.announce(111, 111, { left: 0, downloaded: 500_000, event: "completed" });
  await expect(peers.getByRole("row").filter({ hasText: "User 111" })).toContainText("seeding");
  await expect(figure(page, "Snatches")).toHaveText("1");
});

test("while the server is unreachable the overview shows the age of its figures, and no all-clear", async ({ open, ownServer, watch }) => {
  watch.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/);
  const server = await ownServer();
  const page = await open("/", server);
  await expect(page.getByText("No alerts.")).toBeVisible();
  await server.halt();
  await expect(page.getByText(/The server is unreachable\. The figures are from \d\d:\d\d:\d\d, \d+ s ago/)).toBeVisible();
  await expect(page.getByText(/Current alerts are unknown: these figures are \d+ s old/)).toBeVisible();
  await expect(page.getByText("No alerts.")).toHaveCount(0);
  await server.launch();
  await expect(page.getByText("No alerts.")).toBeVisible();
});

test("after a restart of the server the page recovers without a sign-in", async ({ open, ownServer, watch }) => {
  watch.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/);
  const server = await ownServer();
  const page = await open("/presence", server);
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSameLoad: true }));
  await server.halt();
  await expect(page.getByText(/The server is unreachable/)).toBeVisible();
  await server.launch();
  await expect(page.getByText("The server is reachable again.")).toBeVisible();
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  // Later changes are shown.
  await server.addUser(7);
  const member = await MemberClient.connect(server, 7);
  await expect(page.getByRole("table", { name: "Online users" }).getByRole("link", { name: "7", exact: true })).toBeVisible();
  member.disconnect();
  expect(await page.evaluate(() => "isSameLoad" in window)).toBe(true);
  expect(page.url()).toContain("#/presence");
});
