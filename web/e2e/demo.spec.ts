// The demo as a newcomer meets it: one command, a link, and a world that moves.
import { spawn } from "node:child_process";
import { expect, figure, test } from "./fixtures";
import { binary, cleanEnvironment, end, freePort } from "./server";
import { eventually } from "./wait";

interface Greeting {
  site: string;
  sign_in: string;
  member: string;
  torrents: number;
}

test("the demo's links lead to a dashboard and a member's page that are alive", async ({ page, atEnd }) => {
  const args = ["demo", "--json", "--port", String(await freePort()), "--tracker-port", String(await freePort()), "--people", "20", "--torrents", "40", "--peers", "200", "--pace", "4"];
  const child = spawn(binary(), args, { stdio: ["ignore", "pipe", "pipe"], env: cleanEnvironment() });
  atEnd(() => end(child));
  let said = "";
  child.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()));
  let greeting: Greeting | undefined;
  await eventually("the greeting of the demo", 60_000, () => {
    greeting = JSON.parse(said) as Greeting;
    return true;
  });
  await page.goto(greeting!.sign_in);
  const online = figure(page, "People online");
  const seeding = figure(page, "Seeding");
  await expect(online).not.toHaveText("0");
  await expect(seeding).not.toHaveText("0");
  const moved = () => page.getByText(/since the start/).first().textContent();
  const before = await moved();
  await expect.poll(moved, "bytes that were moved").not.toBe(before);
  await page.getByRole("link", { name: "Swarms" }).click();
  await expect(page.getByText(`${greeting!.torrents} torrents`)).toBeVisible();
  await page.getByRole("link", { name: "Presence" }).click();
  await expect(page.getByRole("list", { name: "As it happens" }).getByRole("listitem").first()).toBeVisible();
  await page.goto(greeting!.member);
  await expect(page.getByRole("heading", { name: "User 1", exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { name: "My friends" })).toBeVisible();
});
