// Fixtures: a server with test data, and a page monitor. Every test fails if its page logs an error, requests anything from
// another host, or opens a browser dialog (which only injected script does).
import { test as base, expect, type BrowserContext, type ConsoleMessage, type Page } from "@playwright/test";
import { addTestData } from "./test-data";
import { Server } from "./server";

export { expect };

/** Records faults of all pages of a browser context. */
export class PageMonitor {
  private readonly seen: string[] = [];
  private readonly allowed: RegExp[] = [];
  private isStopped = false;

  constructor(context: BrowserContext) {
    context.on("console", (message) => this.onConsole(message));
    context.on("weberror", (error) => this.note(`uncaught error: ${error.error().stack ?? error.error().message}`));
    context.on("request", (request) => this.onRequest(request.url()));
    context.on("page", (page) => {
      page.on("websocket", (socket) => this.onRequest(socket.url()));
      page.on("dialog", (dialog) => {
        this.note(`a ${dialog.type()} dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
    });
  }

  /** Ignores faults that match, for tests that cause them. */
  allow(pattern: RegExp): void {
    this.allowed.push(pattern);
  }

  /** Ignores everything from now on. */
  stop(): void {
    this.isStopped = true;
  }

    get faults(): string[] {
    return this.seen.filter((fault) => !this.allowed.some((pattern) => pattern.test(fault)));
  }

  private note(fault: string): void {
    if (!this.isStopped) this.seen.push(fault);
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
  watch: PageMonitor;
  /** Signs in by link and opens a route. */
  open(to: string, on?: Server, key?: string): Promise<Page>;
  /** Runs after the test, in reverse order, when its pages are no longer monitored. */
  atEnd(work: () => unknown): void;
  /** A server for this test only. */
  ownServer(settings?: Record<string, string>): Promise<Server>;
}

export const test = base.extend<TestParts, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await Server.start();
      try {
        await addTestData(server);
        await use(server);
      } finally {
        await server.end();
      }
    },
    { scope: "worker", timeout: 120_000 },
  ],

  watch: [
    async ({ context }, use) => {
      const watch = new PageMonitor(context);
      await use(watch);
      expect(watch.faults, "faults of the pages").toEqual([]);
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

/** Opens a route and waits until it has rendered and loaded. */
export async function goTo(page: Page, server: Server, route: string): Promise<void> {
  await page.goto(`${server.url}/#${route}`);
  // The address changes first; the old page may remain for a frame.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await expect(page.getByRole("status").filter({ hasText: /^Loading…$/ })).toHaveCount(0);
}

/** Table rows that contain the text. */
export function row(page: Page, text: string | RegExp) {
  return page.getByRole("row").filter({ hasText: text });
}

/** The value of a figure, by its label. */
export function figure(page: Page, label: string) {
  return page.getByRole("term").filter({ hasText: new RegExp(`^${label}$`) }).locator("xpath=following-sibling::dd[1]");
}
