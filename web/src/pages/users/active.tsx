// Torrents that a user seeds and leeches, latest announce first.
import { api } from "../../api/client";
import type { ActiveTorrent } from "../../api/types";
import * as format from "../../format";
import { useLiveList } from "../../live-list";
import { Card, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { WhyLink } from "./figures";
import { t } from "./texts";
import { TorrentName, torrentText } from "./torrent-name";


const EVERY_MS = 3000;

export function Active(props: { user: number }) {
  return (
    <div class="two">
      <ActiveList user={props.user} what="seeding" />
      <ActiveList user={props.user} what="leeching" />
    </div>
  );
}

function ActiveList(props: { user: number; what: "seeding" | "leeching" }) {
  const { user, what } = props;
  const list = useLiveList(`${what} ${user}`, (page, signal) => api.get(`/api/v1/users/{id}/${what}`, { path: { id: user }, query: page, signal }), { everyMs: EVERY_MS });
  const count = list.first?.count;
  return (
    <Card flush title={what === "seeding" ? t.seeding : t.leeching} actions={count !== undefined && <span class="dim number">{format.countExact(count)}</span>}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={3} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(user)}
          rows={list.items}
          rowKey={(row) => row.infohash}
          caption={what === "seeding" ? t.seeding : t.leeching}
          empty={<Empty title={what === "seeding" ? t.noSeeding : t.noLeeching} />}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(user: number): Column<ActiveTorrent>[] {
  return [
    { key: "torrent", title: t.torrent, wide: true, phone: "title", render: (row) => <TorrentName {...row} /> },
    { key: "last_announce", title: t.lastAnnounce, align: "end", render: (row) => <Time at={row.last_announce} /> },
    {
      key: "why",
      title: t.entries,
      render: (row) => (row.torrent == null ? null : <WhyLink user={user} torrent={row.torrent} label={t.whyTorrent(torrentText(row))} />),
    },
  ];
}
