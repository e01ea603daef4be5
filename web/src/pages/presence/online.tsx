// Online users, by page: the cost does not depend on their number.
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { OnlineCount, OnlineUser } from "../../api/types";
import { translate } from "../../i18n";
import { useResource } from "../../resource";
import { link, setQuery } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Count, Empty, Failure, Loading, Name, SearchField, Select, StatusDot, Table, Time, type Column } from "../../ui";
import { platformNames, statusNames, stateNames, t } from "./texts";

type Status = keyof OnlineCount["users"];
type UserRow = Omit<OnlineUser, "since"> & { since?: number | null };

const PAGE = 25;
const EVERY_MS = 1000;
const STATUSES: Status[] = ["online", "away", "busy", "invisible", "pending"];
const PLATFORMS = ["computer", "phone", "web"] as const;

/** Filters are in the address. `isClustered`: users of other gateways are not listed. */
export function OnlineUsers(props: { count: OnlineCount | null; query: URLSearchParams; isClustered: boolean }) {
  const status = STATUSES.find((one) => one === props.query.get("status"));
  const platform = PLATFORMS.find((one) => one === props.query.get("platform"));
  const find = (props.query.get("find") ?? "").trim();
  return (
    <Card title={t.onlineUsers} flush>
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
      {props.isClustered && find === "" && <p class="presence-note dim">{t.ofThisGateway}</p>}
      {find !== "" ? <FoundUser text={find} /> : <UserPage key={`${status} ${platform}`} status={status} platform={platform} />}
    </Card>
  );
}

function StatusFilter(props: { count: OnlineCount | null; active: Status | undefined }) {
  // Invisible users are shown to admins only.
  const offered = STATUSES.filter((one) => one !== "invisible" || can("admin"));
  return (
    <div class="chips" role="group" aria-label={t.byStatus}>
      <Button small tone="quiet" pressed={props.active === undefined} onClick={() => setQuery({ status: null })}>
        {t.allStatuses}
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
          <StatusDot status={one} bare /> {statusNames[one]} <Count value={props.count?.users[one]} />
        </Button>
      ))}
    </div>
  );
}

function UserPage(props: { status: Status | undefined; platform: (typeof PLATFORMS)[number] | undefined }) {
  const { status, platform } = props;
  // Cursors of the pages up to this one, for going back.
  const [cursors, setCursors] = useState<(string | undefined)[]>([undefined]);
  const cursor = cursors[cursors.length - 1];
  const query = { limit: PAGE, ...(status ? { status } : {}), ...(platform ? { platform } : {}), ...(cursor ? { cursor } : {}) };
  const users = useResource(`online ${JSON.stringify(query)}`, (signal) => api.get("/api/v1/presence/online", { query, signal }), { everyMs: EVERY_MS });
  const isEmptyLater = cursors.length > 1 && users.data?.items.length === 0;
  // All users of this page went offline.
  useEffect(() => {
    if (isEmptyLater) setCursors(cursors.slice(0, -1));
  }, [isEmptyLater]);

  if (users.error && !users.data) return <Failure problem={users.error} retry={users.refresh} />;
  if (!users.data) return <Loading rows={8} />;
  const next = users.data.next;
  return (
    <>
      <UserTable users={users.data.items} empty={<NoUsers isFiltered={Boolean(status || platform)} />} />
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

function NoUsers(props: { isFiltered: boolean }) {
  if (!props.isFiltered) return <Empty title={t.none}>{t.noneHint}</Empty>;
  return (
    <Empty title={t.noMatch}>
      <Button small onClick={() => setQuery({ status: null, platform: null })}>
        {t.showAll}
      </Button>
    </Empty>
  );
}

function FoundUser(props: { text: string }) {
  const id = /^[1-9]\d{0,15}$/.test(props.text) ? Number(props.text) : null;
  const presence = useResource(
    id === null ? null : `presence ${id}`,
    (signal) => api.get("/api/v1/presence/{id}", { path: { id: id ?? 0 }, signal }),
    { everyMs: EVERY_MS },
  );
  if (id === null) return <Empty title={t.findBad} />;
  if (presence.error && !presence.data) return <Failure problem={presence.error} retry={presence.refresh} />;
  if (!presence.data) return <Loading />;
  const { devices, status, text, seeding, leeching, last_seen } = presence.data;
  if (status === "offline") {
    return (
      <Empty title={t.offline(props.text)}>
        {t.lastSeen}: <Time at={last_seen} />
      </Empty>
    );
  }
  return <UserTable users={[{ id, status, text: text ?? null, seeding, leeching, devices, since: null }]} empty={null} />;
}

function UserTable(props: { users: readonly UserRow[]; empty: preact.ComponentChildren }) {
  const columns: Column<UserRow>[] = [
    { key: "user", title: t.user, render: (user) => <a href={link(`/users/${user.id}`)}>{user.id}</a>, align: "end", phone: "title" },
    { key: "status", title: t.byStatus, render: (user) => <StatusDot status={user.status} /> },
    { key: "text", title: t.text, render: (user) => <Name text={user.text} most={60} />, wide: true },
    { key: "devices", title: t.devices, render: (user) => <Devices devices={user.devices} /> },
    { key: "swarms", title: t.swarms, render: (user) => <SwarmCounts user={user} />, align: "end", phone: "hide" },
    // `since` would reveal earlier invisibility: admins only.
    ...(can("admin") ? [{ key: "since", title: t.since, render: (user: UserRow) => <Time at={user.since} /> }] : []),
  ];
  return <Table columns={columns} rows={props.users} rowKey={(user) => user.id} caption={t.onlineUsers} empty={props.empty} />;
}

function SwarmCounts(props: { user: UserRow }) {
  return (
    <span class="nowrap">
      <Count value={props.user.seeding} /> / <Count value={props.user.leeching} />
    </span>
  );
}

function Devices(props: { devices: readonly { platform: string; state: string; status: string }[] }) {
  return (
    <span class="devices">
      {props.devices.map((device, index) => (
        <Badge key={index} tone={device.status === "online" ? "ok" : "plain"} title={translate(stateNames, device.state)}>
          {translate(platformNames, device.platform)}
        </Badge>
      ))}
    </span>
  );
}
