// The member's page: by itself, and within a page of the site.
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { MOVED } from "./fill";
import { expect, test } from "./fixtures";
import { Person } from "./person";

test("what a member sets is seen by a friend, and what the friend does by the member", async ({ page, server }) => {
  await server.addUser(130);
  await server.addUser(131);
  await server.ask("PUT", "/api/v1/users/130/friends/131");
  const friend = await Person.connect(server, 131);
  await page.goto(`${server.url}/me#token=${server.token(130)}`);
  await expect(page.getByRole("heading", { name: "User 130" })).toBeVisible();
  expect(page.url(), "the token leaves the address bar").toBe(`${server.url}/me`);
  await friend.sees(130, "online", "");
  await page.getByRole("radio", { name: "busy" }).check({ force: true });
  await page.getByLabel("A few words beside it").fill("in a film");
  await page.getByRole("button", { name: "Set" }).click();
  await friend.sees(130, "busy", "in a film");
  const friends = page.getByRole("listitem").filter({ hasText: "User 131" });
  await friend.declare("away", "back soon");
  await expect(friends).toContainText("back soon");
  // A reload is the same person on the same device.
  await page.reload();
  await expect(page.getByLabel("A few words beside it")).toHaveValue("in a film");
  await page.getByRole("button", { name: "Clear" }).click();
  await friend.sees(130, "online", "");
  friend.leave();
  await expect(friends).not.toContainText("back soon");
});

test("a member sees what they seed and leech, and their ratio", async ({ page, server }) => {
  await page.goto(`${server.url}/me#token=${server.token(1)}`);
  await expect(page.getByRole("heading", { name: "My ratio" })).toBeVisible();
  const ratio = (MOVED.uploaded / MOVED.downloaded).toFixed(2);
  await expect(page.getByText(new RegExp(ratio.slice(0, 4))).first()).toBeVisible();
  await expect(page.getByText("A film about a lighthouse").first()).toBeVisible();
});

test("without a token, or with a wrong one, the page says what to do", async ({ page, server, watch }) => {
  watch.allow(/status of 401|WebSocket/);
  await page.goto(`${server.url}/me`);
  await expect(page.getByText("You are not signed in")).toBeVisible();
  const [head, body] = server.token(1).split(".");
  await page.goto(`${server.url}/me#token=${head}.${body}.${"A".repeat(43)}`);
  await page.reload();
  await expect(page.getByText(/Your sign-in has ended|The connection has ended/).first()).toBeVisible();
});

test("a site that is allowed shows it in a frame; any other is refused", async ({ page, ownServer, watch, atEnd }) => {
  watch.allow(/frame-ancestors|ERR_BLOCKED_BY_RESPONSE/);
  const framing = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><title>a site</title><iframe title="me" width="900" height="600" src="${target}"></iframe>`);
  }).listen(0, "127.0.0.1");
  let target = "";
  await once(framing, "listening");
  const { port } = framing.address() as AddressInfo;
  atEnd(() => framing.close());
  const server = await ownServer({ "site.embed_origins": `["http://127.0.0.1:${port}"]` });
  await server.addUser(1);
  target = `${server.url}/me#token=${server.token(1)}`;
  await page.goto(`http://127.0.0.1:${port}/`);
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { name: "User 1" })).toBeVisible();
  await expect(frame.getByRole("button", { name: "Set" })).toBeEnabled();
  // The same page by another name is another site.
  const blocked = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  await page.goto(`http://localhost:${port}/`);
  await blocked;
  await expect(frame.getByRole("heading", { name: "User 1" })).toHaveCount(0);
  // The dashboard is nobody's.
  target = server.url;
  const alsoBlocked = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  await page.goto(`http://127.0.0.1:${port}/?again`);
  await alsoBlocked;
  await expect(frame.getByRole("heading")).toHaveCount(0);
});

test("in a frame the page around says who it is, again after a while and before all that was kept", async ({ page, ownServer, atEnd }) => {
  let answer = "";
  const framing = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(answer);
  }).listen(0, "127.0.0.1");
  await once(framing, "listening");
  atEnd(() => framing.close());
  const site = `http://127.0.0.1:${(framing.address() as AddressInfo).port}/`;
  const server = await ownServer({ "site.embed_origins": `["${site.slice(0, -1)}"]` });
  for (const user of [1, 2]) await server.addUser(user);
  // The site hands over one token after the other, as it is asked. The first ends soon, and is renewed at once.
  const around = (tokens: string[]) => `<!doctype html><title>a site</title><script>
    const tokens = ${JSON.stringify(tokens)}; window.asked = 0;
    addEventListener("message", (event) => {
      if (event.data?.type !== "rollcall.token-wanted") return;
      const token = tokens[Math.min(window.asked++, tokens.length - 1)];
      event.source.postMessage({ type: "rollcall.token", token }, event.origin);
    });</script><iframe title="me" width="900" height="600" src="${server.url}/me"></iframe>`;
  const frame = page.frameLocator("iframe");
  const asked = () => page.evaluate(() => (window as unknown as { asked: number }).asked);
  answer = around([server.token(1, 30), server.token(1)]);
  await page.goto(site);
  await expect(frame.getByRole("heading", { name: "User 1" })).toBeVisible();
  await expect.poll(asked).toBe(2);
  // Somebody else has signed in at the site meanwhile, in the same tab.
  answer = around([server.token(2)]);
  await page.goto(site);
  await expect(frame.getByRole("heading", { name: "User 2" })).toBeVisible();
  expect(await asked()).toBe(1);
});
