import { describe, expect, it } from "vitest";
import { backoffMs } from "../src/backoff";

describe("backoff", () => {
  it("is 0 without failures", () => {
    expect(backoffMs(0, 0.5)).toBe(0);
    expect(backoffMs(-1, 0.5)).toBe(0);
  });

  it("doubles up to its limit", () => {
    expect([1, 2, 3, 4, 5, 6].map((failures) => backoffMs(failures, 1))).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
    expect(backoffMs(10_000, 1)).toBe(15_000);
  });

  it("has jitter", () => {
    expect(backoffMs(3, 0)).toBe(3000);
    expect(backoffMs(3, 0.5)).toBe(3500);
  });
});
