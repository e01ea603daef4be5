// Merges polled presence events into the stored list.
import type { RecentEvent } from "./api/types";

/** `isComplete` is false if events between `known` and `polled` were not in the answer: it held `limit` events, all new. */
export function mergeEvents(
  known: readonly RecentEvent[],
  polled: readonly RecentEvent[],
  bounds: { limit: number; max: number },
): { items: readonly RecentEvent[]; isComplete: boolean } {
  const seen = new Set(known.map(identityOf));
  const added = polled.filter((event) => {
    const id = identityOf(event);
    return !seen.has(id) && seen.add(id);
  });
  const isComplete = known.length === 0 || polled.length < bounds.limit || added.length < polled.length;
  if (added.length === 0) return { items: known, isComplete };
  const items = [...added, ...known].sort((a, b) => b.at_ms - a.at_ms).slice(0, bounds.max);
  return { items, isComplete };
}

function identityOf(event: RecentEvent): string {
  return `${event.at_ms} ${event.user} ${event.event} ${event.from ?? ""} ${event.to ?? ""} ${event.platform ?? ""}`;
}
