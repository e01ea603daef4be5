// Why a figure is what it is: the announces that made it, what they come to, and how that compares with the account.
//
// Where the journal no longer has the beginning, that is said; what cannot be explained is shown as a number.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Entry, Schema } from "../../api/types";
import * as format from "../../format";
import { say } from "../../i18n";
import { usePaged, useResource } from "../../resource";
import { link } from "../../router";
import { can } from "../../session";
import { Badge, Button, Bytes, Card, ClientName, Duration, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { bytesOf, sumsOf, verdictOf, type Looked, type Sums, type Verdict } from "./sums";
import { t } from "./texts";
import { TorrentName } from "./torrent-name";
import { announces } from "./words";

const ENTRIES_A_PAGE = 100;

interface Search {
  scanned: number;
  since: number | null;
  complete: boolean;
}

const NOT_SEARCHED: Search = { scanned: 0, since: null, complete: false };

/** The entries of a user, on one torrent or on all. */
export function Why(props: { user: number; torrent: number | null }) {
  const { user, torrent } = props;
  const key = `${user} ${torrent ?? ""}`;
  const [search, setSearch] = useState(NOT_SEARCHED);
  const list = usePaged<Entry>(key, async (cursor, signal) => {
    const query = { limit: ENTRIES_A_PAGE, cursor, torrent: torrent ?? undefined };
    const page = await api.get("/api/v1/users/{id}/entries", { path: { id: user }, query, signal });
    setSearch((before) => ({
      scanned: (cursor === undefined ? 0 : before.scanned) + page.scanned,
      since: page.since ?? null,
      complete: page.complete,
    }));
    return page;
  });
  // Asked for anew whenever the entries are: both are to be of about the same moment.
  const [turn, setTurn] = useState(0);
  const figures = useResource(`${key} ${turn}`, (signal) => figuresOf(user, torrent, signal));
  const refresh = () => {
    list.refresh();
    setTurn(turn + 1);
  };
  const isSearching = list.hasMore || !search.complete;
  return (
    <>
      <Card title={t.whyTitle} actions={<Button small onClick={refresh} busy={list.busy}>{t.refresh}</Button>}>
        <p class="dim">{t.whyLead}</p>
        {torrent !== null && <OneTorrent user={user} torrent={torrent} entry={list.items[0]} />}
        {list.error && <Failure problem={list.error} retry={list.refresh} />}
        {!list.loading && !list.error && figures.data !== undefined && <Explanation entries={list.items} figures={figures.data} search={search} />}
      </Card>
      <Card flush title={t.entries}>
        {list.loading && <Loading rows={6} />}
        {!list.loading && (list.items.length > 0 || !list.error) && (
          <Table
            columns={columns(torrent === null)}
            rows={list.items}
            rowKey={(entry) => entry.id}
            caption={t.whyTitle}
            empty={<Empty title={t.noEntries}>{isSearching ? t.unread(format.countExact(search.scanned)) : t.noEntriesHint}</Empty>}
          />
        )}
        <MoreButton list={list} />
      </Card>
    </>
  );
}

/** The figures that are to be explained; null if there are none. */
async function figuresOf(user: number, torrent: number | null, signal: AbortSignal): Promise<Schema<"Figures"> | null> {
  if (torrent === null) return (await api.get("/api/v1/users/{id}", { path: { id: user }, signal })).figures ?? null;
  // Accounts come by the torrents' numbers: the one after the number before is this one, if it is there.
  const query = { limit: 1, cursor: torrent > 1 ? String(torrent - 1) : undefined };
  const page = await api.get("/api/v1/users/{id}/torrents", { path: { id: user }, query, signal });
  return page.items.find((account) => account.torrent === torrent)?.figures ?? null;
}

function OneTorrent(props: { user: number; torrent: number; entry: Entry | undefined }) {
  const { entry, torrent } = props;
  return (
    <p class="why-filter">
      {t.whyOne}: {entry ? <TorrentName torrent={torrent} name={entry.name ?? null} infohash={entry.infohash} /> : <a href={link(`/swarms/${torrent}`)}>{`${t.torrent} ${torrent}`}</a>}{" "}
      <a href={link(`/users/${props.user}`, { tab: "why" })}>{t.showAll}</a>
    </p>
  );
}

function Explanation(props: { entries: readonly Entry[]; figures: Schema<"Figures"> | null; search: Search }) {
  const { entries, figures, search } = props;
  if (!figures) return <p class="note">{t.neverHeard}</p>;
  const sums = sumsOf(entries);
  const looked: Looked = { isComplete: search.complete, since: search.since, firstSeen: figures.first_seen ?? null };
  // Each entry's credit is rounded to whole bytes, the account's only as a whole: a byte for each is no difference.
  const rounding = BigInt(entries.length);
  const verdicts = [
    verdictOf(sums.uploaded, bytesOf(figures.uploaded), looked),
    verdictOf(sums.downloaded, bytesOf(figures.downloaded), looked),
    verdictOf(sums.credited_uploaded, bytesOf(figures.credited_uploaded), looked, rounding),
    verdictOf(sums.credited_downloaded, bytesOf(figures.credited_downloaded), looked, rounding),
  ];
  const verdict = verdicts.find((one) => one !== "exact") ?? "exact";
  return (
    <>
      <SumTable sums={sums} figures={figures} count={entries.length} />
      <p class={`verdict verdict-${verdict}`} role="status">
        {verdictWords(verdict, search)}
      </p>
    </>
  );
}

function verdictWords(verdict: Verdict, search: Search): string {
  switch (verdict) {
    case "exact":
      return `✓ ${t.exact}`;
    case "unread":
      return t.unread(format.countExact(search.scanned));
    case "gone":
      return search.since === null ? t.goneEmpty : t.goneBefore(format.absolute(search.since));
    case "differs":
      return t.differs;
  }
}

function SumTable(props: { sums: Sums; figures: Schema<"Figures">; count: number }) {
  const { sums, figures } = props;
  return (
    <table class="sums">
      <thead>
        <tr>
          <td />
          <th scope="col">{t.sumOf(format.countExact(props.count))}</th>
          <th scope="col">{t.figureSays}</th>
          <th scope="col">{t.difference}</th>
        </tr>
      </thead>
      <tbody>
        <SumRow label={t.uploaded} sum={sums.uploaded} figure={figures.uploaded} />
        <SumRow label={t.downloaded} sum={sums.downloaded} figure={figures.downloaded} />
        <SumRow label={t.creditedUp} sum={sums.credited_uploaded} figure={figures.credited_uploaded} />
        <SumRow label={t.creditedDown} sum={sums.credited_downloaded} figure={figures.credited_downloaded} />
      </tbody>
    </table>
  );
}

function SumRow(props: { label: string; sum: bigint | null; figure: string }) {
  const rest = props.sum === null ? null : bytesOf(props.figure) - props.sum;
  const cell = (value: ComponentChildren) => <td class="end">{value}</td>;
  return (
    <tr>
      <th scope="row">{props.label}</th>
      {cell(props.sum === null ? <span class="dim">{t.creditedUnknown}</span> : <Bytes value={props.sum} />)}
      {cell(<Bytes value={props.figure} />)}
      {cell(rest === null ? "–" : rest === 0n ? <span class="nothing-left">0</span> : <Bytes value={rest} />)}
    </tr>
  );
}

function columns(withTorrent: boolean): Column<Entry>[] {
  const all: Column<Entry>[] = [{ key: "at", title: t.when, phone: "title", render: (row) => <Time at={row.at} /> }];
  if (withTorrent) all.push({ key: "torrent", title: t.torrent, wide: true, render: (row) => <TorrentName torrent={row.torrent ?? null} name={row.name ?? null} infohash={row.infohash} /> });
  all.push(
    { key: "event", title: t.event, render: (row) => <Event entry={row} /> },
    { key: "up", title: t.uploaded, align: "end", render: (row) => <Delta raw={row.uploaded_delta} credited={row.credited_uploaded} /> },
    { key: "down", title: t.downloaded, align: "end", render: (row) => <Delta raw={row.downloaded_delta} credited={row.credited_downloaded} /> },
    { key: "left", title: t.left, align: "end", render: (row) => <Bytes value={row.left} /> },
    { key: "within", title: t.within, align: "end", render: (row) => <Duration s={row.elapsed_s} /> },
    { key: "client", title: t.client, wide: !withTorrent, render: (row) => <ClientName peerId={row.peer_id} /> },
  );
  if (can("admin")) all.push({ key: "ip", title: t.address, render: (row) => <code class="hash">{row.ip ?? "–"}</code> });
  return all;
}

function Event(props: { entry: Entry }) {
  const { event, cause } = props.entry;
  // A peer that fell silent is written down as stopped, by the server and not by the client.
  const word = cause === "timeout" || cause === "removal" ? cause : event || "none";
  const tone = word === "completed" ? "ok" : word === "started" ? "info" : word === "timeout" ? "warn" : "plain";
  return <Badge tone={tone}>{say(announces, word)}</Badge>;
}

/** What an announce brought, and, where that is something else, how it counts. */
function Delta(props: { raw: string; credited: string | null | undefined }) {
  if (props.credited == null || props.credited === props.raw) return <Bytes value={props.raw} />;
  return (
    <span class="delta">
      <Bytes value={props.raw} />{" "}
      <span class="dim" title={t.creditedHint}>
        → <Bytes value={props.credited} />
      </span>
    </span>
  );
}
