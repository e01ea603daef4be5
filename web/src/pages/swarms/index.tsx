// The Swarms page: all torrents with their peers, sorted and searched.
import "./swarms.css";
import { api } from "../../api/client";
import type { ListedSwarm } from "../../api/types";
import { useLiveList } from "../../live-list";
import { link, setQuery, type PageProps } from "../../router";
import { Badge, Bytes, Card, Count, Empty, Failure, Loading, MoreButton, Name, Page, SearchField, Select, Table, Time, type Column, type Sorting } from "../../ui";
import { SORTS, sortingOf, type SortKey } from "./sorting";
import { t } from "./texts";

const EVERY_MS = 3000;

export default function Swarms(props: PageProps) {
  const search = props.query.get("search") ?? "";
  const sort = sortingOf(props.query);
  const list = useLiveList(
    `${sort.by} ${sort.order} ${search}`,
    (page, signal) => api.get("/api/v1/swarms", { query: { ...page, sort: sort.by, order: sort.order, search }, signal }),
    { everyMs: EVERY_MS, keepsRows: true },
  );
  const onSort = ({ by, order }: Sorting) => setQuery({ sort: by, order });
  const total = list.first?.total;
  const hasFigures = list.items.every((row) => row.seeders !== null);
  return (
    <Page title={t.title} lead={total === undefined ? undefined : t.total(total)}>
      <div class="toolbar">
        <SearchField value={search} onSearch={(text) => setQuery({ search: text })} label={t.searchLabel} placeholder={t.searchHint} />
        <PhoneSort by={sort.by} order={sort.order} />
      </div>
      {!hasFigures && <p class="note">{t.noFigures}</p>}
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      <Card flush class={list.stale ? "stale" : ""}>
        {list.loading ? (
          <Loading rows={8} />
        ) : (
          (list.items.length > 0 || !list.error) && (
            <Table columns={columns()} rows={list.items} rowKey={(row) => row.torrent.id} caption={t.title} sort={sort} onSort={onSort} empty={<Nothing search={search} />} />
          )
        )}
      </Card>
      <MoreButton list={list} />
    </Page>
  );
}

function columns(): Column<ListedSwarm>[] {
  return [
    { key: "name", title: t.name, wide: true, phone: "title", render: (row) => <TorrentCell row={row} /> },
    { key: "size", title: t.size, align: "end", sort: "size", render: (row) => <Size value={row.torrent.total_bytes} /> },
    { key: "seeders", title: t.seeders, align: "end", sort: "seeders", render: (row) => <Count value={row.seeders} /> },
    { key: "leechers", title: t.leechers, align: "end", sort: "leechers", render: (row) => <Count value={row.leechers} /> },
    { key: "snatches", title: t.snatches, align: "end", sort: "snatches", render: (row) => <Count value={row.snatches} /> },
    { key: "added", title: t.added, align: "end", sort: "added", render: (row) => <Time at={row.torrent.created_at} /> },
  ];
}

function TorrentCell(props: { row: ListedSwarm }) {
  const { torrent } = props.row;
  return (
    <span class="torrent-cell">
      <a href={link(`/swarms/${torrent.id}`)}>
        <Name text={torrent.name || t.torrentNumber(String(torrent.id))} />
      </a>
      {!torrent.approved && <Badge tone="warn">{t.pending}</Badge>}
      {!torrent.enabled && <Badge tone="bad">{t.disabled}</Badge>}
    </span>
  );
}

/** 0 means unknown. */
export function Size(props: { value: string }) {
  return props.value === "0" ? <span class="dim">{t.unknown}</span> : <Bytes value={props.value} />;
}

/** On a phone the table has no column headings. */
function PhoneSort(props: { by: SortKey; order: "asc" | "desc" }) {
  const names: Record<SortKey, string> = { seeders: t.seeders, leechers: t.leechers, snatches: t.snatches, size: t.size, added: t.added };
  const options = SORTS.flatMap((key) => [
    { value: `${key} desc`, label: `${names[key]} ↓` },
    { value: `${key} asc`, label: `${names[key]} ↑` },
  ]);
  const choose = (choice: string) => {
    const [sort, order] = choice.split(" ");
    setQuery({ sort, order });
  };
  return (
    <div class="phone-sort">
      <Select label={t.sortBy} bare value={`${props.by} ${props.order}`} options={options} onChange={choose} />
    </div>
  );
}

function Nothing(props: { search: string }) {
  return props.search === "" ? <Empty title={t.empty}>{t.emptyHint}</Empty> : <Empty title={t.nothingFound}>{t.nothingFoundHint}</Empty>;
}
