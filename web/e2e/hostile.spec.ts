// Names and texts that somebody wrote to do harm: shown as text, and nothing in them runs. That nothing ran is also what the
// watch over every page says: no box opened, no request left.
import { expect, test } from "./fixtures";
import { Person } from "./person";

const MARKUP = `<img src=x onerror="window.hurt=1;alert(1)"><script>window.hurt=1</script>"'><svg onload=alert(2)>{{7*7}}\${7*7}`;
const BIDI = "invoice\u202egpj.exe\u2066 hidden \u2069\u200f";
const NAMES: [id: number, name: string][] = [
  [141, `hostile ${MARKUP}`],
  [142, `hostile ${BIDI}`],
  [143, `hostile ${"very long ".repeat(1000)}`.slice(0, 10_000)],
  [144, "hostile javascript:alert(1) \u0007\u001b[31m"],
];

test("torrent names and status texts are text, whatever is in them", async ({ open, server, page }) => {
  await server.addUser(140);
  await server.addUser(141);
  await server.ask("PUT", "/api/v1/users/140/friends/141");
  const accepted: number[] = [];
  for (const [id, name] of NAMES) {
    // The server may refuse a name; then nobody is ever shown it.
    const isTaken = await server.addTorrent(id, name).then(() => true, () => false);
    if (!isTaken) continue;
    accepted.push(id);
    await server.announce(140, id, { left: 1000 });
  }
  expect(accepted, "markup is no reason to refuse a name").toContain(141);
  const person = await Person.connect(server, 140);
  await person.declare("online", MARKUP.slice(0, 100));
  const friend = await Person.connect(server, 141);
  await friend.declare("busy", BIDI);

  await open("/swarms?search=hostile");
  await expect(page.getByRole("row")).toHaveCount(accepted.length + 1);
  await expect(page.getByText("<script>window.hurt=1</script>").first(), "the markup is there to be read").toBeVisible();
  const places = [...accepted.map((id) => `/swarms/${id}`), "/users/140", "/users/140?tab=torrents", "/users/140?tab=why", "/presence", "/access/torrents", "/audit"];
  for (const path of ["/swarms?search=hostile", ...places]) {
    await page.goto(`${server.url}/#${path}`);
    await expect(page.getByRole("status").filter({ hasText: /^Loading…$/ })).toHaveCount(0);
    await isHarmless(page, path);
  }
  await page.goto(`${server.url}/me#token=${server.token(140)}`);
  await expect(page.getByText("<img src=x").first()).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "User 141" })).toContainText("invoice");
  await isHarmless(page, "/me");
  person.leave();
  friend.leave();
});

/** That no element came of it, no direction is turned around, and nothing sticks out of the page. */
async function isHarmless(page: import("@playwright/test").Page, place: string): Promise<void> {
  const found = await page.evaluate(() => ({
    hurt: "hurt" in window,
    elements: document.querySelectorAll("img, main script, svg[onload], [onerror]").length,
    turns: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText),
    sidewaysPx: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    longest: Math.max(0, ...[...document.querySelectorAll("bdi")].map((name) => name.textContent?.length ?? 0)),
  }));
  expect.soft(found, place).toMatchObject({ hurt: false, elements: 0, turns: false, sidewaysPx: 0 });
  expect.soft(found.longest, place).toBeLessThan(1000);
}
