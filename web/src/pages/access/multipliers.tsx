// The tab "Multipliers".
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Multiplier } from "../../api/types";
import { nowS } from "../../clock";
import { countExact } from "../../format";
import { useResource } from "../../resource";
import { link } from "../../router";
import { can } from "../../session";
import { attempt, Badge, Button, Card, confirm, Empty, Failure, Loading, Name, Select, Table, TextField, Time, type Column } from "../../ui";
import { AccessForm } from "./form";
import { parseId, parseTime, parsePercent } from "./parse";
import { multiplierState, type Scope } from "./multiplier-state";
import { t as all } from "./texts";
import { kindNames, scopeNames, subjectNames, subjectOf, t } from "./texts/multipliers";

type Kind = keyof typeof PERCENTS | "own";

const PERCENTS = {
  freeleech: { upload: 100, download: 0 },
  half: { upload: 100, download: 50 },
  double: { upload: 200, download: 100 },
  both: { upload: 200, download: 0 },
};
const KINDS: Kind[] = ["freeleech", "half", "double", "both", "own"];
const SCOPES: Scope[] = ["site", "torrent", "user"];

export function Multipliers() {
  const list = useResource("multipliers", (signal) => api.get("/api/v1/multipliers", { signal }), { everyMs: 10_000 });
  return (
    <>
      {can("admin") && <Add refresh={list.refresh} />}
      <Card title={t.list} flush>
        {list.error && !list.data ? <Failure problem={list.error} retry={list.refresh} /> : !list.data ? <Loading /> : <List multipliers={list.data.items} refresh={list.refresh} />}
      </Card>
    </>
  );
}

interface Filled {
  scope: Scope;
  subject: string;
  kind: Kind;
  upload: string;
  download: string;
  starts: string;
  ends: string;
  note: string;
}

const BLANK: Filled = { scope: "site", subject: "", kind: "freeleech", upload: "100", download: "0", starts: "", ends: "", note: "" };

type Errors = Partial<Record<keyof Filled, string>>;

interface Wanted {
  subject: number;
  upload: number;
  download: number;
  starts: number | null;
  ends: number | null;
}

function read(filled: Filled, now: number): { wanted: Wanted; errors: Errors } {
  const errors: Errors = {};
  const subject = filled.scope === "site" ? 0 : parseId(filled.subject);
  if (subject === null) errors.subject = all.badNumber;
  const fixed = filled.kind === "own" ? null : PERCENTS[filled.kind];
  const upload = fixed ? fixed.upload : parsePercent(filled.upload);
  const download = fixed ? fixed.download : parsePercent(filled.download);
  if (upload === null) errors.upload = t.percentBad;
  if (download === null) errors.download = t.percentBad;
  const starts = parseTime(filled.starts);
  const ends = parseTime(filled.ends);
  if (ends !== null && ends <= (starts ?? now)) errors.ends = starts === null ? t.endsPast : t.endsBad;
  return { wanted: { subject: subject ?? 0, upload: upload ?? 0, download: download ?? 0, starts, ends }, errors };
}

function Add(props: { refresh(): void }) {
  const [filled, setFilled] = useState(BLANK);
  const [errors, setErrors] = useState<Errors>({});
  const set = (change: Partial<Filled>) => setFilled({ ...filled, ...change });
  const submit = async () => {
    const { wanted, errors: found } = read(filled, nowS.value);
    setErrors(found);
    if (Object.keys(found).length > 0) return;
    const what = t.what(countExact(wanted.upload), countExact(wanted.download));
    if (filled.scope === "site" && !(await confirm({ title: t.siteTitle, body: t.siteBody(what), action: all.add, tone: "danger" }))) return;
    const rest = { upload_percent: wanted.upload, download_percent: wanted.download, starts_at: wanted.starts, ends_at: wanted.ends, note: filled.note };
    const body = filled.scope === "site" ? { scope: filled.scope, ...rest } : { scope: filled.scope, subject: wanted.subject, ...rest };
    const isDone = await attempt(() => api.post("/api/v1/multipliers", { body }), t.added);
    props.refresh();
    if (isDone) setFilled(BLANK);
  };
  return (
    <Card title={t.add}>
      <p class="dim">{t.rule}</p>
      <AccessForm action={all.add} onSubmit={submit}>
        <Select label={t.scope} value={filled.scope} options={SCOPES.map((value) => ({ value, label: scopeNames[value] }))} onChange={(scope) => set({ scope })} />
        {filled.scope !== "site" && (
          <TextField label={subjectNames[filled.scope]} value={filled.subject} onInput={(subject) => set({ subject })} error={errors.subject} mono />
        )}
        <Select label={t.kind} value={filled.kind} options={KINDS.map((value) => ({ value, label: kindNames[value] }))} onChange={(kind) => set({ kind })} />
        {filled.kind === "own" && (
          <>
            <TextField label={t.upload} value={filled.upload} onInput={(upload) => set({ upload })} error={errors.upload} type="number" min={0} max={10000} />
            <TextField label={t.download} value={filled.download} onInput={(download) => set({ download })} error={errors.download} type="number" min={0} max={10000} />
          </>
        )}
        <TextField label={t.starts} hint={t.startsHint} value={filled.starts} onInput={(starts) => set({ starts })} type="datetime-local" />
        <TextField label={t.ends} hint={t.endsHint} value={filled.ends} onInput={(ends) => set({ ends })} error={errors.ends} type="datetime-local" />
        <TextField label={t.note} hint={t.noteHint} value={filled.note} onInput={(note) => set({ note })} maxLength={500} />
      </AccessForm>
    </Card>
  );
}

