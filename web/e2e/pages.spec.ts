// Every page, with data of a real server.
import { expect, figure, row, test } from "./fixtures";
import { ALBUM, BOOK, FILM, MOVED, SONG } from "./test-data";
import { MemberClient } from "./member-client";
import { eventually } from "./wait";

test("overview: figures, charts, views and component health", async ({ open, server }) => {
  const page = await open("/");
  // Other tests may have added peers.
  const counts = async () => (await server.ask<{ tracker: { seeders: number; leechers: number } }>("GET", "/api/v1/overview")).tracker;
  // The overview is computed once a second.
  await expect.poll(async () => ((now) => now.seeders >= 2 && now.leechers >= 3)(await counts())).toBe(true);
  const tracker = await counts();
  await expect(figure(page, "Seeding")).toHaveText(String(tracker.seeders));
  await expect(figure(page, "Leeching")).toHaveText(String(tracker.leechers));
  await expect(figure(page, "Users online")).toHaveText(/\d/);
  await expect(figure(page, "Announces")).toHaveText(/\d/);
  await expect(page.getByRole("heading", { name: "Last hour" })).toBeVisible();
  for (const view of ["ledger", "activity"]) await expect(row(page, view)).toContainText("running");
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
});

test("the last value of a chart equals the figure beside it", async ({ open, ownServer }) => {
  const server = await ownServer();
  await server.addUser(112);
  const page = await open("/presence", server);
  await expect(page.locator(".chart").first()).toBeVisible();
  await expect(figure(page, "Online")).toHaveText("0");
  // Figure and legend, frame by frame, until both have changed.
  const pairs = page.evaluate(async () => {
    const seen = new Set<string>();
    for (let pair = ""; pair !== "1 1"; ) {
      const figure = document.querySelector(".stat dd")?.textContent ?? "";
      pair = `${figure} ${document.querySelector(".chart .legend strong")?.textContent ?? ""}`;
      seen.add(pair);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return [...seen];
  });
  const member = await MemberClient.connect(server, 112);
  expect(await pairs).toEqual(["0 0", "1 1"]);
  member.disconnect();
});

test("swarms: sorted by peers, found by name", async ({ open }) => {
  const page = await open("/swarms");
  await expect(page.getByRole("heading", { name: "Swarms", level: 1 })).toBeVisible();
  await expect(page.getByRole("row").nth(1)).toContainText(FILM.name);
  await expect(row(page, BOOK.name)).toContainText("pending approval");
  await page.getByRole("button", { name: "Leechers" }).click();
  await expect(page.getByRole("row").nth(1)).toContainText(ALBUM.name);
  await expect(page.getByRole("columnheader", { name: "Leechers" })).toHaveAttribute("aria-sort", "descending");
  await page.getByRole("searchbox", { name: "Search torrents" }).fill("夜航");
  await expect(page.getByRole("row")).toHaveCount(2);
  await page.getByRole("link", { name: SONG.name }).click();
  await expect(page.getByRole("heading", { name: SONG.name, level: 1 })).toBeVisible();
});

test("a torrent: figures, peers with clients and progress, and its history", async ({ open }) => {
  const page = await open(`/swarms/${FILM.id}`);
  await expect(figure(page, "Seeders")).toHaveText("2");
  await expect(figure(page, "Snatches")).toHaveText("1");
  const peers = page.getByRole("table", { name: "Peers" });
  await expect(peers.getByRole("row")).toHaveCount(4);
  await expect(peers.getByRole("row").filter({ hasText: "User 3" })).toContainText("leeching");
  await expect(peers.getByRole("row").filter({ hasText: "User 1" })).toContainText(/qBittorrent/);
  await expect(page.getByRole("table", { name: "History" }).getByRole("row").filter({ hasText: "User 1" })).toBeVisible();
});

test("users: found by number", async ({ open }) => {
  const page = await open("/users");
  await expect(page.getByRole("row").filter({ has: page.getByRole("link", { name: /\b2\b/ }) }).first()).toBeVisible();
  await page.getByRole("searchbox", { name: "Search users" }).fill("1");
  // Another test gives a user a name with digits in it, which is found as well.
  await expect(page.locator('tbody a[href$="/users/2"]')).toHaveCount(0);
  await expect(page.locator('tbody a[href$="/users/1"]').first()).toBeVisible();
});

test("a user: all tabs, and the parts of the figures add up", async ({ open }) => {
  const page = await open("/users/1");
  await expect(page.getByRole("heading", { name: "User 1", level: 1 })).toBeVisible();
  const tabs = page.getByRole("navigation", { name: "About this user" });
  await tabs.getByRole("link", { name: "Torrents" }).click();
  await expect(row(page, FILM.name).first()).toBeVisible();
  await tabs.getByRole("link", { name: "Hit and run" }).click();
  await expect(tabs.getByRole("link", { name: "Hit and run" })).toHaveAttribute("aria-current", "page");
  await tabs.getByRole("link", { name: "Presence" }).click();
  await expect(page.getByRole("heading", { name: "Devices" })).toBeVisible();
  await tabs.getByRole("link", { name: "Risk events" }).click();
  await expect(page.getByText("No risk events")).toBeVisible();
  await tabs.getByRole("link", { name: "Why" }).click();
  await expect(page.getByText("The parts add up to the account, to the byte.")).toBeVisible();
  const exact = new Intl.NumberFormat("en").format(MOVED.uploaded);
  await expect(page.getByTitle(exact).first(), "exact bytes on hover").toBeAttached();
});

test("risk events: each kind has a sentence with its figures, in both languages, and a filter", async ({ open, server }) => {
  await server.addUser(170);
  await server.addTorrent(170, "A torrent without leechers");
  await server.announce(170, 170);
  await server.announce(170, 170, { uploaded: 5 * 1024 * 1024, event: "" });
  for (const client of "abcdefghijklmnopqr") {
    await server.announce(170, SONG.id, { left: 1000, client });
    await server.announce(170, SONG.id, { left: 1000, client, event: "stopped" });
  }
  await eventually("both risks", 40_000, async () => {
    const { items } = await server.ask<{ items: unknown[] }>("GET", "/api/v1/users/170/risks");
    return items.length >= 2;
  });
  const page = await open("/users/170?tab=risks");
  await expect(page.getByText("Claimed 5.00 MiB of upload within", { exact: false })).toBeVisible();
  await expect(page.getByText("Used 15 peer ids on this torrent within an hour.")).toBeVisible();
  await page.getByLabel("Kind").selectOption("Many peer ids");
  await expect(page.getByText("Claimed 5.00 MiB of upload within", { exact: false })).toBeHidden();
  await expect(page.getByText("Used 15 peer ids on this torrent within an hour.")).toBeVisible();
  await page.getByLabel("Language").selectOption("中文");
  await expect(page.getByText("一小时内在该种子上使用了 15 个 peer id。")).toBeVisible();
});

test("why: bytes between stopped and the next announce are not credited, and the page shows it", async ({ open, server }) => {
  const podcast = "A podcast that goes on";
  await server.addUser(150);
  await server.addTorrent(150, podcast);
  await server.announce(150, 150, { left: 1000 });
  await server.announce(150, 150, { uploaded: 3_000_001, downloaded: 1000, event: "stopped" });
  // It had stopped, and its counters continued.
  await server.announce(150, 150, { uploaded: 5_000_003, downloaded: 1000, event: "" });
  await server.announce(150, 150, { uploaded: 5_000_007, downloaded: 1000, event: "" });
  await eventually("the ledger", 40_000, async () => {
    const { figures } = await server.ask<{ figures?: { uploaded: string } }>("GET", "/api/v1/users/150");
    return figures?.uploaded === "3000005";
  });
  const page = await open("/users/150?tab=why");
  await expect(page.getByText("✓ The parts add up to the account, to the byte.")).toBeVisible();
  await page.getByRole("link", { name: `Parts of the figures of ${podcast}` }).click();
  await expect(page).toHaveURL(/torrent=150/);
  await expect(page.getByText("✓ The parts add up to the account, to the byte.")).toBeVisible();
  const sums = page.getByRole("table", { name: "Parts of the figures", exact: true });
  await expect(sums.getByRole("row").filter({ hasText: "Account" }).getByTitle("3,000,005 B")).toBeVisible();
  await expect(sums.getByRole("row").filter({ hasText: "qBittorrent" }).getByTitle("3,000,005 B")).toBeVisible();
  const parts = page.getByRole("table", { name: /^Parts of client [0-9a-f]{16}$/ });
  await expect(parts.getByRole("row").filter({ hasText: "restarted" })).toBeVisible();
  // Closed and opened by keyboard.
  await page.locator("summary").focus();
  await page.keyboard.press("Enter");
  await expect(parts).toHaveCount(0);
  await page.keyboard.press("Enter");
  await expect(parts).toBeVisible();
});

test("presence: online users by status and device", async ({ open, server }) => {
  await server.addUser(101);
  const member = await MemberClient.connect(server, 101);
  await member.setStatus("busy", "reading");
  const page = await open("/presence");
  const users = page.getByRole("table", { name: "Online users" });
  await expect(users.getByRole("row").filter({ hasText: "reading" })).toContainText("busy");
  await page.getByRole("button", { name: "Away" }).click();
  await expect(users.getByRole("row").filter({ hasText: "reading" })).toHaveCount(0);
  member.disconnect();
  await expect(page.getByRole("list", { name: "Presence events" }).getByRole("listitem").filter({ hasText: "101" }).filter({ hasText: "left" })).toBeVisible();
});

test("pipeline: every view with its lag, and no dead letters", async ({ open }) => {
  const page = await open("/pipeline");
  const views = page.getByRole("table", { name: "Views" });
  for (const view of ["ledger", "activity"]) await expect(views.getByRole("row").filter({ hasText: view }).first()).toContainText("running");
  await expect(page.getByText("No dead letters: all views applied all entries.")).toBeVisible();
  await page.getByRole("link", { name: /^Failed/ }).click();
  await expect(page.getByText("No failed entries.")).toBeVisible();
});

const TABS: [tab: string, name: string, shows: string][] = [
  ["users", "Users and passkeys", "Add a user"],
  ["torrents", "Torrents", FILM.name],
  ["clients", "Clients", "Clients"],
  ["ports", "Banned ports", "Banned ports"],
  ["multipliers", "Multipliers", "Multipliers"],
  ["keys", "API keys", "browser tests"],
];

test("access: each tab shows its list", async ({ open }) => {
  const page = await open("/access/users");
  const tabs = page.getByRole("navigation", { name: "Access" });
  for (const [tab, name, shows] of TABS) {
    await tabs.getByRole("link", { name }).click();
    await expect(page).toHaveURL(new RegExp(`#/access/${tab}$`));
    await expect(tabs.getByRole("link", { name })).toHaveAttribute("aria-current", "page");
    await expect(page.getByRole("main").getByText(shows).first()).toBeVisible();
    await expect(page.getByRole("alert")).toHaveCount(0);
  }
});

test("audit: records, and an intact hash chain", async ({ open }) => {
  const page = await open("/audit");
  await expect(page.getByText("The hash chain is intact")).toBeVisible();
  await expect(row(page, "torrent.add").first()).toBeVisible();
});

test("an unknown route shows an error", async ({ open }) => {
  const page = await open("/nowhere");
  await expect(page.getByRole("heading", { name: "Page not found" })).toBeVisible();
  await page.getByRole("link", { name: "Go to the overview" }).click();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
});
