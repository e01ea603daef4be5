// Operator actions: confirmed, carried out, and recorded in the audit trail.
import { expect, goTo, row, test } from "./fixtures";
import { startRedis } from "./redis";
import { infohashOf, passkeyOf } from "./server";
import { eventually } from "./wait";

test("a dead letter is listed, replayed and counted", async ({ open, ownServer, atEnd }) => {
  const redis = await startRedis();
  atEnd(() => redis.end());
  const server = await ownServer({ "redis.url": redis.url, "journal.retry_delay_s": "3600" });
  await server.addUser(1);
  await server.addTorrent(1, "A torrent");
  // Another program writes an entry of a user that is not registered yet.
  await redis.command("XADD", "tracker:traffic", "*", ...entry({ passkey: passkeyOf(900), infohash: infohashOf(1), du: "4321" }));
  const page = await open("/pipeline", server);
  const letters = page.getByRole("table", { name: "Rejected entries" });
  await expect(letters.getByRole("row")).toHaveCount(2);
  await letters.getByText("Fields").click();
  await expect(letters.getByText("4321")).toBeVisible();
  await expect(page.getByText(passkeyOf(900)), "passkeys are not shown").toHaveCount(0);

  await server.addUser(900);
  await letters.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const question = page.getByRole("dialog", { name: "Replay 1 entry?" });
  await question.getByRole("button", { name: "Cancel" }).click();
  await expect(letters.getByRole("row"), "nothing happens without confirmation").toHaveCount(2);
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await question.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(page.getByText("1 entry replayed")).toBeVisible();
  await expect(page.getByText("No dead letters: all views applied all entries.")).toBeVisible();
  await eventually("the entry to count", 40_000, async () => {
    const { figures } = await server.ask<{ figures?: { uploaded: string } | null }>("GET", "/api/v1/users/900");
    return figures?.uploaded === "4321";
  });
});

/** The fourteen fields of an entry of the journal. */
function entry(some: Record<string, string>): string[] {
  const fields: Record<string, string> = {
    peer_id: "2d".repeat(20),
    port: "6000",
    ip: "192.0.2.7",
    af: "IPv4",
    dd: "0",
    left: "0",
    event: "none",
    ts: String(Math.floor(Date.now() / 1000)),
    dt: "31536000",
    interval: "1800",
    min_interval: "900",
    ...some,
  };
  return Object.entries(fields).flat();
}

test("a view is paused and resumed, with an alert on the overview", async ({ open, ownServer }) => {
  const server = await ownServer();
  const page = await open("/pipeline", server);
  const activity = page.getByRole("table", { name: "Views" }).getByRole("row").filter({ hasText: "activity" });
  await activity.getByRole("button", { name: /Pause/ }).click();
  await page.getByRole("dialog", { name: "Pause activity?" }).getByRole("button", { name: "Pause" }).click();
  await expect(activity).toContainText("paused");
  await page.getByRole("link", { name: "Overview" }).click();
  const warning = page.getByRole("heading", { name: "The view activity is paused" });
  await expect(warning).toBeVisible();
  await page.getByRole("link", { name: "Pipeline" }).first().click();
  await activity.getByRole("button", { name: /Resume/ }).click();
  await page.getByRole("dialog", { name: "Resume activity?" }).getByRole("button", { name: "Resume" }).click();
  await expect(activity).not.toContainText("paused");
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(warning).toHaveCount(0);
});

test("a change in Access is in the audit trail, and its hash chain is intact", async ({ open, server }) => {
  const page = await open("/access/users");
  await page.getByLabel("Number", { exact: false }).first().fill("120");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByText(/User 120 added/).first()).toBeVisible();
  expect(await server.ask("GET", "/api/v1/users/120")).toMatchObject({ user: { id: 120, enabled: true } });

  await page.getByRole("link", { name: "Audit" }).click();
  const record = row(page, "user.add").filter({ hasText: "120" });
  await expect(record).toHaveCount(1);
  await expect(record, "the actor").toContainText("key");
  await expect(page.getByText("The hash chain is intact")).toBeVisible();
  const counted = async () => Number(/Checked: ([\d,]+) record/.exec((await page.getByText(/Checked: /).textContent()) ?? "")?.[1]?.replace(",", ""));
  const before = await counted();
  await server.addUser(121);
  // The server caches the verification for a few seconds.
  await eventually("the check to see the new record", 40_000, async () => {
    await page.getByRole("button", { name: "Check again" }).click();
    return (await counted()) > before;
  });
});

test("a multiplier that has ended still explains credited bytes", async ({ open, server }) => {
  for (const user of [167, 168]) await server.addUser(user);
  await server.addTorrent(167, "A torrent with double upload");
  await server.ask("POST", "/api/v1/multipliers", { scope: "user", subject: 167, upload_percent: 200, download_percent: 100 });
  await server.announce(168, 167, { left: 9000 });
  await server.announce(167, 167);
  await server.announce(167, 167, { uploaded: 4000, event: "" });
  await eventually("the upload to count double", 40_000, async () => {
    const { figures } = await server.ask<{ figures?: { credited_uploaded: string } | null }>("GET", "/api/v1/users/167");
    return figures?.credited_uploaded === "8000";
  });
  const page = await open("/access/multipliers");
  const multiplier = row(page, "User 167");
  await multiplier.getByRole("button", { name: "End" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await expect(multiplier).toContainText("ended");
  await expect(multiplier.getByRole("button"), "it is kept").toHaveCount(0);
  await page.goto(`${server.url}/#/users/167?tab=why&torrent=167`);
  const entry = page.getByRole("table", { name: "Entries" }).getByRole("row").filter({ has: page.getByTitle("4,000 B") });
  await expect(entry.getByTitle("8,000 B"), "credited bytes").toBeVisible();
});

test("a key with the scope read is offered no changes and no audit trail", async ({ open, server, watch }) => {
  watch.allow(/status of 403 .*users\/1/);
  const page = await open("/", server, await server.newKey("read"));
  await expect(page.getByText("read only")).toBeVisible();
  await expect(page.getByRole("link", { name: "Audit" })).toHaveCount(0);
  const forbidden = /^(Add|Remove|Pause|Resume|Disable|Enable|Create|Approve|New passkey|Drop|Drop all|Replay|Forbid|Allow|Ban|Revoke|Disconnect)\b/;
  const routes: [path: string, heading: string][] = [
    ["/swarms/1", "A film about a lighthouse"],
    ["/users/1", "User 1"],
    ["/pipeline", "Pipeline"],
    ["/access/users", "Access"],
    ["/access/torrents", "Access"],
    ["/access/clients", "Access"],
    ["/access/ports", "Access"],
    ["/access/multipliers", "Access"],
    ["/access/keys", "Access"],
  ];
  for (const [path, heading] of routes) {
    await goTo(page, server, path);
    await expect(page.getByRole("heading", { name: heading, level: 1 })).toBeVisible();
    await expect.soft(page.getByRole("main").getByRole("button", { name: forbidden }), path).toHaveCount(0);
    await expect.soft(page.getByRole("alert"), path).toHaveCount(0);
  }
  // The server refuses it as well.
  const refused = await page.evaluate(async () => {
    const { csrf } = (await (await fetch("/session")).json()) as { csrf: string };
    const body = JSON.stringify({ enabled: false });
    return (await fetch("/api/v1/users/1", { method: "PATCH", body, headers: { "content-type": "application/json", "x-csrf-token": csrf } })).status;
  });
  expect(refused).toBe(403);
});
