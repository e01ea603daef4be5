// The tab "Torrents".
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ListedSwarm } from "../../api/types";
import { clipped, visible } from "../../names";
import { usePaged } from "../../resource";
import { link } from "../../router";
import { can } from "../../session";
import { attempt, Badge, Button, Bytes, Card, Check, confirm, Count, Empty, Failure, Infohash, Loading, MoreButton, Name, SearchField, Table, TextField, Time, type Column } from "../../ui";
import { AccessForm } from "./form";
import { parseId, parseInfohash } from "./parse";
import { AddFile } from "./torrent-file";
import { t as all } from "./texts";
import { t } from "./texts/torrents";

const PAGE = 50;
/** The server updates the list of swarms once a second. */
const LISTED_AFTER_MS = 1500;

export function Torrents() {
  const [search, setSearch] = useState("");
  const list = usePaged<ListedSwarm>(`access torrents ${search}`, (cursor, signal) =>
    api.get("/api/v1/swarms", { query: { sort: "added", order: "desc", limit: PAGE, ...(search ? { search } : {}), ...(cursor ? { cursor } : {}) }, signal }),
  );
  const refresh = () => {
    list.refresh();
    setTimeout(() => list.refresh(), LISTED_AFTER_MS);
  };
  return (
    <>
      {can("admin") && <AddFile refresh={refresh} />}
      {can("admin") && <Add refresh={refresh} />}
      <Card title={t.torrents} actions={<SearchField value={search} label={t.search} placeholder={t.search} onSearch={setSearch} />} flush>
        {list.error && list.items.length === 0 ? (
          <Failure problem={list.error} retry={list.refresh} />
        ) : list.loading ? (
          <Loading rows={6} />
        ) : (
          <>
            <List rows={list.items} isSearch={search !== ""} refresh={refresh} />
            <MoreButton list={list} />
          </>
        )}
      </Card>
    </>
  );
}

interface Filled {
  infohash: string;
  infohashV2: string;
  name: string;
  bytes: string;
  id: string;
  pending: boolean;
}

const BLANK: Filled = { infohash: "", infohashV2: "", name: "", bytes: "", id: "", pending: false };

type Errors = Partial<Record<keyof Filled, string>>;

function faultsOf(filled: Filled): Errors {
  return {
    ...(parseInfohash(filled.infohash) === null ? { infohash: t.infohashBad } : {}),
    ...(filled.infohashV2.trim() && parseInfohash(filled.infohashV2) === null ? { infohashV2: t.infohashBad } : {}),
    ...(filled.name.trim() ? {} : { name: t.nameMissing }),
    ...(/^\d{0,19}$/.test(filled.bytes.trim()) ? {} : { bytes: t.bytesBad }),
    ...(filled.id.trim() && parseId(filled.id) === null ? { id: all.badNumber } : {}),
  };
}

function Add(props: { refresh(): void }) {
  const [filled, setFilled] = useState(BLANK);
  const [errors, setErrors] = useState<Errors>({});
  const set = (change: Partial<Filled>) => setFilled({ ...filled, ...change });
  const submit = async () => {
    const faults = faultsOf(filled);
    setErrors(faults);
    if (Object.keys(faults).length > 0) return;
    const name = filled.name.trim();
    const body = {
      infohash: parseInfohash(filled.infohash) ?? "",
      infohash_v2: parseInfohash(filled.infohashV2),
      name,
      total_bytes: filled.bytes.trim() || null,
      id: parseId(filled.id),
      approved: !filled.pending,
    };
    if (await attempt(() => api.post("/api/v1/torrents", { body }), t.added(name))) setFilled(BLANK);
    props.refresh();
  };
  return (
    <Card title={t.add}>
      <AccessForm action={all.add} onSubmit={submit}>
        <TextField label={t.infohash} hint={t.infohashHint} value={filled.infohash} onInput={(infohash) => set({ infohash })} error={errors.infohash} mono maxLength={42} />
        <TextField label={t.name} hint={t.nameHint} value={filled.name} onInput={(name) => set({ name })} error={errors.name} maxLength={10_000} />
        <TextField label={t.bytes} hint={`${t.bytesHint}; ${all.optional}`} value={filled.bytes} onInput={(bytes) => set({ bytes })} error={errors.bytes} mono />
        <TextField label={t.id} hint={t.idHint} value={filled.id} onInput={(id) => set({ id })} error={errors.id} mono />
        <TextField
          label={t.infohashV2}
          hint={`${t.infohashV2Hint}; ${all.optional}`}
          value={filled.infohashV2}
          onInput={(infohashV2) => set({ infohashV2 })}
          error={errors.infohashV2}
          mono
          maxLength={42}
        />
        <Check label={t.pending} hint={t.pendingHint} checked={filled.pending} onChange={(pending) => set({ pending })} />
      </AccessForm>
    </Card>
  );
}

