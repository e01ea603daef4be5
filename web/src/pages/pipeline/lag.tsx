// Lag of each view over the last hour.
import type { HistoryPoint } from "../../api/types";
import { useHistory } from "../../history";
import { Chart, Empty, Failure, Loading } from "../../ui";
import { componentName } from "../../server-texts";
import { t } from "./texts";

/** In the order of their names. */
export function viewsOf(points: readonly HistoryPoint[]): string[] {
  const names = new Set<string>();
  for (const point of points) for (const name of Object.keys(point.lag)) names.add(name);
  return [...names].sort();
}

export function LagChart() {
  const history = useHistory();
  if (history.error && !history.data) return <Failure problem={history.error} retry={history.refresh} />;
  if (!history.data) return <Loading />;
  const points = history.data;
  if (points.length < 2) return <Empty title={t.chartEmpty} />;
  const views = viewsOf(points);
  const series = views.map((view) => ({ label: componentName(view), values: points.map((point) => point.lag[view] ?? null) }));
  return <Chart series={series} times={points.map((point) => point.at)} unit="count" label={t.lagChart} />;
}
