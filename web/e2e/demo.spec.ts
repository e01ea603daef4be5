// The demo: one command, and its links.
import { spawn } from "node:child_process";
import { expect, figure, test } from "./fixtures";
import { binary, cleanEnvironment, end, freePort } from "./server";
import { eventually } from "./wait";

interface DemoOutput {
  site: string;
  sign_in: string;
  member: string;
  torrents: number;
}

test("the links of the demo open a dashboard and a member's page with live data", async ({ page, atEnd }) => {
  const args = ["demo", "--json", "--port", String(await freePort()), "--tracker-port", String(await freePort()), "--members", "20", "--torrents", "40", "--peers", "200", "--pace", "4"];
  const child = spawn(binary(), args, { stdio: ["ignore", "pipe", "pipe"], env: cleanEnvironment() });
  atEnd(() => end(child));
  let text = "";
  child.stdout.on("data", (bytes: Buffer) => (text += bytes.toString()));
  let output: DemoOutput | undefined;
  await eventually("the output of the demo", 60_000, () => {
    output = JSON.parse(text) as DemoOutput;
    return true;
  });
  await page.goto(output!.sign_in);
  const online = figure(page, "Users online");
  const seeding = figure(page, "Seeding");
  await expect(online).not.toHaveText("0");
  await expect(seeding).not.toHaveText("0");
  const moved = () => page.getByText(/since start/).first().textContent();
  const before = await moved();
  await expect.poll(moved, "transferred bytes").not.toBe(before);
  await page.getByRole("link", { name: "Swarms" }).click();
  await expect(page.getByText(`${output!.torrents} torrents`)).toBeVisible();
  await page.getByRole("link", { name: "Presence" }).click();
  await expect(page.getByRole("list", { name: "Presence events" }).getByRole("listitem").first()).toBeVisible();
  await page.goto(output!.member);
  await expect(page.getByRole("heading", { name: "User 1", exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { name: "My friends" })).toBeVisible();
});
