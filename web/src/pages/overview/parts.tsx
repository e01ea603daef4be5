// How the parts are: the views of the journal, and what the server depends on.
import type { Overview, ViewStatus } from "../../api/types";
import { count, countExact } from "../../format";
import { link } from "../../router";
import { Badge, Card, Count, Duration, Empty, Name, Rate, Stat, Stats, Table, Time } from "../../ui";
import { t } from "./texts";

// From here on a view is behind enough to be looked at. The server's alerts come later.
const BEHIND_S = 10;

/** The journal: its figures, and each view with how far it is. */
export function Journal(props: { journal: Overview["journal"] }) {
  const { journal } = props;
  const actions = <a href={link("/pipeline")}>{t.toPipeline} →</a>;
  if (!journal) {
    return (
      <Card title={t.views} actions={actions}>
        <Empty title={t.noJournal}>{t.noJournalHint}</Empty>
      </Card>
    );
  }
  return (
    <Card title={t.views} actions={actions} flush>
      <div class="inset-stats">
        <Stats>
          <Stat label={t.entries} value={count(journal.entries)} exact={countExact(journal.entries)} {...(journal.too_long ? { tone: "warn", note: t.tooLong } : {})} />
          <Stat label={t.appended} value={<Rate value={journal.appended_per_s} />} />
          <Stat label={t.deadLetters} value={count(journal.dlq)} href={link("/staff", { kind: "dead_letter" })} {...(journal.dlq > 0 ? { tone: "warn" } : {})} />
          <Stat label={t.failed} value={count(journal.failed)} href={link("/staff", { kind: "failed_entry" })} {...(journal.failed > 0 ? { tone: "bad" } : {})} />
          <Stat label={t.risks} value={count(journal.risks)} href={link("/staff", { kind: "risk" })} />
        </Stats>
      </div>
      <Table<ViewStatus>
        caption={t.views}
        rows={journal.views}
        rowKey={(view) => view.group}
        empty={<Empty title={t.noViews} />}
        columns={[
          { key: "view", title: t.view, phone: "title", render: (view) => <Name text={view.view} /> },
          { key: "lag", title: t.lagColumn, align: "end", render: (view) => <Count value={view.lag} /> },
          { key: "behind", title: t.behindColumn, align: "end", render: (view) => <Duration s={view.behind_s} /> },
          { key: "rate", title: t.rate, align: "end", render: (view) => <Rate value={view.rate_per_s} /> },
          { key: "state", title: t.state, render: (view) => <ViewState view={view} /> },
        ]}
      />
    </Card>
  );
}

function ViewState(props: { view: ViewStatus }) {
  if (props.view.paused) return <Badge tone="warn">{t.paused}</Badge>;
  if (props.view.behind_s > BEHIND_S) return <Badge tone="warn">{t.behindColumn}</Badge>;
  return <Badge tone="ok">{t.running}</Badge>;
}

/** What the server depends on. */
export function Health(props: { health: Overview["health"] }) {
  return (
    <Card title={t.health} flush>
      {props.health.length === 0 ? (
        <Empty title={t.noParts} tone="ok" />
      ) : (
        <ul class="parts">
          {props.health.map((part) => (
            <li key={part.name} class="part">
              <Badge tone={part.state === "ok" ? "ok" : part.state === "failing" ? "bad" : "plain"}>{stateName(part.state)}</Badge>
              <span class="part-name">{part.name}</span>
              <span class="dim part-since">
                <Time at={part.since} />
              </span>
              {part.reason && <p class="part-reason">{causeOf(props.health, part) ?? part.reason}</p>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** What is said of a part that fails because of another: the reason is beside that one. */
function causeOf(health: Overview["health"], part: Overview["health"][number]): string | null {
  const needed = health.find((other) => other.name === part.needs);
  return needed?.state === "failing" ? t.needs(needed.name) : null;
}

function stateName(state: string): string {
  if (state === "ok") return t.ok;
  return state === "failing" ? t.failing : t.unknown;
}
