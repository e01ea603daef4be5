// Layout and accessibility: language, theme, phone, keyboard, axe-core.
import axe from "axe-core";
import type { Page } from "@playwright/test";
import { FILM } from "./test-data";
import { expect, figure, goTo, test } from "./fixtures";
import type { Server } from "./server";

/** Every page with its heading. */
const ROUTES: [path: string, heading: string | RegExp][] = [
  ["/", "Overview"],
  ["/swarms", "Swarms"],
  [`/swarms/${FILM.id}`, FILM.name],
  ["/users", "Users"],
  ["/users/1", "User 1"],
  ["/users/1?tab=torrents", "User 1"],
  ["/users/1?tab=why", "User 1"],
  [`/users/1?tab=why&torrent=${FILM.id}`, "User 1"],
  ["/users/1?tab=presence", "User 1"],
  ["/staff", "Staff"],
  ["/presence", "Presence"],
  ["/pipeline", "Pipeline"],
  ["/access/users", "Access"],
  ["/access/torrents", "Access"],
  ["/access/clients", "Access"],
  ["/access/ports", "Access"],
  ["/access/multipliers", "Access"],
  ["/access/keys", "Access"],
  ["/audit", "Audit trail"],
];

async function show(page: Page, server: Server, [path, heading]: (typeof ROUTES)[number]): Promise<void> {
  await goTo(page, server, path);
  await expect(page.getByRole("heading", { name: heading, level: 1 })).toBeVisible();
}

/** Horizontal overflow of the page. */
function overflowPx(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Elements beyond the right edge, outside of scrolling frames. */
function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const scrolls = (element: Element | null): boolean =>
      element !== null && (["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    const isOut = (element: Element) => element.checkVisibility() && element.getBoundingClientRect().right > window.innerWidth + 1;
    const found = [...document.querySelectorAll("main *, header *")].filter((element) => isOut(element) && !scrolls(element.parentElement));
    return found.map((element) => `${element.tagName} ${element.className}: ${(element.textContent ?? "").slice(0, 40)}`);
  });
}

/** Words that are broken over several lines. */
function brokenWords(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const broken: string[] = [];
    const range = document.createRange();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const parent = node.parentElement;
      if (!parent?.checkVisibility() || parent.closest("code, bdi, pre, .hash, .visually-hidden")) continue;
      for (const word of (node.textContent ?? "").matchAll(/[A-Za-z]{3,}/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
      }
    }
    return broken;
  });
}

test("the language is switched, stored and used on all pages", async ({ open, server }) => {
  const page = await open("/");
  await page.getByLabel("Language").selectOption("中文");
  await expect(page.getByRole("heading", { name: "总览", level: 1 })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "总览", level: 1 })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
  for (const [path, heading] of [["/swarms", "种子群"], ["/users", "用户"], ["/staff", "管理"], ["/presence", "在线状态"], ["/pipeline", "流水线"], ["/access/users", "访问控制"], ["/audit", "审计日志"]]) {
    await page.goto(`${server.url}/#${path}`);
    await expect(page.getByRole("heading", { name: heading!, level: 1 })).toBeVisible();
  }
  await page.getByLabel("语言").selectOption("English");
  await expect(page.getByRole("heading", { name: "Audit trail", level: 1 })).toBeVisible();
});

test.describe("with a browser that asks for Chinese", () => {
  test.use({ locale: "zh-CN" });
  test("the first page is Chinese", async ({ page, server }) => {
    await page.goto(server.url);
    await expect(page.getByRole("heading", { name: "登录" })).toBeVisible();
  });
});

