// The journal with its views, and the health of the components that the server depends on.
import type { Overview, ViewOverview } from "../../api/types";
import { count, countExact } from "../../format";
import { link } from "../../router";
import { componentName } from "../../server-texts";
import { Badge, Card, Count, Duration, Empty, Name, Rate, Stat, Stats, Table, Time } from "../../ui";
import { t } from "./texts";

// From here on a view is marked as lagging. The alert of the server has a higher threshold.
const BEHIND_S = 10;

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
      <Table<ViewOverview>
        caption={t.views}
        rows={journal.views}
        rowKey={(view) => view.group}
        empty={<Empty title={t.noViews} />}
        columns={[
          { key: "view", title: t.view, phone: "title", render: (view) => <Name text={componentName(view.view)} /> },
          { key: "lag", title: t.lagColumn, align: "end", render: (view) => <Count value={view.lag} /> },
          { key: "behind", title: t.behindColumn, align: "end", render: (view) => <Duration s={view.behind_s} /> },
          { key: "rate", title: t.rate, align: "end", render: (view) => <Rate value={view.rate_per_s} /> },
          { key: "state", title: t.state, render: (view) => <ViewState view={view} /> },
        ]}
      />
    </Card>
  );
}

function ViewState(props: { view: ViewOverview }) {
  if (props.view.paused) return <Badge tone="warn">{t.paused}</Badge>;
  if (props.view.behind_s > BEHIND_S) return <Badge tone="warn">{t.behindColumn}</Badge>;
  return <Badge tone="ok">{t.running}</Badge>;
}

export function Health(props: { health: Overview["health"] }) {
  return (
    <Card title={t.health} flush>
      {props.health.length === 0 ? (
        <Empty title={t.noComponents} tone="ok" />
      ) : (
        <ul class="components">
          {props.health.map((component) => (
            <li key={component.name} class="component">
              <Badge tone={component.state === "ok" ? "ok" : component.state === "failing" ? "bad" : "plain"}>{stateName(component.state)}</Badge>
              <span class="component-name">{componentName(component.name)}</span>
              <span class="dim component-since">
                <Time at={component.since} />
              </span>
              {component.reason && <p class="component-reason">{causeOf(props.health, component) ?? component.reason}</p>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Names the cause if a component fails because of another: the reason is shown there. */
function causeOf(health: Overview["health"], component: Overview["health"][number]): string | null {
  const needed = health.find((other) => other.name === component.needs);
  return needed?.state === "failing" ? t.needs(componentName(needed.name)) : null;
}

function stateName(state: string): string {
  if (state === "ok") return t.ok;
  return state === "failing" ? t.failing : t.unknown;
}
