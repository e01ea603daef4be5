import { afterEach, describe, expect, it } from "vitest";
import { setLanguage } from "../src/i18n";
import { tickLabels, ticksFor, type Unit } from "../src/ui/chart-ticks";

afterEach(() => setLanguage("en"));

const labelsOf = (high: number | null, unit: Unit) => tickLabels(ticksFor(high, unit), unit);

describe("ticks of a value axis", () => {
  it("are whole numbers for counts", () => {
    expect(labelsOf(1, "count")).toEqual(["0", "1"]);
    expect(labelsOf(2, "count")).toEqual(["0", "1", "2"]);
    expect(labelsOf(3, "count")).toEqual(["0", "1", "2", "3"]);
    expect(labelsOf(5, "count")).toEqual(["0", "2", "4", "6"]);
    expect(labelsOf(42, "count")).toEqual(["0", "20", "40", "60"]);
    expect(labelsOf(2_505, "count")).toEqual(["0", "1,000", "2,000", "3,000"]);
  });

  it("have as many digits as needed to distinguish them", () => {
    expect(labelsOf(0.2, "rate")).toEqual(["0.00/s", "0.05/s", "0.10/s", "0.15/s", "0.20/s"]);
    expect(labelsOf(0.3, "rate")).toEqual(["0.0/s", "0.1/s", "0.2/s", "0.3/s"]);
    expect(labelsOf(6.4, "rate")).toEqual(["0/s", "2/s", "4/s", "6/s", "8/s"]);
  });

  it("follow the units of bytes", () => {
    expect(labelsOf(2.6 * 1024 ** 3, "byteRate")).toEqual(["0 B/s", "1.00 GiB/s", "2.00 GiB/s", "3.00 GiB/s"]);
    expect(labelsOf(1.2 * 1024 ** 2, "byteRate")).toEqual(["0 B/s", "512 KiB/s", "1.00 MiB/s", "1.50 MiB/s"]);
    expect(labelsOf(1, "byteRate")).toEqual(["0 B/s", "1 B/s"]);
  });

  it("exist without data", () => {
    for (const unit of ["count", "rate", "byteRate"] as const) expect(ticksFor(null, unit)).toEqual([0, 1]);
    expect(ticksFor(Number.NaN, "count")).toEqual([0, 1]);
  });

  it("are few, end above the highest value, and are distinct in both languages", () => {
    for (const language of ["en", "zh"] as const) {
      setLanguage(language);
      for (const unit of ["count", "rate", "byteRate"] as const) {
        for (let high = 0.013; high < 1e13; high *= 1.37) {
          const ticks = ticksFor(high, unit);
          const labels = tickLabels(ticks, unit);
          expect(ticks.length, `${high} ${unit}`).toBeLessThanOrEqual(6);
          expect(ticks.at(-1)!, `${high} ${unit}`).toBeGreaterThanOrEqual(high * 0.999);
          expect(new Set(labels).size, `${high} ${unit}: ${labels.join(" ")}`).toBe(labels.length);
          if (unit === "count") expect(ticks.every(Number.isInteger), `${high}: ${ticks.join(" ")}`).toBe(true);
        }
      }
    }
  });
});
