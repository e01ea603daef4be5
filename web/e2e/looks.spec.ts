// How it looks and how it is used: language, theme, a phone, the keyboard, and what axe-core finds.
import axe from "axe-core";
import type { Page } from "@playwright/test";
import { FILM } from "./fill";
import { expect, figure, goTo, test } from "./fixtures";
import type { Server } from "./server";

/** Every page, and the heading by which one knows that it is there. */
const PLACES: [path: string, heading: string | RegExp][] = [
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

/** Shows a page, whole. */
async function show(page: Page, server: Server, [path, heading]: (typeof PLACES)[number]): Promise<void> {
  await goTo(page, server, path);
  await expect(page.getByRole("heading", { name: heading, level: 1 })).toBeVisible();
}

/** How far the page can be moved sideways. */
function sidewaysPx(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** What reaches beyond the right edge of the window, outside of frames that scroll. */
function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const scrolls = (element: Element | null): boolean =>
      element !== null && (["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    const isOut = (element: Element) => element.checkVisibility() && element.getBoundingClientRect().right > window.innerWidth + 1;
    const found = [...document.querySelectorAll("main *, header *")].filter((element) => isOut(element) && !scrolls(element.parentElement));
    return found.map((element) => `${element.tagName} ${element.className}: ${(element.textContent ?? "").slice(0, 40)}`);
  });
}

/** Words of a table's cells that are broken over several lines, though none is longer than a line. */
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

test("the language is switched, kept, and used for everything", async ({ open, server }) => {
  const page = await open("/");
  await page.getByLabel("Language").selectOption("中文");
  await expect(page.getByRole("heading", { name: "总览", level: 1 })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "总览", level: 1 })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
  for (const [path, heading] of [["/swarms", "种子群"], ["/users", "用户"], ["/staff", "管理"], ["/presence", "在线状态"], ["/pipeline", "流水线"], ["/access/users", "访问控制"], ["/audit", "审计记录"]]) {
    await page.goto(`${server.url}/#${path}`);
    await expect(page.getByRole("heading", { name: heading!, level: 1 })).toBeVisible();
  }
  await page.getByLabel("语言").selectOption("English");
  await expect(page.getByRole("heading", { name: "Audit trail", level: 1 })).toBeVisible();
});

test.describe("with a browser that asks for Chinese", () => {
  test.use({ locale: "zh-CN" });
  test("the page speaks it from the start", async ({ page, server }) => {
    await page.goto(server.url);
    await expect(page.getByRole("heading", { name: "登录" })).toBeVisible();
  });
});

test("the theme is switched and kept, and follows the system until then", async ({ open }) => {
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

  test("no page scrolls sideways", async ({ open, server }) => {
    const page = await open("/");
    for (const place of PLACES) {
      await show(page, server, place);
      expect.soft(await sidewaysPx(page), place[0]).toBe(0);
      expect.soft(await tooWide(page), place[0]).toEqual([]);
      expect.soft(await brokenWords(page), place[0]).toEqual([]);
    }
  });

  test("a torrent with many peers shows the first ten, and the rest when asked", async ({ open, ownServer }) => {
    const server = await ownServer();
    await server.addTorrent(113, "A torrent with many peers");
    for (let user = 120; user < 132; user += 1) {
      await server.addUser(user);
      await server.announce(user, 113, { left: 1_000 });
    }
    const page = await open("/swarms/113", server);
    const peers = page.getByRole("table", { name: "Peers" });
    await expect(figure(page, "Leechers")).toHaveText("12");
    // One row is the heading.
    await expect(peers.getByRole("row")).toHaveCount(11);
    await page.getByRole("button", { name: "Show 2 more" }).first().click();
    await expect(peers.getByRole("row")).toHaveCount(13);
  });

  test("the menu leads to every page", async ({ open }) => {
    const page = await open("/");
    await expect(page.getByRole("link", { name: "Swarms" })).toBeHidden();
    for (const name of ["Swarms", "Users", "Staff", "Presence", "Pipeline", "Access"]) {
      await page.getByRole("button", { name: "Menu" }).click();
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
      await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
    }
  });

  test("signing in and the member's page do not scroll sideways either", async ({ page, server }) => {
    await page.goto(server.url);
    await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
    expect(await sidewaysPx(page)).toBe(0);
    await page.goto(`${server.url}/me#token=${server.token(1)}`);
    await expect(page.getByRole("heading", { name: "My friends" })).toBeVisible();
    expect(await sidewaysPx(page)).toBe(0);
  });
});

test.describe("in a window of 1024 px", () => {
  test.use({ viewport: { width: 1024, height: 800 } });

  test("no word is broken, and names have room", async ({ open, server }) => {
    const page = await open("/");
    for (const place of PLACES) {
      await show(page, server, place);
      expect.soft(await tooWide(page), place[0]).toEqual([]);
      expect.soft(await brokenWords(page), place[0]).toEqual([]);
      const scrolls = (frames: Element[]) => frames.filter((frame) => frame.scrollWidth > frame.clientWidth).map((frame) => frame.textContent?.slice(0, 80));
      expect.soft(await page.locator(".table-frame").evaluateAll(scrolls), `${place[0]}: tables that are wider than their frame`).toEqual([]);
    }
    await goTo(page, server, "/access/torrents");
    const name = await page.getByRole("link", { name: FILM.name }).boundingBox();
    expect(name?.width).toBeGreaterThan(60);
  });
});

test("the marks of a chart are told apart, and what is counted is whole", async ({ open }) => {
  const page = await open("/");
  const charts = page.locator(".chart-frame[data-ticks]");
  await expect(charts).toHaveCount(6);
  for (const ticks of await charts.evaluateAll((frames) => frames.map((frame) => (frame as HTMLElement).dataset["ticks"] ?? ""))) {
    const labels = ticks.split("|");
    expect(new Set(labels).size, ticks).toBe(labels.length);
  }
  const people = page.getByRole("img", { name: "People online" });
  await expect(people).toHaveAttribute("data-ticks", /^\d[\d,]*(\|\d[\d,]*)+$/);
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

/** Presses Tab until the focus is on what has this text, and checks that the focus can be seen there. */
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
      expect(focused.isMarked, `the focus on “${text}” can be seen`).toBe(true);
      return;
    }
  }
  throw new Error(`no way to “${text}” with ${key}`);
}

// In parts, so that they can run side by side.
for (const part of [0, 1, 2, 3]) {
  test(`axe-core finds nothing serious in either theme, part ${part + 1} of 4`, async ({ open, page, server }) => {
    const places = PLACES.filter((_, at) => at % 4 === part);
    await open("/");
    for (const place of places) {
      await show(page, server, place);
      expect.soft(await violationsInBothThemes(page), place[0]).toEqual([]);
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

/** What axe-core calls serious or critical, and where. Only colours differ between the themes. */
async function violationsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await violations(page, null);
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  const dark = await violations(page, ["color-contrast", "link-in-text-block"]);
  return [...light, ...dark.map((found) => `dark: ${found}`)];
}

async function violations(page: Page, rules: string[] | null): Promise<string[]> {
  // Into the page past its Content-Security-Policy, once a load.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const found = await page.evaluate(async (only) => {
    const runner = (window as unknown as { axe: typeof axe }).axe;
    const options = only ? { runOnly: { type: "rule" as const, values: only } } : {};
    return (await runner.run(document, { ...options, resultTypes: ["violations"] })).violations;
  }, rules);
  const bad = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  return bad.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")} ${node.any[0]?.message ?? ""}`));
}
