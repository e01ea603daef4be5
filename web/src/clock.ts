// The time, for texts like "3 minutes ago". It stands still while nobody looks.
import { signal } from "@preact/signals";

/** Now, in seconds since 1970, a second at a time. */
export const nowS = signal(Math.floor(Date.now() / 1000));

const tick = () => {
  if (typeof document === "undefined" || !document.hidden) nowS.value = Math.floor(Date.now() / 1000);
};

/** Lets the time pass. */
export function startClock(): void {
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
}
