// Who is here now: a page at a time, so that fifty thousand cost no more than a few.
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { OnlineCount, OnlineUser } from "../../api/types";
import { say } from "../../i18n";
import { useResource } from "../../resource";
import { link, setQuery } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Count, Empty, Failure, Loading, Name, SearchField, Select, StatusDot, Table, Time, type Column } from "../../ui";
import { platformNames, statusNames, stateNames, t } from "./texts";

type Status = keyof OnlineCount["people"];
type Person = Omit<OnlineUser, "since"> & { since?: number | null };

const PAGE = 25;
const EVERY_MS = 1000;
const STATUSES: Status[] = ["online", "away", "busy", "invisible", "pending"];
const PLATFORMS = ["computer", "phone", "web"] as const;

/** The list, with filters whose state is in the address. `isOneOfMany`: there may be other gateways, whose people it lacks. */
export function Online(props: { count: OnlineCount | null; query: URLSearchParams; isOneOfMany: boolean }) {
  const status = STATUSES.find((one) => one === props.query.get("status"));
  const platform = PLATFORMS.find((one) => one === props.query.get("platform"));
  const find = (props.query.get("find") ?? "").trim();
  return (
    <Card title={t.people} flush>
      <div class="presence-filters">
        <StatusFilter count={props.count} active={status} />
        <Select
          bare
          label={t.byPlatform}
          value={platform ?? ""}
          options={[{ value: "", label: t.allDevices }, ...PLATFORMS.map((one) => ({ value: one, label: platformNames[one] }))]}
          onChange={(value) => setQuery({ platform: value })}
        />
        <SearchField value={find} label={t.find} placeholder={t.findHint} onSearch={(value) => setQuery({ find: value })} />
      </div>
      {props.isOneOfMany && find === "" && <p class="presence-note dim">{t.ofThisGateway}</p>}
      {find !== "" ? <Found text={find} /> : <PageOfPeople key={`${status} ${platform}`} status={status} platform={platform} />}
    </Card>
  );
}

function StatusFilter(props: { count: OnlineCount | null; active: Status | undefined }) {
  // Who hides is shown only to those who may see them.
  const offered = STATUSES.filter((one) => one !== "invisible" || can("admin"));
  return (
    <div class="chips" role="group" aria-label={t.byStatus}>
      <Button small tone="quiet" pressed={props.active === undefined} onClick={() => setQuery({ status: null })}>
        {t.everyone}
      </Button>
      {offered.map((one) => (
        <Button
          key={one}
          small
          tone="quiet"
          pressed={props.active === one}
          title={one === "pending" ? t.pendingHint : undefined}
          onClick={() => setQuery({ status: props.active === one ? null : one })}
        >
          <StatusDot status={one} bare /> {statusNames[one]} <Count value={props.count?.people[one]} />
        </Button>
      ))}
    </div>
  );
}

function PageOfPeople(props: { status: Status | undefined; platform: (typeof PLATFORMS)[number] | undefined }) {
  const { status, platform } = props;
  // Where each page up to this one began: the way back.
  const [cursors, setCursors] = useState<(string | undefined)[]>([undefined]);
  const cursor = cursors[cursors.length - 1];
  const query = { limit: PAGE, ...(status ? { status } : {}), ...(platform ? { platform } : {}), ...(cursor ? { cursor } : {}) };
  const people = useResource(`online ${JSON.stringify(query)}`, (signal) => api.get("/api/v1/presence/online", { query, signal }), { everyMs: EVERY_MS });
  const isEmptyLater = cursors.length > 1 && people.data?.items.length === 0;
  // Everybody on this page has left meanwhile.
  useEffect(() => {
    if (isEmptyLater) setCursors(cursors.slice(0, -1));
  }, [isEmptyLater]);

  if (people.error && !people.data) return <Failure problem={people.error} retry={people.refresh} />;
  if (!people.data) return <Loading rows={8} />;
  const next = people.data.next_cursor;
  return (
    <>
      <PeopleTable people={people.data.items} empty={<Nobody isFiltered={Boolean(status || platform)} />} />
      {(next || cursors.length > 1) && (
        <div class="presence-pages">
          <Button small disabled={cursors.length === 1} onClick={() => setCursors(cursors.slice(0, -1))}>
            {t.back}
          </Button>
          <span class="number dim" aria-live="polite">
            {t.pageNumber(String(cursors.length))}
          </span>
          <Button small disabled={!next} onClick={() => next && setCursors([...cursors, String(next)])}>
            {t.next}
          </Button>
        </div>
      )}
    </>
  );
}

function Nobody(props: { isFiltered: boolean }) {
  if (!props.isFiltered) return <Empty title={t.nobody}>{t.nobodyHint}</Empty>;
  return (
    <Empty title={t.nobodySuch}>
      <Button small onClick={() => setQuery({ status: null, platform: null })}>
        {t.showEveryone}
      </Button>
    </Empty>
  );
}

function Found(props: { text: string }) {
  const id = /^[1-9]\d{0,15}$/.test(props.text) ? Number(props.text) : null;
  const person = useResource(
    id === null ? null : `person ${id}`,
    (signal) => api.get("/api/v1/presence/{id}", { path: { id: id ?? 0 }, signal }),
    { everyMs: EVERY_MS },
  );
  if (id === null) return <Empty title={t.findBad} />;
  if (person.error && !person.data) return <Failure problem={person.error} retry={person.refresh} />;
  if (!person.data) return <Loading />;
  const { devices, status, text, seeding, leeching, last_seen } = person.data;
  if (status === "offline") {
    return (
      <Empty title={t.notHere(props.text)}>
        {t.lastSeen}: <Time at={last_seen} />
      </Empty>
    );
  }
  return <PeopleTable people={[{ id, status, text: text ?? null, seeding, leeching, devices, since: null }]} empty={null} />;
}

function PeopleTable(props: { people: readonly Person[]; empty: preact.ComponentChildren }) {
  const columns: Column<Person>[] = [
    { key: "user", title: t.user, render: (person) => <a href={link(`/users/${person.id}`)}>{person.id}</a>, align: "end", phone: "title" },
    { key: "status", title: t.byStatus, render: (person) => <StatusDot status={person.status} /> },
    { key: "text", title: t.text, render: (person) => <Name text={person.text} most={60} />, wide: true },
    { key: "devices", title: t.devices, render: (person) => <Devices devices={person.devices} /> },
    { key: "swarms", title: t.swarms, render: (person) => <InSwarms person={person} />, align: "end", phone: "hide" },
    // Since when somebody is here would tell who hid for a while: the server says it to those who may know.
    ...(can("admin") ? [{ key: "since", title: t.since, render: (person: Person) => <Time at={person.since} /> }] : []),
  ];
  return <Table columns={columns} rows={props.people} rowKey={(person) => person.id} caption={t.people} empty={props.empty} />;
}

function InSwarms(props: { person: Person }) {
  return (
    <span class="nowrap">
      <Count value={props.person.seeding} /> / <Count value={props.person.leeching} />
    </span>
  );
}

function Devices(props: { devices: readonly { platform: string; state: string; status: string }[] }) {
  return (
    <span class="devices">
      {props.devices.map((device, index) => (
        <Badge key={index} tone={device.status === "online" ? "ok" : "plain"} title={say(stateNames, device.state)}>
          {say(platformNames, device.platform)}
        </Badge>
      ))}
    </span>
  );
}
