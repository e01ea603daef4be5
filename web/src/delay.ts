// How long answers to pings take, in words that are true: the server measures up to ten seconds, and what took longer is
// "more than" that.
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

/** Half of them take no longer. */
export function medianWords(delay: HeartbeatDelay): string {
  return `${delay.p50_exceeds ? "> " : ""}${millis(delay.p50)}`;
}

/** How long nearly all of them take, or how many take longer than can be told. */
export function slowestWords(delay: HeartbeatDelay): string {
  return delay.p99_exceeds ? t.few(millis(delay.p99)) : t.most(millis(delay.p99));
}
