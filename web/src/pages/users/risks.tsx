// Announces of a user that claimed more than can be believed.
import { api } from "../../api/client";
import type { Schema } from "../../api/types";
import * as format from "../../format";
import { usePaged } from "../../resource";
import { can } from "../../session";
import { Bytes, Button, Card, ClientName, Duration, Empty, Failure, Loading, MoreButton, Rate, Table, Time, words, type Column } from "../../ui";
import { t } from "./texts";
import { TorrentName } from "./torrent-name";

type Risk = Schema<"Risk">;

/** The risk events of a user, newest first. */
export function Risks(props: { user: number }) {
  const { user } = props;
  const list = usePaged<Risk>(String(user), (cursor, signal) => api.get("/api/v1/users/{id}/risks", { path: { id: user }, query: { limit: 50, cursor }, signal }));
  return (
    <Card flush title={t.tabRisks} actions={<Button small onClick={list.refresh} busy={list.busy}>{t.refresh}</Button>}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={3} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns()}
          rows={list.items}
          rowKey={(row) => row.id}
          caption={t.tabRisks}
          empty={list.hasMore ? <Empty title={t.riskMore} /> : <Empty tone="ok" title={t.noRisks}>{t.noRisksHint}</Empty>}
        />
      )}
      {list.hasMore && list.items.length > 0 && <p class="note">{t.riskMore}</p>}
      <MoreButton list={list} />
      <span class="visually-hidden" aria-live="polite">{list.busy ? words.loading : ""}</span>
    </Card>
  );
}

function columns(): Column<Risk>[] {
  const all: Column<Risk>[] = [
    { key: "at", title: t.when, phone: "title", render: (row) => <Time at={row.at} /> },
    { key: "torrent", title: t.torrent, wide: true, render: (row) => <TorrentName torrent={row.torrent ?? null} infohash={row.infohash} /> },
    { key: "uploaded", title: t.uploaded, align: "end", render: (row) => <Claim claimed={row.uploaded_claimed} credited={row.uploaded_credited} /> },
    { key: "downloaded", title: t.downloaded, align: "end", render: (row) => <Claim claimed={row.downloaded_claimed} credited={row.downloaded_credited} /> },
    { key: "elapsed", title: t.elapsed, align: "end", render: (row) => <Duration s={row.elapsed_s} /> },
    { key: "ceiling", title: t.ceiling, align: "end", render: (row) => <Rate bytes value={format.number(row.ceiling_bytes_per_s)} /> },
    { key: "client", title: t.client, render: (row) => <ClientName peerId={row.peer_id} /> },
  ];
  if (can("admin")) all.push({ key: "ip", title: t.address, render: (row) => <code class="hash">{row.ip ?? ""}</code> });
  all.push({ key: "more", title: t.unreportedColumn, align: "end", render: (row) => (row.unreported ? t.unreported(format.countExact(row.unreported)) : format.NOTHING) });
  return all;
}

/** What was claimed, and what was credited of it. */
function Claim(props: { claimed: string; credited: string }) {
  if (props.claimed === props.credited) return <Bytes value={props.credited} />;
  return (
    <span class="claim">
      <s title={`${t.claimed}: ${format.bytesExact(props.claimed)}`}>
        <span class="visually-hidden">{t.claimed} </span>
        {format.bytes(props.claimed)}
      </s>{" "}
      <span class="visually-hidden">{t.creditedInstead} </span>
      <Bytes value={props.credited} />
    </span>
  );
}
