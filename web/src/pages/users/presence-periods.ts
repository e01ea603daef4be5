// Presence events as periods of one status each. Where the history does not reach, the status is `unknown`.

export interface HistoryEvent {
  readonly at_ms: number;
  /** arrived, left or transition. */
  readonly event: string;
  readonly from?: string | null;
  readonly to?: string | null;
}

export interface Period {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly status: string;
}

export interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
}

/**
 * The periods that fill `span`, oldest first. `events` are newest first, as the server returns them; `isComplete` means
 * that there are no older events.
 */
export function periodsOf(events: readonly HistoryEvent[], span: Span, isComplete: boolean): Period[] {
  const oldestFirst = [...events].reverse();
  const periods: Period[] = [];
  let status = statusBefore(oldestFirst[0], isComplete);
  let since = -Infinity;
  for (const event of oldestFirst) {
    push(periods, { from_ms: since, to_ms: event.at_ms, status }, span);
    status = statusAfter(event, status);
    since = event.at_ms;
  }
  push(periods, { from_ms: since, to_ms: Infinity, status }, span);
  return periods;
}

/** Milliseconds by status. */
export function totalsOf(periods: readonly Period[]): Map<string, number> {
  const totals = new Map<string, number>();
  for (const { from_ms, to_ms, status } of periods) {
    totals.set(status, (totals.get(status) ?? 0) + to_ms - from_ms);
  }
  return totals;
}

function statusBefore(first: HistoryEvent | undefined, isComplete: boolean): string {
  if (!isComplete) return "unknown";
  if (first === undefined) return "offline";
  if (first.event === "transition" && first.from != null) return first.from;
  return first.event === "arrived" ? "offline" : "unknown";
}

function statusAfter(event: HistoryEvent, before: string): string {
  switch (event.event) {
    case "left":
      return "offline";
    case "arrived":
      // A transition beside it has the status, and may come first.
      return before === "offline" || before === "unknown" ? "online" : before;
    default:
      return event.to ?? before;
  }
}

/** Clips to the span, and extends the last period if the status is the same. */
function push(periods: Period[], period: Period, span: Span): void {
  const from_ms = Math.max(period.from_ms, span.from_ms);
  const to_ms = Math.min(period.to_ms, span.to_ms);
  if (to_ms <= from_ms) return;
  const last = periods[periods.length - 1];
  if (last?.status === period.status) periods[periods.length - 1] = { ...last, to_ms };
  else periods.push({ from_ms, to_ms, status: period.status });
}
