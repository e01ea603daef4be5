// The Presence page: online users, recent events, disconnects by cause.
import type { Overview } from "../../api/types";
import { medianText, p99Text } from "../../delay";
import { useHistory } from "../../history";
import { overview } from "../../live";
import type { PageProps } from "../../router";
import { Card, Chart, Count, Empty, Failure, Loading, Page, Rate, Stat, Stats } from "../../ui";
import { Disconnects } from "./disconnects";
import { OnlineUsers } from "./online";
import { RecentEvents } from "./recent-events";
import { platformNames, t } from "./texts";
import "./presence.css";

export default function Presence(props: PageProps) {
  const now = overview.value;
  return (
    <Page title={t.title}>
      {now === null ? <Loading rows={6} /> : !now.presence && !now.gateway ? <NoGateway /> : <Content now={now} query={props.query} />}
    </Page>
  );
}

function NoGateway() {
  return <Empty title={t.noGateway}>{t.noGatewayHint}</Empty>;
}

function Content(props: { now: Overview; query: URLSearchParams }) {
  const { now } = props;
  return (
    <>
      <Figures now={now} />
      <div class="presence-columns">
        <div class="presence-left">
          <LastHour />
          <Disconnects counts={now.gateway?.disconnects ?? []} />
        </div>
        <RecentEvents />
      </div>
      <OnlineUsers count={now.presence ?? null} query={props.query} isClustered={isClustered(now)} />
    </>
  );
}

// The dependency exists only with a presence cluster.
function isClustered(now: Overview): boolean {
  return now.health.some((component) => component.name === "presence_cluster");
}

function Figures(props: { now: Overview }) {
  const { presence, gateway } = props.now;
  const delay = gateway?.heartbeat_delay_ms;
  return (
    <Stats>
      <Stat label={t.online} value={<Count value={presence?.online} />} note={t.onlineHint} />
      <Stat label={t.connections} value={<Count value={presence?.connections} />} note={presence?.platforms && <ByPlatform platforms={presence.platforms} />} />
      <Stat label={t.withoutConnection} value={<Count value={presence?.without_connection} />} note={t.withoutConnectionHint} />
      <Stat label={t.connects} value={<Rate value={gateway?.connects_per_s} />} />
      <Stat label={t.disconnects} value={<Rate value={gateway?.disconnects_per_s} />} />
      <Stat
        label={t.delay}
        value={delay ? medianText(delay) : "–"}
        exact={t.delayHint}
        note={delay ? t.delayNote(p99Text(delay)) : t.delayNone}
      />
    </Stats>
  );
}

function ByPlatform(props: { platforms: { phone: number; computer: number; web: number } }) {
  const { platforms } = props;
  return (
    <>
      {platformNames.computer} <Count value={platforms.computer} /> · {platformNames.phone} <Count value={platforms.phone} /> · {platformNames.web}{" "}
      <Count value={platforms.web} />
    </>
  );
}

function LastHour() {
  const history = useHistory();
  if (history.error && !history.data) return <Failure problem={history.error} retry={history.refresh} />;
  if (!history.data) return <Loading />;
  const points = history.data;
  const times = points.map((point) => point.at);
  const online = [{ label: t.online, values: points.map((point) => point.online ?? null), fill: true }];
  const connects = [
    { label: t.connects, values: points.map((point) => point.connects_per_s ?? null), colour: 2 },
    { label: t.disconnects, values: points.map((point) => point.disconnects_per_s ?? null), colour: 3 },
  ];
  return (
    <div class="presence-charts">
      <Card title={t.chartOnline}>{points.length < 2 ? <Empty title={t.chartEmpty} /> : <Chart series={online} times={times} unit="count" label={t.chartOnline} />}</Card>
      <Card title={t.chartConnects}>{points.length < 2 ? <Empty title={t.chartEmpty} /> : <Chart series={connects} times={times} unit="rate" label={t.chartConnects} />}</Card>
    </div>
  );
}
