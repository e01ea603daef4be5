// Ticks of a value axis: few, even, from 0 to just above the highest value, with distinct labels.
import * as format from "../format";

/** Counts are whole numbers: peers, users, entries. */
export type Unit = "count" | "rate" | "byteRate";

const INTERVALS_MAX = 4;
const DECIMAL_STEPS = [1, 2, 5, 10];
const BINARY_STEPS = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256];

/** The last one is the top of the axis. */
export function ticksFor(high: number | null, unit: Unit): number[] {
  const highest = high !== null && Number.isFinite(high) && high > 0 ? high : 0;
  const step = unit === "byteRate" ? binaryStep(highest) : decimalStep(highest, unit === "count" ? 1 : 0);
  const intervals = Math.max(1, Math.ceil(highest / step - 1e-9));
  // By division: 3 * 0.1 is not 0.3.
  return Array.from({ length: intervals + 1 }, (_, index) => (step < 1 ? index / Math.round(1 / step) : index * step));
}

function decimalStep(highest: number, least: number): number {
  if (highest === 0) return 1;
  const wanted = highest / INTERVALS_MAX;
  const base = 10 ** Math.floor(Math.log10(wanted));
  const step = base * (DECIMAL_STEPS.find((one) => wanted <= one * base * (1 + 1e-9)) ?? 10);
  return Math.max(step, least);
}

function binaryStep(highest: number): number {
  if (highest < 4) return 1;
  const base = 1024 ** Math.floor(Math.log2(highest) / 10);
  const wanted = highest / base / INTERVALS_MAX;
  return base * (BINARY_STEPS.find((one) => wanted <= one && one * base >= 1) ?? 256);
}

/** With as many digits as needed to distinguish them. */
export function tickLabels(ticks: readonly number[], unit: Unit): string[] {
  if (unit === "byteRate") return ticks.map((value) => format.byteRate(value));
  if (unit === "count") return ticks.map((value) => format.count(value));
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  const digits = step >= 1 ? 0 : Math.ceil(-Math.log10(step) - 1e-9);
  return ticks.map((value) => format.rateWith(value, digits));
}
