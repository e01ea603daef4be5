// When somebody was here, drawn: a strip of the last hours or days, and in words how long each status lasted.
import { useState } from "preact/hooks";
import { nowS } from "../../clock";
import * as format from "../../format";
import { Duration, Select, StatusDot, statusName } from "../../ui";
import { t } from "./texts";
import { stretchesOf, totalsOf, type Happening, type Stretch } from "./timeline";

const RANGES = { hour: 1, hours6: 6, day: 24, week: 24 * 7 } as const;
type Range = keyof typeof RANGES;

const WIDTH = 1000;
const HEIGHT = 26;
/** What is shorter than this would not be seen. */
const WIDTH_MIN = 1.5;
// A strip that moves each second would be redrawn for nothing.
const STEP_S = 5;

/** The strip of a person. */
export function Strip(props: { happenings: readonly Happening[]; isWhole: boolean }) {
  const [chosen, setRange] = useState<Range | null>(null);
  const to_ms = Math.ceil(nowS.value / STEP_S) * STEP_S * 1000;
  const range = chosen ?? rangeFor(props.happenings, props.isWhole, to_ms);
  const span = { from_ms: to_ms - RANGES[range] * 3_600_000, to_ms };
  const stretches = stretchesOf(props.happenings, span, props.isWhole);
  const isUnknown = stretches[0]?.status === "unknown" && !props.isWhole;
  return (
    <div class="strip">
      <div class="strip-head">
        <Totals stretches={stretches} />
        <Select bare label={t.range} value={range} onChange={(next: Range) => setRange(next)} options={rangeOptions()} />
      </div>
      <svg class="strip-drawing" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={labelOf(span.from_ms, span.to_ms)}>
        {stretches.map((stretch) => (
          <Piece key={stretch.from_ms} stretch={stretch} from_ms={span.from_ms} length_ms={span.to_ms - span.from_ms} />
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

/** The shortest range that shows all there is, up to a day. */
function rangeFor(happenings: readonly Happening[], isWhole: boolean, to_ms: number): Range {
  const oldest = happenings[happenings.length - 1]?.at_ms ?? to_ms;
  const hours = (to_ms - oldest) / 3_600_000;
  if (isWhole && hours <= 1) return "hour";
  return isWhole && hours > 6 ? "day" : "hours6";
}

function rangeOptions(): { value: Range; label: string }[] {
  return [
    { value: "hour", label: t.hour },
    { value: "hours6", label: t.hours6 },
    { value: "day", label: t.day },
    { value: "week", label: t.week },
  ];
}

function Piece(props: { stretch: Stretch; from_ms: number; length_ms: number }) {
  const { stretch, from_ms, length_ms } = props;
  const x = ((stretch.from_ms - from_ms) / length_ms) * WIDTH;
  const width = Math.max(((stretch.to_ms - stretch.from_ms) / length_ms) * WIDTH, WIDTH_MIN);
  const lasted = format.duration(Math.round((stretch.to_ms - stretch.from_ms) / 1000));
  // Besides colour, height tells: a full piece is here, a low one is not.
  const height = HEIGHTS[stretch.status] ?? 3;
  return (
    <rect class={`piece piece-${stretch.status}`} x={x} y={HEIGHT - height} width={width} height={height}>
      <title>{`${nameOf(stretch.status)} · ${lasted} · ${format.absolute(stretch.from_ms / 1000)}`}</title>
    </rect>
  );
}

const HEIGHTS: Record<string, number> = { online: HEIGHT, busy: HEIGHT, away: HEIGHT * 0.65, invisible: HEIGHT * 0.45, pending: HEIGHT * 0.3 };

function Totals(props: { stretches: readonly Stretch[] }) {
  const totals = [...totalsOf(props.stretches)].sort(([, a], [, b]) => b - a);
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
