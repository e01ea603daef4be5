/**
 * When somebody was here: what happened to them, turned into stretches of one status each, so that it can be drawn.
 *
 * Nothing is made up: where the history does not reach, the stretch says `unknown`.
 */

/** What the history says of one happening. */
export interface Happening {
  readonly at_ms: number;
  /** arrived, left or transition. */
  readonly event: string;
  readonly from?: string | null;
  readonly to?: string | null;
}

/** A stretch of one status. */
export interface Stretch {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly status: string;
}

/** What is drawn. */
export interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
}

/**
 * The stretches that fill `span`, oldest first. `happenings` come newest first, as the server gives them; `isWhole` says
 * that there are no older ones than these.
 */
export function stretchesOf(happenings: readonly Happening[], span: Span, isWhole: boolean): Stretch[] {
  const oldestFirst = [...happenings].reverse();
  const stretches: Stretch[] = [];
  let status = statusBefore(oldestFirst[0], isWhole);
  let since = -Infinity;
  for (const happening of oldestFirst) {
    push(stretches, { from_ms: since, to_ms: happening.at_ms, status }, span);
    status = statusAfter(happening, status);
    since = happening.at_ms;
  }
  push(stretches, { from_ms: since, to_ms: Infinity, status }, span);
  return stretches;
}

/** How long each status lasted within the stretches, in milliseconds. */
export function totalsOf(stretches: readonly Stretch[]): Map<string, number> {
  const totals = new Map<string, number>();
  for (const { from_ms, to_ms, status } of stretches) {
    totals.set(status, (totals.get(status) ?? 0) + to_ms - from_ms);
  }
  return totals;
}

/** What somebody was before the first thing that is known of them. */
function statusBefore(first: Happening | undefined, isWhole: boolean): string {
  if (!isWhole) return "unknown";
  if (first === undefined) return "offline";
  if (first.event === "transition" && first.from != null) return first.from;
  return first.event === "arrived" ? "offline" : "unknown";
}

function statusAfter(happening: Happening, before: string): string {
  switch (happening.event) {
    case "left":
      return "offline";
    case "arrived":
      // The transition beside it says as what; it may have come first.
      return before === "offline" || before === "unknown" ? "online" : before;
    default:
      return happening.to ?? before;
  }
}

/** Adds what lies within the span, and lengthens the last stretch where the status is the same. */
function push(stretches: Stretch[], stretch: Stretch, span: Span): void {
  const from_ms = Math.max(stretch.from_ms, span.from_ms);
  const to_ms = Math.min(stretch.to_ms, span.to_ms);
  if (to_ms <= from_ms) return;
  const last = stretches[stretches.length - 1];
  if (last?.status === stretch.status) stretches[stretches.length - 1] = { ...last, to_ms };
  else stretches.push({ from_ms, to_ms, status: stretch.status });
}
