// Torrents that a user must still seed, and hit-and-runs.
import { api } from "../../api/client";
import type { HitAndRun } from "../../api/types";
import { useLiveList } from "../../live-list";
import { Badge, Bytes, Card, Duration, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { WhyLink } from "./figures";
import { t } from "./texts";
import { TorrentName, torrentText } from "./torrent-name";

const EVERY_MS = 10_000;

export function HitAndRuns(props: { user: number }) {
  const { user } = props;
  const list = useLiveList(String(user), (page, signal) => api.get("/api/v1/users/{id}/hit-and-runs", { path: { id: user }, query: page, signal }), { everyMs: EVERY_MS });
  return (
    <Card flush title={t.tabHitAndRun}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={3} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(user)}
          rows={list.items}
          rowKey={(row) => row.account.torrent}
          caption={t.tabHitAndRun}
          empty={list.hasMore ? <Empty title={t.hitAndRunsSearch} /> : <Empty tone="ok" title={t.noHitAndRuns}>{t.noHitAndRunsHint}</Empty>}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(user: number): Column<HitAndRun>[] {
  return [
    { key: "torrent", title: t.torrent, wide: true, phone: "title", render: (row) => <TorrentName {...row.account} /> },
    { key: "state", title: t.hitAndRunState, render: (row) => <State row={row} /> },
    { key: "left", title: t.seedingLeft, align: "end", render: (row) => <Duration s={row.seeding_s_left} /> },
    { key: "inactive", title: t.inactiveSince, align: "end", render: (row) => <Time at={row.gone_since} /> },
    { key: "downloaded", title: t.downloaded, align: "end", render: (row) => <Bytes value={row.account.figures.downloaded} /> },
    { key: "seeded", title: t.seedingTime, align: "end", render: (row) => <Duration s={row.account.figures.seeding_s} /> },
    {
      key: "why",
      title: t.entries,
      render: (row) => <WhyLink user={user} torrent={row.account.torrent} label={t.whyTorrent(torrentText(row.account))} />,
    },
  ];
}

function State(props: { row: HitAndRun }) {
  const isRun = props.row.state === "hit_and_run";
  return <Badge tone={isRun ? "bad" : "warn"}>{isRun ? t.hit_and_run : t.owing}</Badge>;
}
