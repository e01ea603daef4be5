// The Pipeline page: how far every view is with the journal, and what it could not take.
import { api } from "../../api/client";
import { overview } from "../../live";
import { useResource } from "../../resource";
import type { PageProps } from "../../router";
import { Card, Count, Failure, Loading, Page, Rate, Stat, Stats } from "../../ui";
import { LagPlot } from "./lag";
import { Letters } from "./letters";
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
            <Stat label={t.appended} value={<Rate value={overview.value?.journal?.appended_per_s} />} note={<AppendedInAll value={status.appended} />} />
            <Stat label={t.dlq} value={<Count value={status.dlq} />} note={t.dlqHint} {...(status.dlq > 0 ? { tone: "warn" } : {})} />
            <Stat label={t.failed} value={<Count value={status.failed} />} note={t.failedHint} {...(status.failed > 0 ? { tone: "bad" } : {})} />
            <Stat label={t.risks} value={<Count value={status.risks} />} note={t.risksHint} />
          </Stats>
          <Views groups={status.groups} refresh={journal.refresh} />
          <Letters lane={lane} journal={status} refreshJournal={journal.refresh} />
        </>
      )}
      <Card title={t.lagPlot}>
        <LagPlot />
      </Card>
    </Page>
  );
}

function AppendedInAll(props: { value: number }) {
  return (
    <>
      <Count value={props.value} /> {t.appendedAll}
    </>
  );
}
