// Which occurrences are shown, and how many are waiting while the list stands still.
import type { RecentEvent } from "../../api/types";

/** What somebody wants to see. */
export type Kind = "all" | "comings" | "status";

/** Those of a kind, at most so many. */
export function ofKind(events: readonly RecentEvent[], kind: Kind, most: number): RecentEvent[] {
  const fits = (event: RecentEvent) => kind === "all" || (event.event === "status") === (kind === "status");
  const shown: RecentEvent[] = [];
  for (const event of events) {
    if (shown.length >= most) break;
    if (fits(event)) shown.push(event);
  }
  return shown;
}

/** How many of the newest came after the list was stopped. */
export function newSince(events: readonly RecentEvent[], frozen: readonly RecentEvent[]): number {
  const known = new Set(frozen);
  let news = 0;
  for (const event of events) if (!known.has(event)) news += 1;
  return news;
}
