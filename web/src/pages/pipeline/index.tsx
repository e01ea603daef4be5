// The Pipeline page: journal, lag of each view, dead letters and failed entries.
import { api } from "../../api/client";
import { overview } from "../../live";
import { useResource } from "../../resource";
import type { PageProps } from "../../router";
import { Card, Count, Failure, Loading, Page, Rate, Stat, Stats } from "../../ui";
import { DeadLetters } from "./dead-letters";
import { LagChart } from "./lag";
import { t } from "./texts";
import { Views } from "./views";
import "./pipeline.css";

const JOURNAL_EVERY_MS = 2000;

export default function Pipeline(props: PageProps) {
  const journal = useResource("journal", (signal) => api.get("/api/v1/journal", { signal }), { everyMs: JOURNAL_EVERY_MS });
  const lane = props.query.get("lane") === "failed" ? "failed" : "dlq";
  const status = journal.data;
  return (
    <Page title={t.title} lead={t.intro}>
      {journal.error && <Failure problem={journal.error} retry={journal.refresh} />}
      {!status && journal.loading && <Loading rows={6} />}
      {status && (
        <>
          <Stats>
            <Stat
              label={t.entries}
              value={<Count value={status.entries} />}
              note={status.too_long ? t.tooLongHint : t.entriesHint}
              {...(status.too_long ? { tone: "bad" } : {})}
            />
            <Stat label={t.appended} value={<Rate value={overview.value?.journal?.appended_per_s} />} note={<AppendedTotal value={status.appended} />} />
            <Stat label={t.dlq} value={<Count value={status.dlq} />} note={t.dlqHint} {...(status.dlq > 0 ? { tone: "warn" } : {})} />
            <Stat label={t.failed} value={<Count value={status.failed} />} note={t.failedHint} {...(status.failed > 0 ? { tone: "bad" } : {})} />
            <Stat label={t.risks} value={<Count value={status.risks} />} note={t.risksHint} />
          </Stats>
          <Views groups={status.groups} refresh={journal.refresh} />
          <DeadLetters lane={lane} journal={status} refreshJournal={journal.refresh} />
        </>
      )}
      <Card title={t.lagChart}>
        <LagChart />
      </Card>
    </Page>
  );
}

function AppendedTotal(props: { value: number }) {
  return (
    <>
      <Count value={props.value} /> {t.appendedAll}
    </>
  );
}
