// Texts of the heartbeat delay. The server measures up to ten seconds; longer delays are shown as "more than".
import type { HeartbeatDelay } from "./api/types";
import { millis } from "./format";
import { texts } from "./i18n";

const t = texts({
  en: {
    most: (time: string) => `99 of 100 within ${time}`,
    few: (time: string) => `more than 1 of 100 over ${time}`,
  },
  zh: {
    most: (time) => `99% 在 ${time} 以内`,
    few: (time) => `超过 1% 多于 ${time}`,
  },
});

export function medianText(delay: HeartbeatDelay): string {
  return `${delay.p50_exceeds ? "> " : ""}${millis(delay.p50)}`;
}

/** The 99th percentile. */
export function p99Text(delay: HeartbeatDelay): string {
  return delay.p99_exceeds ? t.few(millis(delay.p99)) : t.most(millis(delay.p99));
}