test("the theme follows the system until it is switched, and is stored", async ({ open }) => {
  const page = await open("/");
  const brightness = () =>
    page.evaluate(() => {
      const [red = 0, green = 0, blue = 0] = (getComputedStyle(document.documentElement).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
      return (red + green + blue) / 3;
    });
  expect(await brightness()).toBeGreaterThan(200);
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(brightness).toBeLessThan(60);
  await page.getByLabel("Theme").selectOption("Light");
  await expect.poll(brightness).toBeGreaterThan(200);
  await page.getByLabel("Theme").selectOption("Dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.reload();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  expect(await brightness()).toBeLessThan(60);
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test("no page scrolls horizontally", async ({ open, server }) => {
    const page = await open("/");
    for (const route of ROUTES) {
      await show(page, server, route);
      expect.soft(await overflowPx(page), route[0]).toBe(0);
      expect.soft(await tooWide(page), route[0]).toEqual([]);
      expect.soft(await brokenWords(page), route[0]).toEqual([]);
    }
  });

  test("a torrent with many peers shows ten at first", async ({ open, ownServer }) => {
    const server = await ownServer();
    await server.addTorrent(113, "A torrent with many peers");
    for (let user = 120; user < 132; user += 1) {
      await server.addUser(user);
      await server.announce(user, 113, { left: 1_000 });
    }
    const page = await open("/swarms/113", server);
    const peers = page.getByRole("table", { name: "Peers" });
    await expect(figure(page, "Leechers")).toHaveText("12");
    // Including the heading.
    await expect(peers.getByRole("row")).toHaveCount(11);
    await page.getByRole("button", { name: "Show 2 more" }).first().click();
    await expect(peers.getByRole("row")).toHaveCount(13);
  });

  test("the menu links to every page", async ({ open }) => {
    const page = await open("/");
    await expect(page.getByRole("link", { name: "Swarms" })).toBeHidden();
    for (const name of ["Swarms", "Users", "Staff", "Presence", "Pipeline", "Access"]) {
      await page.getByRole("button", { name: "Menu" }).click();
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
      await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
    }
  });

  test("sign-in and member's page do not scroll horizontally", async ({ page, server }) => {
    await page.goto(server.url);
    await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
    expect(await overflowPx(page)).toBe(0);
    await page.goto(`${server.url}/me#token=${server.token(1)}`);
    await expect(page.getByRole("heading", { name: "My friends" })).toBeVisible();
    expect(await overflowPx(page)).toBe(0);
  });
});

test.describe("in a window of 1024 px", () => {
  test.use({ viewport: { width: 1024, height: 800 } });

  test("no word is broken, and names are wide enough", async ({ open, server }) => {
    const page = await open("/");
    for (const route of ROUTES) {
      await show(page, server, route);
      expect.soft(await tooWide(page), route[0]).toEqual([]);
      expect.soft(await brokenWords(page), route[0]).toEqual([]);
      const scrolls = (frames: Element[]) => frames.filter((frame) => frame.scrollWidth > frame.clientWidth).map((frame) => frame.textContent?.slice(0, 80));
      expect.soft(await page.locator(".table-frame").evaluateAll(scrolls), `${route[0]}: tables that are wider than their frame`).toEqual([]);
    }
    await goTo(page, server, "/access/torrents");
    const name = await page.getByRole("link", { name: FILM.name }).boundingBox();
    expect(name?.width).toBeGreaterThan(60);
  });
});

test("chart ticks are distinct, and counts are whole numbers", async ({ open }) => {
  const page = await open("/");
  const charts = page.locator(".chart-frame[data-ticks]");
  await expect(charts).toHaveCount(6);
  for (const ticks of await charts.evaluateAll((frames) => frames.map((frame) => (frame as HTMLElement).dataset["ticks"] ?? ""))) {
    const labels = ticks.split("|");
    expect(new Set(labels).size, ticks).toBe(labels.length);
  }
  const users = page.getByRole("img", { name: "Users online" });
  await expect(users).toHaveAttribute("data-ticks", /^\d[\d,]*(\|\d[\d,]*)+$/);
});

test("the keyboard alone: sign in, swarms, a torrent, sign out", async ({ page, server }) => {
  await page.goto(server.url);
  await expect(page.getByLabel("API key")).toBeFocused();
  await page.keyboard.insertText(server.key);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  await tabTo(page, "Swarms");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Swarms", level: 1 })).toBeFocused();
  await expect(page.getByRole("link", { name: FILM.name })).toBeVisible();
  await tabTo(page, FILM.name);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: FILM.name, level: 1 })).toBeVisible();
  await tabTo(page, "Sign out", "Shift+Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
});

/** Presses Tab until the element with this text has the focus, and checks that the focus is visible. */
async function tabTo(page: Page, text: string, key = "Tab"): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press(key);
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element) return null;
      const style = getComputedStyle(element);
      return { text: (element.textContent ?? "").trim(), isMarked: style.outlineStyle !== "none" || style.boxShadow !== "none" };
    });
    if (focused?.text === text) {
      expect(focused.isMarked, `the focus on “${text}” is visible`).toBe(true);
      return;
    }
  }
  throw new Error(`“${text}” is not reachable with ${key}`);
}

// In parts, to run in parallel.
for (const part of [0, 1, 2, 3]) {
  test(`axe-core finds nothing serious in either theme, part ${part + 1} of 4`, async ({ open, page, server }) => {
    const routes = ROUTES.filter((_, at) => at % 4 === part);
    await open("/");
    for (const route of routes) {
      await show(page, server, route);
      expect.soft(await violationsInBothThemes(page), route[0]).toEqual([]);
    }
    if (part === 2) {
      await page.goto(`${server.url}/me#token=${server.token(1)}`);
      await expect(page.getByRole("heading", { name: "My friends" })).toBeVisible();
      expect.soft(await violationsInBothThemes(page), "/me").toEqual([]);
    }
    if (part === 3) {
      await page.getByRole("button", { name: "Sign out" }).click();
      await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
      expect.soft(await violationsInBothThemes(page), "sign-in").toEqual([]);
    }
  });
}

/** Serious and critical violations. Only colours differ between the themes. */
async function violationsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await violations(page, null);
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  const dark = await violations(page, ["color-contrast", "link-in-text-block"]);
  return [...light, ...dark.map((found) => `dark: ${found}`)];
}

async function violations(page: Page, rules: string[] | null): Promise<string[]> {
  // `evaluate` bypasses the Content-Security-Policy.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const found = await page.evaluate(async (only) => {
    const runner = (window as unknown as { axe: typeof axe }).axe;
    const options = only ? { runOnly: { type: "rule" as const, values: only } } : {};
    return (await runner.run(document, { ...options, resultTypes: ["violations"] })).violations;
  }, rules);
  const bad = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  return bad.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")} ${node.any[0]?.message ?? ""}`));
}
