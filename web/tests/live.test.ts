import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const page = { hidden: false, onVisible: () => {} };

function respond(path: string): Response {
  if (path.startsWith("/api/v1/overview")) return Response.json({ at_ms: 1, alerts: [], health: [], gateway: {} });
  return Response.json({ items: [] });
}

describe("polling", () => {
  const fetched = vi.fn(async (path: string) => respond(path));
  const overviews = () => fetched.mock.calls.filter(([path]) => path === "/api/v1/overview").length;

  beforeEach(() => {
    vi.useFakeTimers();
    page.hidden = false;
    fetched.mockReset();
    fetched.mockImplementation(async (path) => respond(path));
    vi.stubGlobal("fetch", fetched);
    vi.stubGlobal("document", {
      get hidden() {
        return page.hidden;
      },
      addEventListener: (_: string, listener: () => void) => (page.onVisible = listener),
      removeEventListener: () => {},
    });
  });

  afterEach(async () => {
    (await import("../src/live")).stopLive();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("requests the overview at once and then every second", async () => {
    const { overview, startLive } = await import("../src/live");
    startLive();
    await vi.advanceTimersByTimeAsync(0);
    expect(overview.value?.at_ms).toBe(1);
    await vi.advanceTimersByTimeAsync(3000);
    expect(overviews()).toBe(4);
  });

  it("stops while the tab is hidden, and continues at once when it is visible", async () => {
    const { startLive } = await import("../src/live");
    startLive();
    await vi.advanceTimersByTimeAsync(0);
    page.hidden = true;
    page.onVisible();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(overviews()).toBe(1);
    page.hidden = false;
    page.onVisible();
    await vi.advanceTimersByTimeAsync(0);
    expect(overviews()).toBe(2);
  });

  it("reports an unreachable server after two failures, and when it answers again", async () => {
    const { connection, reconnects, startLive } = await import("../src/live");
    startLive();
    await vi.advanceTimersByTimeAsync(0);
    const before = reconnects.value;
    fetched.mockImplementation(() => Promise.reject(new TypeError("failed")));
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.value).toBe("live");
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.value).toBe("unreachable");
    fetched.mockImplementation(async (path) => respond(path));
    await vi.advanceTimersByTimeAsync(5000);
    expect(connection.value).toBe("live");
    expect(reconnects.value).toBe(before + 1);
  });

  it("drops answers that arrive after it was stopped", async () => {
    const { overview, startLive, stopLive } = await import("../src/live");
    startLive();
    stopLive();
    await vi.advanceTimersByTimeAsync(0);
    expect(overview.value).toBeNull();
  });
});
