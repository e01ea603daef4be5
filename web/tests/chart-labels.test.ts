import { describe, expect, it } from "vitest";
import { clockLabels } from "../src/ui/chart-labels";

describe("labels of the time axis", () => {
  const marks = (first: number, step: number) => [0, 1, 2, 3].map((n) => first + n * step);

  it("have seconds if minutes would be equal", () => {
    const labels = clockLabels(marks(1_800_000_000, 15), 45, "en-GB");
    expect(new Set(labels).size).toBe(4);
    expect(labels[0]).toMatch(/^\d\d:\d\d:\d\d$/);
    expect(clockLabels(marks(1_800_000_000, 60), 300, "zh-CN")[1]).toMatch(/^\d\d:\d\d:\d\d$/);
  });

  it("have minutes over an hour", () => {
    expect(clockLabels(marks(1_800_000_000, 900), 3600, "en-US")[0]).toMatch(/^\d\d:\d\d$/);
  });

  it("are not repeated", () => {
    expect(clockLabels([1_800_000_000, 1_800_000_000.5], 1, "en-GB")[1]).toBe("");
  });
});