function List(props: { multipliers: readonly Multiplier[]; refresh(): void }) {
  const now = nowS.value;
  const columns: Column<Multiplier>[] = [
    { key: "scope", title: t.scope, render: (one) => <For multiplier={one} />, phone: "title" },
    { key: "up", title: t.up, render: (one) => <Percent value={one.upload_percent} />, align: "end" },
    { key: "down", title: t.down, render: (one) => <Percent value={one.download_percent} />, align: "end" },
    { key: "state", title: all.state, render: (one) => <State multiplier={one} now={now} /> },
    { key: "starts", narrow: "hide", title: t.starts, render: (one) => <Time at={one.starts_at} /> },
    { key: "ends", title: t.ends, render: (one) => (one.ends_at ? <Time at={one.ends_at} /> : <span class="dim nowrap">{t.endless}</span>) },
    { key: "note", title: t.note, render: (one) => <Name text={one.note} />, wide: true },
  ];
  if (can("admin")) columns.push({ key: "action", title: all.actions, render: (one) => <End multiplier={one} refresh={props.refresh} />, align: "end" });
  return <Table columns={columns} rows={props.multipliers} rowKey={(one) => one.id} caption={t.list} empty={<Empty title={t.none}>{t.noneHint}</Empty>} />;
}

function For(props: { multiplier: Multiplier }) {
  const { scope, subject } = props.multiplier;
  if (scope === "torrent") return <a class="nowrap" href={link(`/swarms/${subject}`)}>{subjectOf.torrent(String(subject))}</a>;
  if (scope === "user") return <a class="nowrap" href={link(`/users/${subject}`)}>{subjectOf.user(String(subject))}</a>;
  return <strong class="nowrap">{scopeNames.site}</strong>;
}

function Percent(props: { value: number }) {
  const text = <span class="number">{countExact(props.value)} %</span>;
  return props.value === 100 ? <span class="dim">{text}</span> : <strong>{text}</strong>;
}

function State(props: { multiplier: Multiplier; now: number }) {
  switch (multiplierState(props.multiplier, props.now)) {
    case "active":
      return <Badge tone="ok">{t.active}</Badge>;
    case "scheduled":
      return <Badge tone="info">{t.scheduled}</Badge>;
    case "ended":
      return <Badge>{t.endedState}</Badge>;
  }
}

function End(props: { multiplier: Multiplier; refresh(): void }) {
  const { multiplier } = props;
  const state = multiplierState(multiplier, nowS.value);
  // Kept after its end: it explains credited bytes.
  if (state === "ended") return null;
  const end = async () => {
    const question = {
      active: { title: t.endTitle, body: t.endBody, action: t.end, tone: "danger" as const },
      scheduled: { title: t.removeTitle, body: t.removeBody, action: all.remove, tone: "danger" as const },
    }[state];
    if (!(await confirm(question))) return;
    await attempt(() => api.del("/api/v1/multipliers/{id}", { path: { id: multiplier.id } }), t.ended);
    props.refresh();
  };
  return (
    <Button small tone="danger" onClick={end}>
      {state === "active" ? t.end : all.remove}
    </Button>
  );
}
