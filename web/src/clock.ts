// The current time, for texts such as "3 minutes ago". Not updated while the tab is hidden.
import { signal } from "@preact/signals";

/** In seconds since 1970. */
export const nowS = signal(Math.floor(Date.now() / 1000));

const tick = () => {
  if (typeof document === "undefined" || !document.hidden) nowS.value = Math.floor(Date.now() / 1000);
};

export function startClock(): void {
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
}
