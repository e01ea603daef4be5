// Presence history as a strip of the last hours or days, with the total time of each status.
import { useState } from "preact/hooks";
import { nowS } from "../../clock";
import * as format from "../../format";
import { Duration, Select, StatusDot, statusName } from "../../ui";
import { t } from "./texts";
import { periodsOf, totalsOf, type HistoryEvent, type Period } from "./presence-periods";

const RANGES = { hour: 1, hours6: 6, day: 24, week: 24 * 7 } as const;
type Range = keyof typeof RANGES;

const WIDTH = 1000;
const HEIGHT = 26;
/** Shorter periods would be invisible. */
const WIDTH_MIN = 1.5;
// Redrawn every five seconds only.
const STEP_S = 5;

export function PresenceStrip(props: { events: readonly HistoryEvent[]; isComplete: boolean }) {
  const [selected, setRange] = useState<Range | null>(null);
  const to_ms = Math.ceil(nowS.value / STEP_S) * STEP_S * 1000;
  const range = selected ?? rangeFor(props.events, props.isComplete, to_ms);
  const span = { from_ms: to_ms - RANGES[range] * 3_600_000, to_ms };
  const periods = periodsOf(props.events, span, props.isComplete);
  const isUnknown = periods[0]?.status === "unknown" && !props.isComplete;
  return (
    <div class="strip">
      <div class="strip-head">
        <Totals periods={periods} />
        <Select bare label={t.range} value={range} onChange={(next: Range) => setRange(next)} options={rangeOptions()} />
      </div>
      <svg class="strip-drawing" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={labelOf(span.from_ms, span.to_ms)}>
        {periods.map((period) => (
          <PeriodRect key={period.from_ms} period={period} from_ms={span.from_ms} length_ms={span.to_ms - span.from_ms} />
        ))}
      </svg>
      <div class="strip-times" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span key={part}>{timeLabel(span.from_ms + part * (span.to_ms - span.from_ms), range)}</span>
        ))}
      </div>
      {isUnknown && <p class="note">{t.notReached}</p>}
    </div>
  );
}

/** The shortest range that shows the whole history, up to a day. */
function rangeFor(events: readonly HistoryEvent[], isComplete: boolean, to_ms: number): Range {
  const oldest = events[events.length - 1]?.at_ms ?? to_ms;
  const hours = (to_ms - oldest) / 3_600_000;
  if (isComplete && hours <= 1) return "hour";
  return isComplete && hours > 6 ? "day" : "hours6";
}

function rangeOptions(): { value: Range; label: string }[] {
  return [
    { value: "hour", label: t.hour },
    { value: "hours6", label: t.hours6 },
    { value: "day", label: t.day },
    { value: "week", label: t.week },
  ];
}

function PeriodRect(props: { period: Period; from_ms: number; length_ms: number }) {
  const { period, from_ms, length_ms } = props;
  const x = ((period.from_ms - from_ms) / length_ms) * WIDTH;
  const width = Math.max(((period.to_ms - period.from_ms) / length_ms) * WIDTH, WIDTH_MIN);
  const lasted = format.duration(Math.round((period.to_ms - period.from_ms) / 1000));
  // Height repeats what the colour shows.
  const height = HEIGHTS[period.status] ?? 3;
  return (
    <rect class={`period period-${period.status}`} x={x} y={HEIGHT - height} width={width} height={height}>
      <title>{`${nameOf(period.status)} · ${lasted} · ${format.absolute(period.from_ms / 1000)}`}</title>
    </rect>
  );
}

const HEIGHTS: Record<string, number> = { online: HEIGHT, busy: HEIGHT, away: HEIGHT * 0.65, invisible: HEIGHT * 0.45, pending: HEIGHT * 0.3 };

function Totals(props: { periods: readonly Period[] }) {
  const totals = [...totalsOf(props.periods)].sort(([, a], [, b]) => b - a);
  return (
    <ul class="strip-totals">
      {totals.map(([status, ms]) => (
        <li key={status}>
          {status === "unknown" ? <span class="dim">{t.unknown}</span> : <StatusDot status={status} />} <Duration s={Math.round(ms / 1000)} />
        </li>
      ))}
    </ul>
  );
}

function nameOf(status: string): string {
  return status === "unknown" ? t.unknown : statusName(status);
}

function labelOf(from_ms: number, to_ms: number): string {
  return t.timelineStrip(format.absolute(from_ms / 1000), format.absolute(to_ms / 1000));
}

function timeLabel(at_ms: number, range: Range): string {
  return range === "week" ? format.dayTime(at_ms) : format.clockTime(at_ms).slice(0, 5);
}
