// Malicious names and texts are shown as text and never executed. The page monitor also checks it: no dialog, no foreign
// request.
import type { Page } from "@playwright/test";
import { expect, goTo, test } from "./fixtures";
import { MemberClient } from "./member-client";
import { infohashOf } from "./server";

const MARKUP = `<img src=x onerror="window.hurt=1;alert(1)"><script>window.hurt=1</script>"'><svg onload=alert(2)>{{7*7}}\${7*7}`;
const BIDI = "invoice\u202egpj.exe\u2066 hidden \u2069\u200f";
const NAMES: [id: number, name: string][] = [
  [141, `hostile ${MARKUP}`],
  [142, `hostile ${BIDI}`],
  [143, `hostile ${"very long ".repeat(1000)}`.slice(0, 10_000)],
  [144, "hostile javascript:alert(1) \u0007\u001b[31m"],
];

test("torrent names and status texts are shown as text", async ({ open, server, page }) => {
  await server.addUser(140);
  await server.addUser(141);
  await server.addUser(142);
  for (const friend of [141, 142]) await server.ask("PUT", `/api/v1/users/140/friends/${friend}`);
  for (const [id, name] of NAMES) {
    await server.command("torrent", "add", "--id", String(id), "--infohash", infohashOf(id), "--name", name);
    await server.announce(140, id, { left: 1000 });
  }
  await server.ask("PATCH", "/api/v1/users/140", { name: MARKUP.slice(0, 100) });
  await server.ask("PATCH", `/api/v1/torrents/${NAMES[0]![0]}`, { approved: false });
  const member = await MemberClient.connect(server, 140);
  await member.setStatus("online", MARKUP.slice(0, 100));
  const friend = await MemberClient.connect(server, 141);
  await friend.setStatus("busy", BIDI);
  const verbose = await MemberClient.connect(server, 142);
  await expect(verbose.setStatus("away", "loud".repeat(2500)), "10,000 characters are too many for a status").rejects.toMatchObject({ code: expect.any(Number) });
  // The configured maximum.
  await verbose.setStatus("away", "loud".repeat(64));

  await open("/swarms?search=hostile");
  await expect(page.getByRole("row")).toHaveCount(NAMES.length + 1);
  await expect(page.getByText("<script>window.hurt=1</script>").first(), "the markup is visible").toBeVisible();
  const routes = [...NAMES.map(([id]) => `/swarms/${id}`), "/users/140", "/users/140?tab=torrents", "/users/140?tab=why", "/users?search=140", "/staff", "/presence", "/access/torrents", "/audit"];
  for (const path of ["/swarms?search=hostile", ...routes]) {
    await goTo(page, server, path);
    await isHarmless(page, path);
  }
  await page.goto(`${server.url}/me#token=${server.token(140)}`);
  await expect(page.getByText("<img src=x").first()).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "User 141" })).toContainText("invoice");
  await expect(page.getByRole("listitem").filter({ hasText: "User 142" })).toContainText("loudloud");
  await isHarmless(page, "/me");
  member.disconnect();
  friend.disconnect();
  verbose.disconnect();
});

/** No element was created, no text direction changed, nothing overflows. */
async function isHarmless(page: Page, route: string): Promise<void> {
  const found = await page.evaluate(() => ({
    hurt: "hurt" in window,
    elements: document.querySelectorAll("img, main script, svg[onload], [onerror]").length,
    hasBidi: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText),
    overflowPx: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    longest: Math.max(0, ...[...document.querySelectorAll("bdi")].map((name) => name.textContent?.length ?? 0)),
  }));
  expect.soft(found, route).toMatchObject({ hurt: false, elements: 0, hasBidi: false, overflowPx: 0 });
  expect.soft(found.longest, route).toBeLessThan(1000);
}
