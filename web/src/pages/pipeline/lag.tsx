// How far views were behind in the last hour.
import { api } from "../../api/client";
import type { HistoryPoint } from "../../api/types";
import { useResource } from "../../resource";
import { Chart, Empty, Failure, Loading } from "../../ui";
import { t } from "./texts";

const HISTORY_EVERY_MS = 10_000;

/** The views that the points know, in the order of their names. */
export function viewsOf(points: readonly HistoryPoint[]): string[] {
  const names = new Set<string>();
  for (const point of points) for (const name of Object.keys(point.lag)) names.add(name);
  return [...names].sort();
}

/** A line for each view. */
export function LagPlot() {
  const history = useResource("history", (signal) => api.get("/api/v1/overview/history", { signal }), { everyMs: HISTORY_EVERY_MS });
  if (history.error && !history.data) return <Failure problem={history.error} retry={history.refresh} />;
  if (!history.data) return <Loading />;
  const { points } = history.data;
  if (points.length < 2) return <Empty title={t.plotNone} />;
  const views = viewsOf(points);
  const series = views.map((view) => ({ label: view, values: points.map((point) => point.lag[view] ?? null) }));
  return <Chart series={series} times={points.map((point) => point.at)} unit="count" label={t.lagPlot} />;
}
