// The Presence page: who is here, who comes and goes, and how connections end.
import type { Overview } from "../../api/types";
import { medianWords, slowestWords } from "../../delay";
import { useHistory } from "../../history";
import { overview } from "../../live";
import type { PageProps } from "../../router";
import { Card, Chart, Count, Empty, Failure, Loading, Page, Rate, Stat, Stats } from "../../ui";
import { Causes } from "./causes";
import { Feed } from "./feed";
import { Online } from "./online";
import { platformNames, t } from "./texts";
import "./presence.css";

export default function Presence(props: PageProps) {
  const now = overview.value;
  return (
    <Page title={t.title}>
      {now === null ? <Loading rows={6} /> : !now.people && !now.gateway ? <NoGateway /> : <Here now={now} query={props.query} />}
    </Page>
  );
}

function NoGateway() {
  return <Empty title={t.noGateway}>{t.noGatewayHint}</Empty>;
}

function Here(props: { now: Overview; query: URLSearchParams }) {
  const { now } = props;
  return (
    <>
      <Figures now={now} />
      <div class="presence-columns">
        <div class="presence-side">
          <LastHour />
          <Causes counts={now.gateway?.disconnects ?? []} />
        </div>
        <Feed />
      </div>
      <Online count={now.people ?? null} query={props.query} isOneOfMany={hasOthers(now)} />
    </>
  );
}

// Gateways know of each other by the register, which is there only where there can be several.
function hasOthers(now: Overview): boolean {
  return now.health.some((part) => part.name === "register");
}

function Figures(props: { now: Overview }) {
  const { people, gateway } = props.now;
  const delay = gateway?.heartbeat_delay_ms;
  return (
    <Stats>
      <Stat label={t.here} value={<Count value={people?.online} />} note={t.hereHint} />
      <Stat label={t.connections} value={<Count value={people?.connections} />} note={people?.platforms && <ByPlatform platforms={people.platforms} />} />
      <Stat label={t.withoutConnection} value={<Count value={people?.without_connection} />} note={t.withoutConnectionHint} />
      <Stat label={t.comings} value={<Rate value={gateway?.connects_per_s} />} />
      <Stat label={t.goings} value={<Rate value={gateway?.disconnects_per_s} />} />
      <Stat
        label={t.delay}
        value={delay ? medianWords(delay) : "–"}
        exact={t.delayHint}
        note={delay ? t.delayNote(slowestWords(delay)) : t.delayNone}
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
  const online = [{ label: t.here, values: points.map((point) => point.online ?? null), fill: true }];
  const moves = [
    { label: t.comings, values: points.map((point) => point.connects_per_s ?? null), colour: 2 },
    { label: t.goings, values: points.map((point) => point.disconnects_per_s ?? null), colour: 3 },
  ];
  return (
    <div class="presence-plots">
      <Card title={t.plotOnline}>{points.length < 2 ? <Empty title={t.plotNone} /> : <Chart series={online} times={times} unit="count" label={t.plotOnline} />}</Card>
      <Card title={t.plotMoves}>{points.length < 2 ? <Empty title={t.plotNone} /> : <Chart series={moves} times={times} unit="rate" label={t.plotMoves} />}</Card>
    </div>
  );
}
