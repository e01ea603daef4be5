// All users, with who of them is here right now.
import "./users.css";
import { api } from "../../api/client";
import type { Schema } from "../../api/types";
import { useLiveList } from "../../live-list";
import { useResource } from "../../resource";
import { link, setQuery, type PageProps } from "../../router";
import { can } from "../../session";
import { Badge, Card, Count, Empty, Failure, Loading, MoreButton, Name, Page, SearchField, StatusDot, Table, Time, type Column } from "../../ui";
import { Slots } from "../../ui/slots";
import { t } from "./texts";

type User = Schema<"User">;
type Person = Schema<"Person">;

const EVERY_MS = 10_000;
const PRESENCE_EVERY_MS = 3000;

/** All users. */
export default function Users(props: PageProps) {
  const search = props.query.get("search") ?? "";
  const list = useLiveList(`users ${search}`, (asked, signal) => api.get("/api/v1/users", { query: { ...asked, search } as { limit: number }, signal }), {
    everyMs: EVERY_MS,
    keepsRows: true,
  });
  const people = usePeople(list.items);
  const hint = can("admin") ? t.searchHintAdmin : t.searchHint;
  return (
    <Page title={t.title}>
      <div class="toolbar">
        <SearchField value={search} onSearch={(text) => setQuery({ search: text })} label={t.searchLabel} placeholder={hint} />
      </div>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      <Card flush class={list.stale ? "stale" : ""}>
        {list.loading ? (
          <Loading rows={8} />
        ) : (
          (list.items.length > 0 || !list.error) && (
            <Table columns={columns(people)} rows={list.items} rowKey={(user) => user.id} caption={t.title} empty={<Nothing search={search} />} />
          )
        )}
      </Card>
      <MoreButton list={list} />
    </Page>
  );
}

/** How the users on the page are, by number. A process without a gateway does not know, and then nothing is shown. */
function usePeople(users: readonly User[]): Map<string, Person> {
  const ids = users.map((user) => user.id);
  const key = ids.length === 0 ? null : ids.join(" ");
  const asked = useResource(key, (signal) => api.post("/api/v1/presence/query", { body: { users: ids }, signal }), { everyMs: PRESENCE_EVERY_MS });
  return new Map((asked.data?.users ?? []).map((person) => [person.id, person]));
}

function columns(people: Map<string, Person>): Column<User>[] {
  const person = (user: User) => people.get(String(user.id));
  return [
    { key: "id", title: t.id, phone: "title", render: (user) => <a class="nowrap" href={link(`/users/${user.id}`)}>{t.userNumber(String(user.id))}</a> },
    { key: "presence", title: t.presence, wide: true, render: (user) => <PersonCell person={person(user)} /> },
    { key: "seeding", title: t.seeding, align: "end", render: (user) => <Count value={person(user)?.seeding} /> },
    { key: "leeching", title: t.leeching, align: "end", render: (user) => <Count value={person(user)?.leeching} /> },
    { key: "state", title: t.state, render: (user) => <UserState user={user} /> },
    { key: "slots", title: t.slots, align: "end", render: (user) => <Slots value={user.leech_slots} /> },
    { key: "since", title: t.since, align: "end", render: (user) => <Time at={user.created_at} /> },
  ];
}

function PersonCell(props: { person: Person | undefined }) {
  const { person } = props;
  if (!person) return <span class="dim">–</span>;
  return (
    <span class="person-cell">
      <StatusDot status={person.status} />
      {person.text ? <Name text={person.text} most={60} /> : person.status === "offline" && person.last_seen ? <span class="dim"><Time at={person.last_seen} /></span> : null}
    </span>
  );
}

/** Whether they may announce. */
export function UserState(props: { user: User }) {
  return (
    <span class="badges">
      {props.user.enabled ? <Badge tone="ok">{t.enabled}</Badge> : <Badge tone="bad">{t.disabled}</Badge>}
      {props.user.vouched && <Badge>{t.vouched}</Badge>}
    </span>
  );
}

function Nothing(props: { search: string }) {
  return props.search === "" ? <Empty title={t.empty}>{t.emptyHint}</Empty> : <Empty title={t.nothingFound}>{t.nothingFoundHint}</Empty>;
}
