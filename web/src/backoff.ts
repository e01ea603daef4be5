// Exponential backoff with jitter.

/** Delay after `failures` in a row. `random` is from 0 to 1. */
export function backoffMs(failures: number, random: number, limits = { firstMs: 1000, lastMs: 15_000 }): number {
  if (failures <= 0) return 0;
  const whole = Math.min(limits.lastMs, limits.firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(whole * (0.75 + 0.25 * random));
}
