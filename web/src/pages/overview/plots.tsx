// The last hour, and the present second at its end.
import { useMemo } from "preact/hooks";
import type { HistoryPoint, Overview } from "../../api/types";
import { useHistory } from "../../history";
import { Card, Chart, Empty, Failure, Loading, type Series, type Unit } from "../../ui";
import { t } from "./texts";

/** The last hour as plots. */
export function Plots(props: { now: Overview }) {
  const history = useHistory();
  if (history.loading) return <Loading rows={6} />;
  if (!history.data && history.error) return <Failure problem={history.error} retry={history.refresh} />;
  const points = history.data ?? [];
  if (points.length < 2) return <Empty title={t.noHistory} />;
  return <Charts points={points} now={props.now} />;
}

function Charts(props: { points: readonly HistoryPoint[]; now: Overview }) {
  const { points, now } = props;
  const times = useMemo(() => points.map((point) => point.at), [points]);
  const line = (label: string, of: (point: HistoryPoint) => number | null | undefined, more: Partial<Series> = {}): Series => ({
    label,
    values: points.map((point) => of(point) ?? null),
    ...more,
  });
  const views = [...new Set(points.flatMap((point) => Object.keys(point.lag)))].sort();
  const plot = (title: string, unit: Unit, series: Series[]) => (
    <Card title={title} key={title}>
      <Chart times={times} unit={unit} series={series} label={title} />
    </Card>
  );
  return (
    <div class="plots">
      {now.people && plot(t.peopleChart, "count", [line(t.online, (point) => point.online, { fill: true })])}
      {now.tracker &&
        plot(t.peersChart, "count", [line(t.seeders, (point) => point.seeders, { colour: 4 }), line(t.leechers, (point) => point.leechers, { colour: 2 })])}
      {now.tracker &&
        plot(t.bytesChart, "byteRate", [
          line(t.up, (point) => point.upload_bytes_per_s, { colour: 4 }),
          line(t.down, (point) => point.download_bytes_per_s, { colour: 2 }),
        ])}
      {now.tracker && plot(t.announcesChart, "rate", [line(t.announcesLine, (point) => point.announces_per_s, { fill: true })])}
      {now.gateway &&
        plot(t.comingsChart, "rate", [
          line(t.connects, (point) => point.connects_per_s, { colour: 4 }),
          line(t.disconnects, (point) => point.disconnects_per_s, { colour: 5 }),
        ])}
      {views.length > 0 && plot(t.lagChart, "count", views.map((view) => line(view, (point) => point.lag[view] ?? null)))}
    </div>
  );
}
