// What every test has: a server with something in it, and a page that is watched. Whatever a test is about, it fails when
// its page reports an error, asks another host for anything, or opens a box of the browser (which only injected script does).
import { test as base, expect, type BrowserContext, type ConsoleMessage, type Page } from "@playwright/test";
import { fill } from "./fill";
import { Server } from "./server";

export { expect };

/** Watches everything that the pages of a browser context do. */
export class Watch {
  private readonly seen: string[] = [];
  private readonly allowed: RegExp[] = [];
  private isOver = false;

  constructor(context: BrowserContext) {
    context.on("console", (message) => this.onConsole(message));
    context.on("weberror", (error) => this.note(`an error nobody caught: ${error.error().stack ?? error.error().message}`));
    context.on("request", (request) => this.onRequest(request.url()));
    context.on("page", (page) => {
      page.on("websocket", (socket) => this.onRequest(socket.url()));
      page.on("dialog", (dialog) => {
        this.note(`a ${dialog.type()} box: ${dialog.message()}`);
        void dialog.dismiss();
      });
    });
  }

  /** Lets errors pass in which this is: for tests that bring them about. */
  allow(pattern: RegExp): void {
    this.allowed.push(pattern);
  }

  /** What happens from now on is the end of the test. */
  stop(): void {
    this.isOver = true;
  }

  /** What should not have happened. */
  get faults(): string[] {
    return this.seen.filter((fault) => !this.allowed.some((pattern) => pattern.test(fault)));
  }

  private note(fault: string): void {
    if (!this.isOver) this.seen.push(fault);
  }

  private onConsole(message: ConsoleMessage): void {
    if (message.type() === "error" || message.type() === "warning") {
      this.note(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    }
  }

  private onRequest(url: string): void {
    const { protocol, hostname } = new URL(url);
    const isOurs = protocol === "data:" || protocol === "blob:" || hostname === "127.0.0.1" || hostname === "localhost";
    if (!isOurs) this.note(`a request to another host: ${url}`);
  }
}

interface TestParts {
  watch: Watch;
  /** Signs in by link and goes to a place. */
  open(to: string, on?: Server, key?: string): Promise<Page>;
  /** Does this after the test, the latest first, when nobody looks at its pages any more. */
  atEnd(work: () => unknown): void;
  /** A server of the test's own; ended after it. */
  ownServer(settings?: Record<string, string>): Promise<Server>;
}

export const test = base.extend<TestParts, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await Server.start();
      try {
        await fill(server);
        await use(server);
      } finally {
        await server.end();
      }
    },
    { scope: "worker", timeout: 120_000 },
  ],

  watch: [
    async ({ context }, use) => {
      const watch = new Watch(context);
      await use(watch);
      expect(watch.faults, "what the pages did besides").toEqual([]);
    },
    { auto: true },
  ],

  open: async ({ page, server }, use) => {
    await use(async (to, on = server, key = on.key) => {
      await page.goto(on.signInLink(to, key));
      await expect(page.getByRole("link", { name: "Rollcall" })).toBeVisible();
      await expect(page).not.toHaveURL(/sign-in/);
      return page;
    });
  },

  atEnd: async ({ watch }, use) => {
    const works: (() => unknown)[] = [];
    await use((work) => void works.push(work));
    watch.stop();
    for (const work of works.reverse()) await work();
  },

  ownServer: async ({ atEnd }, use) => {
    await use(async (settings = {}) => {
      const server = await Server.start(settings);
      atEnd(() => server.end());
      return server;
    });
  },
});

/** Goes to a place of the dashboard, and waits until it has rendered and nothing on it is loading any more. */
export async function goTo(page: Page, server: Server, place: string): Promise<void> {
  await page.goto(`${server.url}/#${place}`);
  // The address changes first; what was there before may still stand for a frame.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await expect(page.getByRole("status").filter({ hasText: /^Loading…$/ })).toHaveCount(0);
}

/** The row of a table in which this is. */
export function row(page: Page, text: string | RegExp) {
  return page.getByRole("row").filter({ hasText: text });
}

/** A figure by its label: the text of its value. */
export function figure(page: Page, label: string) {
  return page.getByRole("term").filter({ hasText: new RegExp(`^${label}$`) }).locator("xpath=following-sibling::dd[1]");
}
