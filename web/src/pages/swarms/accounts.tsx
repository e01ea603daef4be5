// Accounts of a torrent, latest announce first.
import { api } from "../../api/client";
import type { Torrent, TorrentAccount } from "../../api/types";
import { useLiveList } from "../../live-list";
import { link } from "../../router";
import { Badge, Bytes, Card, Duration, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { Progress } from "../../ui/progress";
import { shareOf } from "../users/sums";
import { t } from "./texts";

const EVERY_MS = 10_000;

export function Accounts(props: { torrent: Torrent }) {
  const { torrent } = props;
  const id = String(torrent.id);
  const list = useLiveList(id, (page, signal) => api.get("/api/v1/torrents/{id}/accounts", { path: { id }, query: page, signal }), { everyMs: EVERY_MS });
  return (
    <Card flush title={t.history} actions={<span class="dim">{t.historyHint}</span>}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={4} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(torrent)}
          rows={list.items}
          rowKey={(account) => account.user}
          phoneRows={10}
          caption={t.history}
          empty={<Empty title={t.noHistory}>{t.noHistoryHint}</Empty>}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(torrent: Torrent): Column<TorrentAccount>[] {
  return [
    { key: "user", title: t.user, phone: "title", render: (row) => <a class="nowrap" href={link(`/users/${row.user}`)}>{t.userNumber(String(row.user))}</a> },
    { key: "state", title: t.state, render: (row) => <AccountState seeding={row.seeding} leeching={row.leeching} /> },
    { key: "progress", title: t.progress, render: (row) => <Progress share={shareOf(row.left, torrent.total_bytes)} label={t.progress} none={t.unknown} /> },
    { key: "uploaded", title: t.uploaded, align: "end", render: (row) => <Bytes value={row.figures.uploaded} /> },
    { key: "downloaded", title: t.downloaded, align: "end", render: (row) => <Bytes value={row.figures.downloaded} /> },
    { key: "seeded", title: t.seedingTime, align: "end", render: (row) => <Duration s={row.figures.seeding_s} /> },
    { key: "completed", title: t.completed, align: "end", narrow: "hide", render: (row) => <Time at={row.completed_at} /> },
    { key: "last_announce", title: t.lastAnnounce, align: "end", render: (row) => <Time at={row.figures.last_seen} /> },
    { key: "why", title: t.whyColumn, render: (row) => <Why user={row.user} torrent={torrent.id} /> },
  ];
}

function Why(props: { user: number; torrent: number }) {
  return (
    <a href={link(`/users/${props.user}`, { tab: "why", torrent: props.torrent })} aria-label={t.whyLabel(String(props.user))}>
      {t.why}
    </a>
  );
}

export function AccountState(props: { seeding: boolean; leeching: boolean }) {
  if (props.seeding) return <Badge tone="ok">{t.seeding}</Badge>;
  if (props.leeching) return <Badge tone="info">{t.leeching}</Badge>;
  return <Badge>{t.inactive}</Badge>;
}
