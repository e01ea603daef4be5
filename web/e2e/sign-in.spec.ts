// Sign-in and sign-out.
import { expect, test } from "./fixtures";

test("a key signs in; signing out ends the session on the server", async ({ page, server, context }) => {
  await page.goto(server.url);
  await page.getByLabel("API key").fill(server.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();

  const cookie = (await context.cookies()).find((one) => one.name === "rollcall_session");
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
  expect(await page.evaluate(() => document.cookie), "no script can read it").not.toContain("rollcall_session");
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage })), "the key is not stored").not.toContain("rck_");

  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  const header = { cookie: `rollcall_session=${cookie?.value}` };
  expect((await fetch(`${server.url}/session`, { headers: header })).status).toBe(401);
});

test("a link signs in at once, and its key is removed from the address", async ({ page, server }) => {
  await page.goto(server.signInLink("/pipeline"));
  await expect(page.getByRole("heading", { name: "Pipeline", level: 1 })).toBeVisible();
  expect(page.url()).toBe(`${server.url}/#/pipeline`);
  // Also from the history.
  await page.goBack();
  expect(page.url()).not.toContain("rck_");
});

test("a link with another key needs confirmation during a session", async ({ page, server, open, watch }) => {
  watch.allow(/status of 401/);
  await open("/pipeline");
  await page.goto(server.signInLink("/audit", `rck_${"0".repeat(8)}_${"wrong".repeat(8)}`));
  await expect(page.getByRole("status").first()).toContainText("browser tests");
  expect(page.url()).not.toContain("rck_");
  // A wrong key does not change the session.
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("Unknown key");
  await page.getByRole("link", { name: "Keep the current session" }).click();
  await expect(page.getByRole("heading", { name: "Audit", level: 1 })).toBeVisible();
  const reader = await server.newKey("read");
  await page.goto(server.signInLink("/audit", reader));
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText("admin").first()).toBeVisible();
  await expect(page).toHaveURL(/#\/audit$/);
});

test("without a session every route leads to the sign-in and back", async ({ page, server }) => {
  await page.goto(`${server.url}/#/users/1`);
  await page.getByLabel("API key").fill(server.key);
  await page.getByLabel("API key").press("Enter");
  await expect(page.getByRole("heading", { name: "User 1", level: 1 })).toBeVisible();
});

test("wrong keys are refused, and rate limited", async ({ page, ownServer, watch }) => {
  // The browser logs refused requests.
  watch.allow(/status of (401|429)/);
  const server = await ownServer();
  await page.goto(server.url);
  const key = page.getByLabel("API key");
  const enter = async () => {
    await key.fill(`rck_${"wrong".repeat(8)}`);
    const answered = page.waitForResponse((response) => response.url().endsWith("/session"));
    await page.getByRole("button", { name: "Sign in" }).click();
    return (await answered).status();
  };
  expect(await enter()).toBe(401);
  await expect(page.getByRole("alert")).toContainText("Unknown key");
  let status = 401;
  for (let tries = 0; status === 401 && tries < 10; tries += 1) status = await enter();
  expect(status).toBe(429);
  await expect(page.getByRole("alert")).toContainText(/Try again in \d+ seconds/);
});
