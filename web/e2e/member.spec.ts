// The member's page, alone and in a frame.
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { MOVED } from "./test-data";
import { expect, test } from "./fixtures";
import { MemberClient } from "./member-client";

test("member and friend see each other's status", async ({ page, server }) => {
  await server.addUser(130);
  await server.addUser(131);
  await server.ask("PUT", "/api/v1/users/130/friends/131");
  const friend = await MemberClient.connect(server, 131);
  await page.goto(`${server.url}/me#token=${server.token(130)}`);
  await expect(page.getByRole("heading", { name: "User 130" })).toBeVisible();
  expect(page.url(), "the token is removed from the address").toBe(`${server.url}/me`);
  await friend.sees(130, "online", "");
  await page.getByRole("radio", { name: "busy" }).check({ force: true });
  await page.getByLabel("Status text").fill("in a film");
  await page.getByRole("button", { name: "Set" }).click();
  await friend.sees(130, "busy", "in a film");
  const friends = page.getByRole("listitem").filter({ hasText: "User 131" });
  await friend.setStatus("away", "back soon");
  await expect(friends).toContainText("back soon");
  // After a reload it is the same device.
  await page.reload();
  await expect(page.getByLabel("Status text")).toHaveValue("in a film");
  await page.getByRole("button", { name: "Clear" }).click();
  await friend.sees(130, "online", "");
  friend.disconnect();
  await expect(friends).not.toContainText("back soon");
});

test("torrents and ratio of a member", async ({ page, server }) => {
  await page.goto(`${server.url}/me#token=${server.token(1)}`);
  await expect(page.getByRole("heading", { name: "My ratio" })).toBeVisible();
  const ratio = (MOVED.uploaded / MOVED.downloaded).toFixed(2);
  await expect(page.getByText(new RegExp(ratio.slice(0, 4))).first()).toBeVisible();
  await expect(page.getByText("A film about a lighthouse").first()).toBeVisible();
});

test("without a valid token the page explains what to do", async ({ page, server, watch }) => {
  watch.allow(/status of 401|WebSocket/);
  await page.goto(`${server.url}/me`);
  await expect(page.getByText("You are not signed in")).toBeVisible();
  const [head, body] = server.token(1).split(".");
  await page.goto(`${server.url}/me#token=${head}.${body}.${"A".repeat(43)}`);
  await page.reload();
  await expect(page.getByText(/Your sign-in has expired|The connection has ended/).first()).toBeVisible();
});

test("only an allowed site can embed the page", async ({ page, ownServer, watch, atEnd }) => {
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
  // Another host name is another origin.
  const blocked = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  await page.goto(`http://localhost:${port}/`);
  await blocked;
  await expect(frame.getByRole("heading", { name: "User 1" })).toHaveCount(0);
  // The dashboard cannot be embedded.
  target = server.url;
  const alsoBlocked = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  await page.goto(`http://127.0.0.1:${port}/?again`);
  await alsoBlocked;
  await expect(frame.getByRole("heading")).toHaveCount(0);
});

test("in a frame the parent page sends the token, renews it, and overrides a stored one", async ({ page, ownServer, atEnd }) => {
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
  // The site sends one token per request. The first expires soon and is renewed at once.
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
  // Another member has signed in to the site, in the same tab.
  answer = around([server.token(2)]);
  await page.goto(site);
  await expect(frame.getByRole("heading", { name: "User 2" })).toBeVisible();
  expect(await asked()).toBe(1);
});
