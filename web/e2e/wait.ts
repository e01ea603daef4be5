// Waiting for what happens elsewhere: asks again until it is so, and says what was waited for when it never is.

const PAUSE_MS = 50;

/** Waits until it holds. What it throws meanwhile means that it does not hold yet. */
export async function eventually(what: string, limitMs: number, holds: () => Promise<boolean> | boolean): Promise<void> {
  const until = Date.now() + limitMs;
  let last: unknown = "it did not hold";
  for (;;) {
    try {
      if (await holds()) return;
    } catch (thrown) {
      last = thrown;
    }
    if (Date.now() > until) throw new Error(`waited in vain for ${what}: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
