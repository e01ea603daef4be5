// The Users page: all users, sorted, filtered and searched.
import "./users.css";
import "./list.css";
import { api } from "../../api/client";
import type { ListedUser, User, UserPresence } from "../../api/types";
import * as format from "../../format";
import { useLiveList } from "../../live-list";
import { useResource } from "../../resource";
import { link, setQuery, type PageProps } from "../../router";
import { can } from "../../session";
import { Badge, Bytes, Card, Count, Empty, Failure, Loading, MoreButton, Name, Page, SearchField, Select, StatusDot, Table, Time, type Column, type Sorting } from "../../ui";
import { filterOf, SORTS, sortingOf, STATES, type SortKey, type StateKey } from "./list-query";
import { states, t } from "./texts";

const EVERY_MS = 10_000;
const PRESENCE_EVERY_MS = 3000;

export default function Users(props: PageProps) {
  const search = props.query.get("search") ?? "";
  const sort = sortingOf(props.query);
  const state = filterOf(props.query);
  const list = useLiveList(
    `users ${sort.by} ${sort.order} ${state} ${search}`,
    (page, signal) => api.get("/api/v1/users", { query: { ...page, search, sort: sort.by, order: sort.order, ...(state === "all" ? {} : { state }) }, signal }),
    { everyMs: EVERY_MS, keepsRows: true },
  );
  const presences = usePresence(list.items);
  const total = list.first?.total;
  const hint = can("admin") ? t.searchHintAdmin : t.searchHint;
  return (
    <Page title={t.title} lead={total == null ? undefined : t.total(total, format.countExact(total))}>
      <div class="toolbar">
        <SearchField value={search} onSearch={(text) => setQuery({ search: text })} label={t.searchLabel} placeholder={hint} />
        <Select<StateKey> bare label={t.filter} value={state} options={STATES.map((value) => ({ value, label: states[value] }))} onChange={(next) => setQuery({ state: next === "all" ? undefined : next })} />
        <PhoneSort {...sort} />
      </div>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      <Card flush class={list.stale ? "users-list stale" : "users-list"}>
        {list.loading ? (
          <Loading rows={8} />
        ) : (
          (list.items.length > 0 || !list.error) && (
            <Table
              columns={columns(presences)}
              rows={list.items}
              rowKey={(user) => user.id}
              caption={t.title}
              sort={sort}
              onSort={({ by, order }: Sorting) => setQuery({ sort: by, order })}
              empty={<NoUsers isAll={search === "" && state === "all"} />}
            />
          )
        )}
      </Card>
      <MoreButton list={list} />
    </Page>
  );
}

/** Presence of the listed users, by number; empty in a process without a gateway. */
function usePresence(users: readonly ListedUser[]): Map<string, UserPresence> {
  const ids = users.map((user) => user.id);
  const key = ids.length === 0 ? null : ids.join(" ");
  const answer = useResource(key, (signal) => api.post("/api/v1/presence/query", { body: { users: ids }, signal }), { everyMs: PRESENCE_EVERY_MS });
  return new Map((answer.data?.items ?? []).map((presence) => [presence.id, presence]));
}

function columns(presences: Map<string, UserPresence>): Column<ListedUser>[] {
  return [
    { key: "id", title: t.id, sort: "id", phone: "title", render: (user) => <UserCell user={user} /> },
    { key: "state", title: t.state, render: (user) => <StateCell user={user} presence={presences.get(String(user.id))} /> },
    { key: "ratio", title: t.ratio, align: "end", sort: "ratio", render: (user) => <Ratio value={user.ratio} /> },
    { key: "uploaded", title: t.uploaded, align: "end", sort: "uploaded", render: (user) => <Bytes value={user.figures?.credited_uploaded} /> },
    { key: "downloaded", title: t.downloaded, align: "end", sort: "downloaded", render: (user) => <Bytes value={user.figures?.credited_downloaded} /> },
    { key: "seeding", title: t.seeding, align: "end", sort: "seeding", render: (user) => <Count value={user.seeding} /> },
    { key: "leeching", title: t.leeching, align: "end", sort: "leeching", render: (user) => <Count value={user.leeching} /> },
    { key: "last_announce", title: t.lastAnnounce, align: "end", sort: "last_announce", render: (user) => <Time at={user.figures?.last_seen} /> },
  ];
}

function UserCell(props: { user: User }) {
  const { id, name } = props.user;
  return (
    <span class="user-cell">
      <a href={link(`/users/${id}`)}>{name ? <Name text={name} /> : t.userNumber(String(id))}</a>
      {name && <span class="dim nowrap">{String(id)}</span>}
    </span>
  );
}

function Ratio(props: { value: number | null | undefined }) {
  return (
    <span class="number" title={props.value == null ? t.noRatio : String(props.value)}>
      {props.value == null ? format.NOTHING : format.ratio(props.value)}
    </span>
  );
}

/** Enabled users have no badge: most are. */
function StateCell(props: { user: User; presence: UserPresence | undefined }) {
  const { user, presence } = props;
  return (
    <span class="user-state">
      {presence ? <StatusDot status={presence.status} /> : <span class="dim">{format.NOTHING}</span>}
      {!user.enabled && <Badge tone="bad">{t.disabled}</Badge>}
      {user.external && <Badge title={t.externalHint}>{t.external}</Badge>}
    </span>
  );
}

export function UserState(props: { user: User }) {
  return (
    <span class="badges">
      {props.user.enabled ? <Badge tone="ok">{t.enabled}</Badge> : <Badge tone="bad">{t.disabled}</Badge>}
      {props.user.external && <Badge title={t.externalHint}>{t.external}</Badge>}
    </span>
  );
}

/** On a phone the table has no column headings. */
function PhoneSort(props: { by: SortKey; order: "asc" | "desc" }) {
  const names: Record<SortKey, string> = {
    id: t.id,
    ratio: t.ratio,
    uploaded: t.uploaded,
    downloaded: t.downloaded,
    seeding: t.seeding,
    leeching: t.leeching,
    last_announce: t.lastAnnounce,
  };
  const options = SORTS.flatMap((key) => [
    { value: `${key} desc`, label: `${names[key]} ↓` },
    { value: `${key} asc`, label: `${names[key]} ↑` },
  ]);
  const onChange = (value: string) => {
    const [sort, order] = value.split(" ");
    setQuery({ sort, order });
  };
  return (
    <div class="users-sort">
      <Select label={t.sortBy} bare value={`${props.by} ${props.order}`} options={options} onChange={onChange} />
    </div>
  );
}

function NoUsers(props: { isAll: boolean }) {
  return props.isAll ? <Empty title={t.empty}>{t.emptyHint}</Empty> : <Empty title={t.nothingFound}>{t.nothingFoundHint}</Empty>;
}
