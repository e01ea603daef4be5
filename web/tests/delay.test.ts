import { afterEach, describe, expect, it } from "vitest";
import { medianText, p99Text } from "../src/delay";
import { counted } from "../src/format";
import { setLanguage } from "../src/i18n";

afterEach(() => setLanguage("en"));

describe("heartbeat delays", () => {
  const quick = { p50: 0.4, p99: 850, p50_exceeds: false, p99_exceeds: false };

  it("show the 99th percentile", () => {
    expect(medianText(quick)).toBe("0.4 ms");
    expect(p99Text(quick)).toBe("99 of 100 within 850 ms");
  });

  it("show delays above the measured range as more than it", () => {
    const slow = { ...quick, p99: 10_000, p99_exceeds: true };
    expect(p99Text(slow)).toBe("more than 1 of 100 over 10 s");
    setLanguage("zh");
    expect(p99Text(slow)).toBe("超过 1% 多于 10 s");
    expect(medianText({ ...slow, p50: 10_000, p50_exceeds: true })).toBe("> 10 s");
  });
});

describe("counted", () => {
  it("has no plural for one", () => {
    expect(counted(1, "torrent")).toBe("1 torrent");
    expect(counted("1", "entry", "entries")).toBe("1 entry");
    expect(counted(0, "torrent")).toBe("0 torrents");
    expect(counted(1_204, "torrent")).toBe("1,204 torrents");
    expect(counted(2, "entry", "entries")).toBe("2 entries");
  });
});
