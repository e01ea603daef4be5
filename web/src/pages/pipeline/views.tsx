// Views with their lag; pause and resume.
import { api } from "../../api/client";
import type { ConsumerGroup } from "../../api/types";
import { translate } from "../../i18n";
import { overview } from "../../live";
import { componentName } from "../../server-texts";
import { can } from "../../session";
import { attempt, Badge, Button, Card, confirm, Count, Duration, Empty, Rate, Table, type Column } from "../../ui";
import { t, viewHints } from "./texts";

/** From here on a view is shown as behind. */
const BEHIND_S_MAX = 10;

export function Views(props: { groups: readonly ConsumerGroup[]; refresh(): void }) {
  const columns: Column<ConsumerGroup>[] = [
    { key: "view", title: t.view, render: (group) => <ViewName group={group} />, wide: true, phone: "title" },
    { key: "state", title: t.state, render: (group) => <State group={group} /> },
    { key: "lag", title: t.lag, render: (group) => <span title={t.lagHint}><Count value={group.lag} /></span>, align: "end" },
    { key: "behind", title: t.behind, render: (group) => <span title={t.behindHint}><Duration s={group.behind_s} /></span>, align: "end" },
    { key: "rate", title: t.rate, render: (group) => <span title={t.rateHint}><Rate value={rateOf(group.group)} /></span>, align: "end" },
    { key: "pending", title: t.pending, render: (group) => <span title={t.pendingHint}><Count value={group.pending} /></span>, align: "end" },
    { key: "consumers", title: t.consumers, render: (group) => <Count value={group.consumers} />, align: "end" },
  ];
  if (can("admin")) {
    columns.push({ key: "action", title: t.action, render: (group) => <PauseButton group={group} refresh={props.refresh} />, align: "end" });
  }
  const empty = <Empty title={t.noViews}>{t.noViewsHint}</Empty>;
  return (
    <Card title={t.views} flush>
      <Table columns={columns} rows={props.groups} rowKey={(group) => group.group} caption={t.views} empty={empty} />
    </Card>
  );
}

function rateOf(group: string): number | null {
  return overview.value?.journal?.views.find((view) => view.group === group)?.rate_per_s ?? null;
}

function ViewName(props: { group: ConsumerGroup }) {
  const { view, group } = props.group;
  return (
    <span class="view-name">
      <strong>{view ? componentName(view) : group}</strong>
      <span class="dim">{view ? translate(viewHints, view) : t.otherProgram}</span>
    </span>
  );
}

function State(props: { group: ConsumerGroup }) {
  const { group } = props;
  if (group.paused) return <Badge tone="warn">{t.paused}</Badge>;
  if (group.consumers === 0) return <Badge tone={group.view && group.lag > 0 ? "bad" : "plain"}>{t.stuck}</Badge>;
  if (group.lag > 0 && group.behind_s > BEHIND_S_MAX) return <Badge tone="warn">{t.late}</Badge>;
  return <Badge tone="ok">{t.running}</Badge>;
}

function PauseButton(props: { group: ConsumerGroup; refresh(): void }) {
  const { view, paused, lag } = props.group;
  if (!view) return null;
  const name = componentName(view);
  const change = async () => {
    const isConfirmed = await confirm(
      paused
        ? { title: t.resumeTitle(name), body: t.resumeBody(lag), action: t.resume }
        : { title: t.pauseTitle(name), body: t.pauseBody(translate(viewHints, view)), action: t.pause, tone: "danger" },
    );
    if (!isConfirmed) return;
    const work = () => api.patch("/api/v1/journal/views/{view}", { path: { view }, body: { paused: !paused } });
    await attempt(work, paused ? t.resumedDone(name) : t.pausedDone(name));
    props.refresh();
  };
  return (
    <Button small tone={paused ? "primary" : "plain"} onClick={change} label={`${paused ? t.resume : t.pause}: ${name}`}>
      {paused ? t.resume : t.pause}
    </Button>
  );
}
