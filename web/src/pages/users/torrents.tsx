// Accounts of a user, one per torrent.
import { api } from "../../api/client";
import type { Account } from "../../api/types";
import { useLiveList } from "../../live-list";
import { Badge, Bytes, Card, ClientName, Duration, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { WhyLink } from "./figures";
import { t } from "./texts";
import { TorrentName, torrentText } from "./torrent-name";


const EVERY_MS = 10_000;

export function UserTorrents(props: { user: number }) {
  const { user } = props;
  const list = useLiveList(String(user), (page, signal) => api.get("/api/v1/users/{id}/torrents", { path: { id: user }, query: page, signal }), { everyMs: EVERY_MS });
  return (
    <Card flush title={t.tabTorrents}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={4} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(user)}
          rows={list.items}
          rowKey={(row) => row.torrent}
          caption={t.tabTorrents}
          empty={<Empty title={t.noTorrents}>{t.noTorrentsHint}</Empty>}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(user: number): Column<Account>[] {
  return [
    { key: "torrent", title: t.torrent, wide: true, phone: "title", render: (row) => <TorrentName {...row} /> },
    { key: "state", title: t.state, render: (row) => <AccountState account={row} /> },
    { key: "uploaded", title: t.uploaded, align: "end", render: (row) => <Bytes value={row.figures.uploaded} /> },
    { key: "downloaded", title: t.downloaded, align: "end", render: (row) => <Bytes value={row.figures.downloaded} /> },
    { key: "left", title: t.left, align: "end", narrow: "hide", render: (row) => <Bytes value={row.left} /> },
    { key: "seeded", title: t.seedingTime, align: "end", render: (row) => <Duration s={row.figures.seeding_s} /> },
    { key: "client", title: t.client, narrow: "hide", render: (row) => <ClientName prefix={row.client} /> },
    { key: "last_announce", title: t.lastAnnounce, align: "end", render: (row) => <Time at={row.figures.last_seen} /> },
    { key: "why", title: t.entries, render: (row) => <WhyLink user={user} torrent={row.torrent} label={t.whyTorrent(torrentText(row))} /> },
  ];
}

function AccountState(props: { account: Account }) {
  if (props.account.seeding) return <Badge tone="ok">{t.seedingNow}</Badge>;
  if (props.account.leeching) return <Badge tone="info">{t.leechingNow}</Badge>;
  return <Badge>{t.inactive}</Badge>;
}
