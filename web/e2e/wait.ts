// Polling for a condition.

const PAUSE_MS = 50;

/** An exception counts as not yet. */
export async function eventually(what: string, limitMs: number, holds: () => Promise<boolean> | boolean): Promise<void> {
  const until = Date.now() + limitMs;
  let last: unknown = "the condition was false";
  for (;;) {
    try {
      if (await holds()) return;
    } catch (thrown) {
      last = thrown;
    }
    if (Date.now() > until) throw new Error(`timeout while waiting for ${what}: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
