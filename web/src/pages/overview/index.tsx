// The Overview page: alerts, figures, the last hour, journal and component health.
import type { Overview } from "../../api/types";
import { nowS } from "../../clock";
import { medianText, p99Text } from "../../delay";
import { bytes, byteRate, bytesExact, count, countExact, duration, rate } from "../../format";
import { connection, overview } from "../../live";
import { link, type PageProps } from "../../router";
import { Duration, Failure, Loading, Page, Stat, Stats } from "../../ui";
import { Problem } from "../../api/client";
import { Alerts } from "./alerts";
import "./overview.css";
import { Charts } from "./charts";
import { Health, Journal } from "./components";
import { t } from "./texts";

export default function OverviewPage(_props: PageProps) {
  const now = overview.value;
  if (!now) {
    return (
      <Page title={t.title}>
        {connection.value === "unreachable" ? <Failure problem={new Problem(0, "unreachable", "")} /> : <Loading rows={8} />}
      </Page>
    );
  }
  return (
    <Page title={t.title} lead={<Lead now={now} />}>
      <Alerts now={now} />
      <Figures now={now} />
      <section aria-labelledby="last-hour" class="stack-small">
        <h2 id="last-hour">{t.lastHour}</h2>
        <Charts now={now} />
      </section>
      <div class="overview-columns">
        <Journal journal={now.journal} />
        <Health health={now.health} />
      </div>
    </Page>
  );
}

function Lead(props: { now: Overview }) {
  const { node, version, started_at, at_ms } = props.now;
  const now = connection.value === "unreachable" ? Math.floor(at_ms / 1000) : nowS.value;
  return (
    <>
      {t.lead(node, version)} <Duration s={Math.max(0, now - started_at)} />
    </>
  );
}

function Figures(props: { now: Overview }) {
  const { presence, tracker, gateway, journal } = props.now;
  const worst = (journal?.views ?? []).reduce((most, view) => (view.lag > most.lag ? view : most), { lag: 0, behind_s: 0 });
  const delay = gateway?.heartbeat_delay_ms;
  return (
    <Stats>
      {presence && (
        <Stat label={t.online} value={count(presence.online)} exact={countExact(presence.online)} note={presence.connections == null ? undefined : t.connections(presence.connections)} href={link("/presence")} />
      )}
      {tracker && [
          <Stat key="seeding" label={t.seeding} value={count(tracker.seeders)} exact={countExact(tracker.seeders)} note={t.torrents(tracker.torrents_seeded)} href={link("/swarms", { sort: "seeders" })} />,
          <Stat key="leeching" label={t.leeching} value={count(tracker.leechers)} exact={countExact(tracker.leechers)} note={t.torrents(tracker.torrents_leeched)} href={link("/swarms", { sort: "leechers" })} />,
          <Stat key="announces" label={t.announces} value={rate(tracker.announces_per_s)} exact={`${countExact(tracker.announces)}`} note={t.refused(rate(tracker.refused_per_s))} />,
          <Stat key="upload" label={t.upload} value={byteRate(tracker.upload_bytes_per_s)} exact={bytesExact(tracker.uploaded)} note={t.sinceStart(bytes(tracker.uploaded))} />,
          <Stat key="download" label={t.download} value={byteRate(tracker.download_bytes_per_s)} exact={bytesExact(tracker.downloaded)} note={t.sinceStart(bytes(tracker.downloaded))} />,
      ]}
      {journal && (
        <Stat
          label={t.lag}
          value={count(worst.lag)}
          exact={countExact(worst.lag)}
          note={worst.lag === 0 ? t.upToDate : t.behind(duration(worst.behind_s))}
          href={link("/pipeline")}
        />
      )}
      {delay && <Stat label={t.heartbeat} value={medianText(delay)} note={p99Text(delay)} href={link("/presence")} />}
    </Stats>
  );
}
