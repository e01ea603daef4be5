// Filter of recent events, and the count of new ones while the list is paused.
import type { RecentEvent } from "../../api/types";

export type Kind = "all" | "joins" | "status";

/** At most `most`. */
export function ofKind(events: readonly RecentEvent[], kind: Kind, most: number): RecentEvent[] {
  const fits = (event: RecentEvent) => kind === "all" || (event.event === "status") === (kind === "status");
  const shown: RecentEvent[] = [];
  for (const event of events) {
    if (shown.length >= most) break;
    if (fits(event)) shown.push(event);
  }
  return shown;
}

/** Events that are not in the paused list. */
export function newSince(events: readonly RecentEvent[], paused: readonly RecentEvent[]): number {
  const known = new Set(paused);
  let added = 0;
  for (const event of events) if (!known.has(event)) added += 1;
  return added;
}
