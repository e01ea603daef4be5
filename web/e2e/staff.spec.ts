// Work of site staff: user list, queue, uploads of torrent files.
import { expect, row, test } from "./fixtures";
import { BOOK, FILM } from "./test-data";
import { MemberClient } from "./member-client";
import { infohashOf, type Server } from "./server";
import { eventually } from "./wait";

/** Users 160 to 162, offline; two of them on a torrent of their own. */
async function addAnnouncers(server: Server): Promise<void> {
  for (const user of [160, 161, 162]) await server.addUser(user);
  await server.ask("PATCH", "/api/v1/users/161", { name: "Grace 苹果" });
  await server.addTorrent(160, "A torrent of three");
  for (const user of [160, 161]) await server.announce(user, 160, { left: 1000 });
  await server.announce(161, 160, { uploaded: 500, downloaded: 1000, left: 500, event: "" });
  await server.announce(160, 160, { uploaded: 3000, downloaded: 1000, left: 0, event: "completed" });
  await eventually("both figures", 40_000, async () => {
    const one = await server.ask<{ figures?: { uploaded: string } | null }>("GET", "/api/v1/users/160");
    const two = await server.ask<{ figures?: { uploaded: string } | null }>("GET", "/api/v1/users/161");
    return one.figures?.uploaded === "3000" && two.figures?.uploaded === "500";
  });
}

test("users: ratio, traffic and activity of offline users; sorted, filtered, found by name", async ({ open, server }) => {
  await addAnnouncers(server);
  const page = await open("/users?search=160");
  const seeder = row(page, "User 160");
  await expect(seeder).toContainText("offline");
  await expect(seeder.getByRole("cell").nth(2), "the ratio").toHaveText("3.00");
  await expect(seeder.getByRole("cell").nth(5), "seeds one torrent").toHaveText("1");
  await page.getByRole("searchbox", { name: "Search users" }).fill("grace");
  const leecher = row(page, "Grace 苹果");
  await expect(page.getByRole("row")).toHaveCount(2);
  await expect(leecher.getByRole("cell").nth(2)).toHaveText("0.50");
  await expect(leecher.getByRole("cell").nth(6), "leeches one torrent").toHaveText("1");

  await page.getByRole("searchbox", { name: "Search users" }).fill("");
  await page.getByRole("combobox", { name: "State" }).selectOption("Leeching");
  await expect(leecher).toBeVisible();
  await expect(row(page, "User 160")).toHaveCount(0);
  await page.getByRole("combobox", { name: "State" }).selectOption("Never announced");
  await expect(row(page, "User 162")).toBeVisible();
  await expect(leecher).toHaveCount(0);
  await page.getByRole("combobox", { name: "State" }).selectOption("All users");
  await page.getByRole("button", { name: "Ratio" }).click();
  await expect(page.getByRole("columnheader", { name: "Ratio" })).toHaveAttribute("aria-sort", "descending");
  await expect(page, "the order is in the address").toHaveURL(/sort=ratio/);
  const ratios = async () => (await page.locator("tbody tr td:nth-child(3)").allInnerTexts()).map(Number).filter((ratio) => !Number.isNaN(ratio));
  // The old rows stay until the new ones arrive.
  await expect
    .poll(async () => {
      const shown = await ratios();
      return shown.length > 1 && shown.every((ratio, at) => at === 0 || ratio <= shown[at - 1]!);
    })
    .toBe(true);

  const member = await MemberClient.connect(server, 162);
  await page.getByRole("combobox", { name: "State" }).selectOption("Online");
  await expect(row(page, "User 162")).toContainText("online");
  member.disconnect();
});

test("the name of a user is set and removed", async ({ open, server }) => {
  await server.addUser(163);
  const page = await open("/users/163");
  await page.getByRole("button", { name: "Name…" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("<b>Ada</b>");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "<b>Ada</b>", level: 1 }), "as text").toBeVisible();
  expect(await server.ask("GET", "/api/v1/users/163")).toMatchObject({ user: { name: "<b>Ada</b>" } });
  await page.getByRole("button", { name: "Name…" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { name: "User 163", level: 1 })).toBeVisible();
});

