// How far views were behind in the last hour.
import type { HistoryPoint } from "../../api/types";
import { useHistory } from "../../history";
import { Chart, Empty, Failure, Loading } from "../../ui";
import { t } from "./texts";

/** The views that the points know, in the order of their names. */
export function viewsOf(points: readonly HistoryPoint[]): string[] {
  const names = new Set<string>();
  for (const point of points) for (const name of Object.keys(point.lag)) names.add(name);
  return [...names].sort();
}

/** A line for each view. */
export function LagPlot() {
  const history = useHistory();
  if (history.error && !history.data) return <Failure problem={history.error} retry={history.refresh} />;
  if (!history.data) return <Loading />;
  const points = history.data;
  if (points.length < 2) return <Empty title={t.plotNone} />;
  const views = viewsOf(points);
  const series = views.map((view) => ({ label: view, values: points.map((point) => point.lag[view] ?? null) }));
  return <Chart series={series} times={points.map((point) => point.at)} unit="count" label={t.lagPlot} />;
}
