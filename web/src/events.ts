// Who came and went, put together from what the feed tells and what was asked for.
import type { PresenceOccurrence } from "./api/types";

/** Both lists as one, newest first, nothing twice, at most so many. */
export function merged(
  known: readonly PresenceOccurrence[],
  more: readonly PresenceOccurrence[],
  most: number,
): readonly PresenceOccurrence[] {
  const seen = new Set(known.map(identityOf));
  const news = more.filter((event) => {
    const id = identityOf(event);
    return !seen.has(id) && seen.add(id);
  });
  if (news.length === 0) return known;
  return [...news, ...known].sort((a, b) => b.at_ms - a.at_ms).slice(0, most);
}

function identityOf(event: PresenceOccurrence): string {
  return `${event.at_ms} ${event.user} ${event.event} ${event.from ?? ""} ${event.to ?? ""} ${event.platform ?? ""}`;
}