test("staff: one queue, filtered by kind, with actions", async ({ open, server }) => {
  await server.ask("POST", "/api/v1/torrents", { id: 172, infohash: infohashOf(172), name: "Waits to be approved", approved: false });
  await server.ask("POST", "/api/v1/torrents", { id: 173, infohash: infohashOf(173), name: "Waits to be rejected", approved: false });
  await server.addUser(166);
  await server.addTorrent(174, "A torrent that only one user has");
  await server.announce(166, 174);
  await server.announce(166, 174, { uploaded: 7 * 1024 * 1024, event: "" });
  const page = await open("/");
  await page.getByRole("link", { name: "Staff" }).click();
  await expect(page.getByRole("heading", { name: "Staff", level: 1 })).toBeVisible();
  await expect(row(page, BOOK.name)).toContainText("approval");
  const risk = row(page, "User 166");
  await expect(risk).toContainText("Claimed 7.00 MiB of upload");
  await page.getByRole("navigation", { name: "Kind" }).getByRole("link", { name: /Pending approval/ }).click();
  await expect(risk).toHaveCount(0);
  await page.getByRole("button", { name: "Approve: Waits to be approved" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await expect(row(page, "Waits to be approved")).toHaveCount(0);
  await page.getByRole("button", { name: "Reject: Waits to be rejected" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await expect(row(page, "Waits to be rejected"), "nothing happens without confirmation").toHaveCount(1);
  await page.getByRole("button", { name: "Reject: Waits to be rejected" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
  await expect(row(page, "Waits to be rejected")).toHaveCount(0);
  expect(await server.ask("GET", "/api/v1/torrents/172")).toMatchObject({ torrent: { approved: true } });

  await page.getByRole("navigation", { name: "Kind" }).getByRole("link", { name: /Risks/ }).click();
  await page.getByRole("button", { name: "Disable user: User 166" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable user" }).click();
  await expect(risk.first()).toContainText("disabled");
  await page.getByRole("link", { name: "Show user: User 166" }).first().click();
  await expect(page.getByRole("heading", { name: "User 166", level: 1 })).toBeVisible();
  await expect(page.getByText("Claimed 7.00 MiB of upload", { exact: false })).toBeVisible();
});

test("staff: figures of the overview link to the queue", async ({ open }) => {
  const page = await open("/");
  const tiles = page.locator("a[href^='#/staff']");
  await expect(page.locator("a[href='#/staff?kind=dead_letter']")).toHaveCount(1);
  await expect(page.locator("a[href='#/staff?kind=failed_entry']")).toHaveCount(1);
  await expect(page.locator("a[href='#/staff?kind=risk']")).toHaveCount(1);
  await expect(tiles.first()).toBeVisible();
});

test("staff: a key with the scope read sees the queue without actions", async ({ open, server }) => {
  const page = await open("/staff", server, await server.newKey("read"));
  await expect(row(page, BOOK.name)).toBeVisible();
  await expect(page.getByRole("main").getByRole("button")).toHaveCount(0);
});

function torrentFile(name: string, isPrivate: boolean): Buffer {
  const info = `d6:lengthi123456e4:name${Buffer.byteLength(name)}:${name}12:piece lengthi16384e6:pieces20:${"x".repeat(20)}${isPrivate ? "7:privatei1e" : ""}e`;
  return Buffer.from(`d4:info${info}e`);
}

test("a .torrent file is uploaded; invalid ones are refused, public ones need confirmation", async ({ open, server, watch }) => {
  watch.allow(/status of 422 .*torrents\/file/);
  const page = await open("/access/torrents");
  const choose = (name: string, buffer: Buffer) => page.getByLabel(".torrent file").setInputFiles({ name, mimeType: "application/x-bittorrent", buffer });
  const add = page.getByRole("button", { name: "Add file" });
  await add.click();
  await expect(page.getByText("Choose a file.")).toBeVisible();
  await choose("a.torrent", torrentFile("An uploaded film", true));
  await add.click();
  await expect(page.getByText("“An uploaded film” added")).toBeVisible();
  await expect(row(page, "An uploaded film")).toContainText("121 KiB");
  await choose("b.torrent", Buffer.from("no torrent at all"));
  await add.click();
  await expect(page.getByText("not a torrent file", { exact: false })).toBeVisible();
  await choose("c.torrent", torrentFile("A public film", false));
  await add.click();
  const question = page.getByRole("dialog", { name: /not private/ });
  await question.getByRole("button", { name: "Cancel" }).click();
  await expect(row(page, "A public film")).toHaveCount(0);
  await add.click();
  await question.getByRole("button", { name: "Add anyway" }).click();
  await expect(row(page, "A public film")).toBeVisible();
  const { items } = await server.ask<{ items: { action: string; details: { name?: string } }[] }>("GET", "/api/v1/audit?action=torrent.add");
  expect(items.some((record) => record.details.name === "An uploaded film")).toBe(true);
});

test("the navigation links to the API documentation", async ({ open, server }) => {
  const page = await open(`/swarms/${FILM.id}`);
  await expect(page.getByRole("link", { name: "API documentation" })).toHaveAttribute("href", "/docs?lang=en");
  expect((await fetch(`${server.url}/docs`)).ok).toBe(true);
});
