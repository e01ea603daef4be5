// Announces of a user that the journal still has.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Entry } from "../../api/types";
import * as format from "../../format";
import { translate } from "../../i18n";
import { usePaged, type Paged } from "../../resource";
import { can } from "../../session";
import { Badge, Bytes, Card, ClientName, Duration, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { t } from "./texts";
import { TorrentName } from "./torrent-name";
import { announces } from "./names";

const ENTRIES_A_PAGE = 100;

interface Search {
  scanned: number;
  since: number | null;
  complete: boolean;
}

/** Entries, and how far the journal was searched. */
export interface EntrySearch {
  list: Paged<Entry>;
  search: Search;
}

export function useEntries(user: number, torrent: number | null): EntrySearch {
  const [search, setSearch] = useState<Search>({ scanned: 0, since: null, complete: false });
  const list = usePaged<Entry>(`${user} ${torrent ?? ""}`, async (cursor, signal) => {
    const query = { limit: ENTRIES_A_PAGE, cursor, torrent: torrent ?? undefined };
    const page = await api.get("/api/v1/users/{id}/entries", { path: { id: user }, query, signal });
    setSearch((before) => ({
      scanned: (cursor === undefined ? 0 : before.scanned) + page.scanned,
      since: page.since ?? null,
      complete: page.complete,
    }));
    return page;
  });
  return { list, search };
}

export function Entries(props: { found: EntrySearch; withTorrent: boolean }) {
  const { list, search } = props.found;
  const isSearching = list.hasMore || !search.complete;
  const hint = isSearching ? t.unread(search.scanned) : t.noEntriesHint;
  return (
    <Card flush title={t.entries}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={6} />}
      {!list.loading && list.items.length > 0 && <p class="note">{t.entriesLead}{search.since !== null && ` ${t.journalSince(format.absolute(search.since))}`}</p>}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(props.withTorrent)}
          rows={list.items}
          rowKey={(entry) => entry.id}
          phoneRows={10}
          caption={t.entries}
          empty={<Empty title={t.noEntries}>{hint}</Empty>}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(withTorrent: boolean): Column<Entry>[] {
  const all: Column<Entry>[] = [{ key: "at", title: t.when, phone: "title", render: (row) => <Time at={row.at} /> }];
  if (withTorrent) all.push({ key: "torrent", title: t.torrent, wide: true, render: (row) => <TorrentName torrent={row.torrent ?? null} name={row.name ?? null} infohash={row.infohash} /> });
  all.push(
    { key: "event", title: t.event, render: (row) => <Event entry={row} /> },
    { key: "up", title: t.uploaded, align: "end", render: (row) => <Delta raw={row.uploaded_delta} credited={row.credited_uploaded} /> },
    { key: "down", title: t.downloaded, align: "end", render: (row) => <Delta raw={row.downloaded_delta} credited={row.credited_downloaded} /> },
    { key: "left", title: t.left, align: "end", narrow: withTorrent ? "hide" : undefined, render: (row) => <Bytes value={row.left} /> },
    { key: "within", title: t.within, align: "end", narrow: withTorrent ? "hide" : undefined, render: (row) => <Duration s={row.elapsed_s} /> },
    { key: "client", title: can("admin") ? t.clientAndAddress : t.client, wide: !withTorrent, render: (row) => <Client entry={row} /> },
  );
  return all;
}

/** Addresses are for admins. */
function Client(props: { entry: Entry }) {
  return (
    <span class="client-cell">
      <ClientName peerId={props.entry.peer_id} />
      {can("admin") && props.entry.ip && <code class="hash">{props.entry.ip}</code>}
    </span>
  );
}

function Event(props: { entry: Entry }) {
  const { event, cause } = props.entry;
  // The tracker writes stopped for peers that timed out or were removed.
  const word = cause === "timeout" || cause === "removal" ? cause : event || "none";
  const tone = word === "completed" ? "ok" : word === "started" ? "info" : word === "timeout" ? "warn" : "plain";
  return <Badge tone={tone}>{translate(announces, word)}</Badge>;
}

/** Raw bytes and, if different, credited bytes. */
function Delta(props: { raw: string; credited: string | null | undefined }) {
  if (props.credited == null || props.credited === props.raw) return <Bytes value={props.raw} />;
  return (
    <span class="delta">
      <Bytes value={props.raw} />{" "}
      <span class="dim nowrap" title={t.creditedHint}>
        → <Bytes value={props.credited} />
      </span>
    </span>
  );
}
