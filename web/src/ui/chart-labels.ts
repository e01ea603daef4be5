// Labels of the time axis, as precise as needed to distinguish two ticks.

const SHORT_SPAN_S = 600;

/** Steps between ticks, in seconds. None is below a second, the precision of a label. */
export const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

/** `ticks` are in seconds since 1970. With seconds if the span is short; equal neighbours are left out. */
export function clockLabels(marks: readonly number[], span_s: number, locale: string): string[] {
  const step_s = marks.length > 1 ? (marks[1] ?? 0) - (marks[0] ?? 0) : span_s;
  const isShort = span_s < SHORT_SPAN_S || step_s < 60;
  const clock = new Intl.DateTimeFormat(locale, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(isShort ? { second: "2-digit" as const } : {}),
  });
  const labels = marks.map((at) => clock.format(at * 1000));
  return labels.map((label, index) => (index > 0 && label === labels[index - 1] ? "" : label));
}