function List(props: { rows: readonly ListedSwarm[]; isSearch: boolean; refresh(): void }) {
  const columns: Column<ListedSwarm>[] = [
    { key: "name", title: t.torrent, render: (row) => <TorrentName row={row} />, wide: true, phone: "title" },
    { key: "infohash", title: t.infohash, render: (row) => <Infohash value={row.torrent.infohash} />, phone: "hide", narrow: "hide" },
    { key: "size", title: t.size, narrow: "hide", render: (row) => (row.torrent.total_bytes === "0" ? <span class="dim">–</span> : <Bytes value={row.torrent.total_bytes} />), align: "end" },
    { key: "swarm", title: t.swarm, render: (row) => <SwarmSize row={row} />, align: "end" },
    { key: "state", title: all.state, render: (row) => <State row={row} /> },
    { key: "since", title: t.since, render: (row) => <Time at={row.torrent.created_at} /> },
  ];
  if (can("admin")) columns.push({ key: "action", title: all.actions, render: (row) => <Actions row={row} refresh={props.refresh} />, align: "end" });
  const empty = props.isSearch ? <Empty title={t.noneSuch} /> : <Empty title={t.none}>{t.noneHint}</Empty>;
  return <Table columns={columns} rows={props.rows} rowKey={(row) => row.torrent.id} caption={t.torrents} empty={empty} />;
}

function TorrentName(props: { row: ListedSwarm }) {
  const { torrent } = props.row;
  return (
    <a href={link(`/swarms/${torrent.id}`)}>
      <Name text={torrent.name || torrent.infohash} />
    </a>
  );
}

function SwarmSize(props: { row: ListedSwarm }) {
  return (
    <span class="nowrap">
      <Count value={props.row.seeders} /> / <Count value={props.row.leechers} />
    </span>
  );
}

function State(props: { row: ListedSwarm }) {
  const { torrent } = props.row;
  return (
    <span class="wrap">
      {torrent.enabled ? <Badge tone="ok">{all.enabled}</Badge> : <Badge tone="bad">{all.disabled}</Badge>}
      {!torrent.approved && <Badge tone="warn">{t.pendingState}</Badge>}
    </span>
  );
}

function shortName(row: ListedSwarm): string {
  const { name, infohash } = row.torrent;
  return visible(clipped(name || infohash, 80));
}

function Actions(props: { row: ListedSwarm; refresh(): void }) {
  const { row, refresh } = props;
  const { torrent } = row;
  const name = shortName(row);
  const path = { id: String(torrent.id) };
  const approve = async () => {
    if (!(await confirm({ title: t.approveTitle(name), body: t.approveBody, action: t.approve }))) return;
    await attempt(() => api.patch("/api/v1/torrents/{id}", { path, body: { approved: true } }), t.approved(name));
    refresh();
  };
  const setEnabled = async () => {
    if (torrent.enabled && !(await confirm({ title: t.disableTitle(name), body: t.disableBody, action: all.disable, tone: "danger" }))) return;
    const work = () => api.patch("/api/v1/torrents/{id}", { path, body: { enabled: !torrent.enabled } });
    await attempt(work, torrent.enabled ? t.disabledDone(name) : t.enabledDone(name));
    refresh();
  };
  const remove = async () => {
    if (!(await confirm({ title: t.removeTitle(name), body: t.removeBody, action: all.remove, tone: "danger", typed: t.removeTyped }))) return;
    await attempt(() => api.del("/api/v1/torrents/{id}", { path }), t.removedDone(name));
    refresh();
  };
  return (
    <span class="access-actions">
      {!torrent.approved && (
        <Button small tone="primary" onClick={approve} label={`${t.approve}: ${name}`}>
          {t.approve}
        </Button>
      )}
      <Button small onClick={setEnabled} label={`${torrent.enabled ? all.disable : all.enable}: ${name}`}>
        {torrent.enabled ? all.disable : all.enable}
      </Button>
      <Button small tone="danger" onClick={remove} label={`${all.remove}: ${name}`}>
        {all.remove}
      </Button>
    </span>
  );
}
