// Line charts over time, by uPlot. Colours come from the style sheet, to follow the theme; the legend is HTML, for screen
// readers and translation.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as format from "../format";
import { language, locale } from "../i18n";
import { isDark } from "../theme";
import { clockLabels, STEPS_S } from "./chart-labels";
import { tickLabels, ticksFor, type Unit } from "./chart-ticks";

export interface Series {
  label: string;
  values: readonly (number | null)[];
  /** Colour of the palette, from 1 to 6; default: position in the list. */
  colour?: number;
  fill?: boolean;
}

const FORMATS: Record<Unit, (value: number) => string> = {
  count: (value) => format.count(Math.round(value)),
  rate: format.rate,
  byteRate: format.byteRate,
};

/** Widest digit of the labels in pixels; their font is 11 px. */
const LABEL_DIGIT_PX = 7;

/** `times` are in seconds since 1970. */
export function Chart(props: { series: readonly Series[]; times: readonly number[]; unit: Unit; height?: number; label?: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const height = props.height ?? 160;
  const dark = isDark();
  const tag = language.value;
  // Theme or series changes create a new chart; data changes update it.
  const chartKey = `${dark} ${tag} ${props.unit} ${height} ${props.series.map((one) => `${one.label}/${one.colour ?? ""}/${one.fill ?? ""}`).join("|")}`;

  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const created = new uPlot(optionsFor(props, box, height, setIndex), dataOf(props), box);
    plot.current = created;
    const resized = new ResizeObserver(() => created.setSize({ width: box.clientWidth, height }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      created.destroy();
      plot.current = null;
    };
  }, [chartKey]);

  useEffect(() => {
    plot.current?.setData(dataOf(props));
  }, [props.times, props.series]);

  const at = index ?? lastKnown(props);
  const formatValue = FORMATS[props.unit];
  return (
    <figure class="chart">
      <figcaption class="legend">
        {props.series.map((one, place) => {
          const value = at === null ? null : (one.values[at] ?? null);
          return (
            <span key={one.label} class="legend-item">
              <span class={`legend-key series-${one.colour ?? place + 1}`} aria-hidden="true" />
              {one.label} <strong class="number">{value === null ? format.NOTHING : formatValue(value)}</strong>
            </span>
          );
        })}
        <span class="legend-time number">{index !== null && props.times[index] ? format.clockTime(props.times[index] * 1000) : ""}</span>
      </figcaption>
      <div ref={frame} class="chart-frame" role="img" aria-label={props.label ?? props.series.map((one) => one.label).join(", ")} style={{ height: `${height}px` }} />
    </figure>
  );
}

function lastKnown(props: { series: readonly Series[]; times: readonly number[] }): number | null {
  return props.times.length > 0 ? props.times.length - 1 : null;
}

function dataOf(props: { series: readonly Series[]; times: readonly number[] }): uPlot.AlignedData {
  return [props.times as number[], ...props.series.map((one) => one.values as (number | null)[])];
}

function optionsFor(
  props: { series: readonly Series[]; unit: Unit },
  box: HTMLElement,
  height: number,
  setIndex: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: colour("--dim"), font, ticks: { show: false }, grid: { stroke: colour("--line-faint"), width: 1 } };
  const ticks = (high: number) => ticksFor(high, props.unit);
  return {
    width: box.clientWidth || 300,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    // Room at the right for half of the last time label.
    padding: [8, 4 * LABEL_DIGIT_PX + 2, 0, 0],
    scales: { x: { time: true }, y: { range: (_self, _low, high) => [0, ticks(high).at(-1) ?? 1] } },
    axes: [
      { ...axis, size: 24, space: 70, incrs: STEPS_S, values: (self, marks) => clockLabels(marks, spanOf(self), locale()), grid: { show: false } },
      {
        ...axis,
        size: (_self, labels) => 14 + LABEL_DIGIT_PX * Math.max(3, ...(labels ?? []).map((label) => label.length)),
        splits: (_self, _axis, _low, high) => ticks(high),
        values: (_self, marks) => shown(box, tickLabels(marks, props.unit)),
      },
    ],
    series: [
      {},
      ...props.series.map((one, place) => {
        const stroke = colour(`--series-${one.colour ?? place + 1}`);
        return { label: one.label, stroke, width: 1.5, points: { show: false }, ...(one.fill ? { fill: `${stroke}22` } : {}) };
      }),
    ],
    hooks: { setCursor: [(self) => setIndex(self.cursor.idx ?? null)] },
  };
}

function spanOf(plot: uPlot): number {
  const { min, max } = plot.scales["x"] ?? {};
  return (max ?? 0) - (min ?? 0);
}

// Labels are drawn on a canvas: they are also written to an attribute, for tests.
function shown(box: HTMLElement, labels: string[]): string[] {
  box.dataset["ticks"] = labels.join("|");
  return labels;
}
