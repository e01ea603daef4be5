// Charts of the last hour, ending with the latest overview.
import { useMemo } from "preact/hooks";
import type { HistoryPoint, Overview } from "../../api/types";
import { useHistory } from "../../history";
import { componentName } from "../../server-texts";
import { Card, Chart, Empty, Failure, Loading, type Series, type Unit } from "../../ui";
import { t } from "./texts";

export function Charts(props: { now: Overview }) {
  const history = useHistory();
  if (history.loading) return <Loading rows={6} />;
  if (!history.data && history.error) return <Failure problem={history.error} retry={history.refresh} />;
  const points = history.data ?? [];
  if (points.length < 2) return <Empty title={t.noHistory} />;
  return <ChartGrid points={points} now={props.now} />;
}

function ChartGrid(props: { points: readonly HistoryPoint[]; now: Overview }) {
  const { points, now } = props;
  const times = useMemo(() => points.map((point) => point.at), [points]);
  const line = (label: string, of: (point: HistoryPoint) => number | null | undefined, more: Partial<Series> = {}): Series => ({
    label,
    values: points.map((point) => of(point) ?? null),
    ...more,
  });
  const views = [...new Set(points.flatMap((point) => Object.keys(point.lag)))].sort();
  const chart = (title: string, unit: Unit, series: Series[]) => (
    <Card title={title} key={title}>
      <Chart times={times} unit={unit} series={series} label={title} />
    </Card>
  );
  return (
    <div class="charts">
      {now.presence && chart(t.usersChart, "count", [line(t.online, (point) => point.online, { fill: true })])}
      {now.tracker &&
        chart(t.peersChart, "count", [line(t.seeders, (point) => point.seeders, { colour: 4 }), line(t.leechers, (point) => point.leechers, { colour: 2 })])}
      {now.tracker &&
        chart(t.bytesChart, "byteRate", [
          line(t.up, (point) => point.upload_bytes_per_s, { colour: 4 }),
          line(t.down, (point) => point.download_bytes_per_s, { colour: 2 }),
        ])}
      {now.tracker && chart(t.announcesChart, "rate", [line(t.announcesLine, (point) => point.announces_per_s, { fill: true })])}
      {now.gateway &&
        chart(t.connectsChart, "rate", [
          line(t.connects, (point) => point.connects_per_s, { colour: 4 }),
          line(t.disconnects, (point) => point.disconnects_per_s, { colour: 5 }),
        ])}
      {views.length > 0 && chart(t.lagChart, "count", views.map((view) => line(componentName(view), (point) => point.lag[view] ?? null)))}
    </div>
  );
}
