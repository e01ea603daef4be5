// The Staff page: one queue of risk events, hit-and-runs, pending torrents, dead letters and failed entries.
import "./staff.css";
import { api } from "../../api/client";
import type { QueueCounts, QueueItem } from "../../api/types";
import { useLiveList } from "../../live-list";
import { link, type PageProps } from "../../router";
import { can } from "../../session";
import { Badge, Card, Count, Empty, Failure, Loading, MoreButton, Page, Table, Tabs, Time, type Column, type Tone } from "../../ui";
import { Actions } from "./actions";
import { Description, Subject } from "./description";
import { t } from "./texts";

type Kind = QueueItem["kind"];

const EVERY_MS = 5000;
const KINDS: readonly Kind[] = ["risk", "hit_and_run", "approval", "dead_letter", "failed_entry"];

export default function StaffPage(props: PageProps) {
  const kind = KINDS.find((one) => one === props.query.get("kind"));
  const list = useLiveList(
    `queue ${kind ?? ""}`,
    (page, signal) => api.get("/api/v1/staff/queue", { query: { ...page, ...(kind ? { kind } : {}) }, signal }),
    { everyMs: EVERY_MS, keepsRows: true },
  );
  const counts = list.first?.counts;
  const isLoadingHitAndRuns = counts !== undefined && counts.hit_and_run == null && (kind === undefined || kind === "hit_and_run");
  return (
    <Page title={t.title} lead={t.lead}>
      <Tabs label={t.kinds} active={kind ?? "all"} tabs={tabs(counts)} />
      {isLoadingHitAndRuns && <p class="note">{t.loadingHitAndRuns}</p>}
      {!can("admin") && <p class="dim">{t.readOnly}</p>}
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      <Card flush class={list.stale ? "stale" : ""}>
        {list.loading ? (
          <Loading rows={8} />
        ) : (
          (list.items.length > 0 || !list.error) && (
            <Table columns={columns(list.refresh)} rows={list.items} rowKey={(item) => item.id} caption={t.title} empty={<Empty tone="ok" title={t.empty}>{t.emptyHint}</Empty>} />
          )
        )}
      </Card>
      <MoreButton list={list} />
    </Page>
  );
}

function tabs(counts: QueueCounts | undefined) {
  const of = (kind: Kind) => ({
    key: kind,
    href: link("/staff", { kind }),
    label: (
      <>
        {t[kind]} {counts && <Count value={counts[kind]} />}
      </>
    ),
  });
  return [{ key: "all", label: t.all, href: link("/staff") }, ...KINDS.map(of)];
}

function columns(refresh: () => void): Column<QueueItem>[] {
  return [
    { key: "kind", title: t.kind, render: (item) => <KindBadge kind={item.kind} /> },
    { key: "description", title: t.description, wide: true, phone: "title", render: (item) => <Description item={item} /> },
    { key: "subject", title: t.subject, render: (item) => <Subject item={item} /> },
    { key: "at", title: t.when, align: "end", render: (item) => <Time at={item.at} /> },
    { key: "actions", title: t.actions, align: "end", render: (item) => <Actions item={item} refresh={refresh} /> },
  ];
}

function KindBadge(props: { kind: Kind }) {
  const shown: Record<Kind, [name: string, tone: Tone]> = {
    risk: [t.kindRisk, "warn"],
    hit_and_run: [t.kindHitAndRun, "bad"],
    approval: [t.kindApproval, "info"],
    dead_letter: [t.kindDeadLetter, "warn"],
    failed_entry: [t.kindFailedEntry, "bad"],
  };
  const [name, tone] = shown[props.kind];
  return <Badge tone={tone}>{name}</Badge>;
}
