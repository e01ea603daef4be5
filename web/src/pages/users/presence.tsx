// Devices and presence history of a user. Only for admins: both reveal invisible users.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { PresenceEvent, PresenceSession, RemoteDevice } from "../../api/types";
import { useLiveList } from "../../live-list";
import { translate } from "../../i18n";
import { useResource } from "../../resource";
import { can } from "../../session";
import { attempt, Button, Card, confirm, Empty, Failure, Loading, MoreButton, StatusDot, Table, Time, toast, type Column } from "../../ui";
import { PresenceStrip } from "./presence-strip";
import { t } from "./texts";
import { appStates, causes, presenceEvents, platforms } from "./names";

const EVERY_MS = 3000;
// The strip needs the whole history; the list below shows fewer rows at first.
const HISTORY_ROWS = 200;
const LISTED_ROWS = 25;

export function PresenceTab(props: { user: number }) {
  if (!can("admin")) return <Card><Empty title={t.devicesAdmin} /></Card>;
  return (
    <>
      <Devices user={props.user} />
      <History user={props.user} />
    </>
  );
}

/** A session on this gateway, or a device on another. */
type DeviceRow = RemoteDevice & Partial<PresenceSession>;

function Devices(props: { user: number }) {
  const { user } = props;
  const found = useResource(`devices ${user}`, (signal) => api.get("/api/v1/users/{id}/devices", { path: { id: user }, signal }), { everyMs: EVERY_MS });
  const rows: DeviceRow[] = [...(found.data?.sessions ?? []).map((session) => ({ ...session, node: session.node ?? "" })), ...(found.data?.remote ?? [])];
  const end = async (device?: string) => {
    const title = device === undefined ? t.disconnectAllTitle : t.disconnectTitle;
    const body = device === undefined ? t.disconnectAllBody : t.disconnectBody;
    if (!(await confirm({ title, body, action: t.disconnect, tone: "danger" }))) return;
    await attempt(async () => {
      const ended = await api.post("/api/v1/users/{id}/disconnect", { path: { id: user }, body: { reconnect: false, ...(device === undefined ? {} : { device }) } });
      toast(t.disconnected(ended.sessions));
    });
    found.refresh();
  };
  const all = rows.length > 1 && (
    <Button small tone="danger" onClick={() => end()}>
      {t.disconnectAll}
    </Button>
  );
  return (
    <Card flush title={t.devices} actions={all}>
      {found.error && <Failure problem={found.error} retry={found.refresh} />}
      {found.loading && <Loading rows={2} />}
      {found.data && (
        <Table columns={deviceColumns(end, rows)} rows={rows} rowKey={(row) => `${row.node} ${row.device} ${row.since ?? ""}`} caption={t.devices} empty={<Empty title={t.noDevices} />} />
      )}
    </Card>
  );
}

function deviceColumns(end: (device: string) => Promise<void>, rows: readonly DeviceRow[]): Column<DeviceRow>[] {
  const columns: Column<DeviceRow>[] = [
    { key: "device", title: t.device, wide: true, phone: "title", render: (row) => <span class="name mono" title={row.device}>{row.device}</span> },
    { key: "platform", title: t.platform, render: (row) => translate(platforms, row.platform) },
    { key: "status", title: t.state, render: (row) => <StatusDot status={row.status} /> },
    { key: "app", title: t.appState, render: (row) => <span class="nowrap">{translate(appStates, row.state)}</span> },
    { key: "connection", title: t.connection, render: (row) => <span class="nowrap">{row.connected === undefined ? "–" : row.connected ? t.connected : t.heartbeatsOnly}</span> },
    { key: "since", title: t.sinceWhen, align: "end", narrow: "hide", render: (row) => <Time at={row.since} /> },
    { key: "heartbeats", title: t.heartbeats, align: "end", render: (row) => <Heartbeats beats={row.heartbeats_ms ?? []} /> },
  ];
  // Not needed with a single gateway.
  if (rows.some((row) => row.node)) columns.push({ key: "node", title: t.node, render: (row) => row.node });
  columns.push({
    key: "end",
    title: <span class="visually-hidden">{t.disconnect}</span>,
    render: (row) => (
      <Button small onClick={() => end(row.device)} label={`${t.disconnect}: ${row.device}`}>
        {t.disconnect}
      </Button>
    ),
  });
  return columns;
}

/** The last heartbeat, and the earlier ones as marks: even gaps mean a healthy connection. */
function Heartbeats(props: { beats: readonly number[] }) {
  const { beats } = props;
  const [latest] = beats;
  const first = beats[beats.length - 1];
  if (latest === undefined || first === undefined) return <span class="dim">–</span>;
  const length = Math.max(latest - first, 1);
  return (
    <span class="beats" title={t.heartbeatsCount(beats.length)}>
      {beats.length > 1 && (
        <svg class="beats-marks" viewBox="0 0 64 12" width="64" height="12" aria-hidden="true">
          {beats.map((at) => (
            <rect key={at} x={((at - first) / length) * 62} y="1" width="2" height="10" />
          ))}
        </svg>
      )}
      <Time atMs={latest} />
    </span>
  );
}

function History(props: { user: number }) {
  const { user } = props;
  const list = useLiveList(`history ${user}`, (page, signal) => api.get("/api/v1/users/{id}/presence/history", { path: { id: user }, query: page, signal }), {
    everyMs: EVERY_MS,
    rows: HISTORY_ROWS,
  });
  const [listed, setListed] = useState(LISTED_ROWS);
  const more = {
    hasMore: list.hasMore || listed < list.items.length,
    busy: list.busy,
    more: () => {
      setListed(listed + HISTORY_ROWS);
      if (listed + HISTORY_ROWS > list.items.length && list.hasMore) list.more();
    },
  };
  return (
    <Card flush title={t.timeline}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={4} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <>
          {list.items.length > 0 && <PresenceStrip events={list.items} isComplete={!list.hasMore} />}
          <Table columns={historyColumns()} rows={list.items.slice(0, listed)} rowKey={(row) => row.id} caption={t.timeline} empty={<Empty title={t.noHistory}>{t.noHistoryHint}</Empty>} />
        </>
      )}
      <MoreButton list={more} />
    </Card>
  );
}

function historyColumns(): Column<PresenceEvent>[] {
  return [
    { key: "when", title: t.when, phone: "title", render: (row) => <Time atMs={row.at_ms} /> },
    { key: "event", title: t.eventColumn, render: (row) => <Event row={row} /> },
    { key: "cause", title: t.cause, render: (row) => <span class="nowrap">{row.cause ? translate(causes, row.cause) : "–"}</span> },
    { key: "device", title: t.device, wide: true, render: (row) => <span class="name mono" title={row.device ?? ""}>{row.device ?? "–"}</span> },
  ];
}

function Event(props: { row: PresenceEvent }) {
  const { event, from, to } = props.row;
  if (event === "transition" && from && to) {
    return (
      <span class="from-to">
        <StatusDot status={from} /> <span aria-label="→">→</span> <StatusDot status={to} />
      </span>
    );
  }
  return <span>{translate(presenceEvents, event)}</span>;
}
