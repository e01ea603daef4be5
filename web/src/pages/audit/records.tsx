// Audit records, newest first, of all actions or of one kind.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { AuditRecord } from "../../api/types";
import { translate } from "../../i18n";
import { usePaged } from "../../resource";
import { link, setQuery } from "../../router";
import { Badge, Button, Card, Dialog, DialogButtons, Empty, Facts, Failure, Loading, MoreButton, Name, SearchField, Select, Table, Time, words, type Column } from "../../ui";
import { detailsOf, hrefOf, isTime, kindOf, KINDS } from "./record";
import { actorNames, kindNames, t } from "./texts";

const PAGE = 50;
const EVERY_MS = 5000;

/** `action` is a kind (`user.`), an action (`user.add`), or empty for all. */
export function Records(props: { action: string; onNewest(hash: string | null): void }) {
  const { action } = props;
  const list = usePaged<AuditRecord>(`audit ${action}`, (cursor, signal) =>
    api.get("/api/v1/audit", {
      query: { limit: PAGE, ...(action ? { action } : {}), ...(cursor ? { cursor: Number(cursor) } : {}) },
      signal,
    }),
  );
  const newest = list.items[0];
  useEffect(() => {
    if (action === "") props.onNewest(newest?.hash ?? null);
  }, [action, newest?.hash]);
  // Only the first page is refreshed, so that rows do not move while more is read.
  const isFirstPage = list.items.length <= PAGE;
  useEffect(() => {
    if (!isFirstPage) return;
    const timer = setInterval(() => {
      if (!document.hidden) list.refresh();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [action, isFirstPage]);

  return (
    <Card title={t.title} actions={<Filter action={action} />} flush>
      {list.error && list.items.length === 0 ? (
        <Failure problem={list.error} retry={list.refresh} />
      ) : list.loading ? (
        <Loading rows={8} />
      ) : (
        <>
          <Table columns={columns()} rows={list.items} rowKey={(record) => record.seq} caption={t.title} empty={<NoRecords action={action} hasMore={list.hasMore} />} />
          <MoreButton list={list} />
        </>
      )}
    </Card>
  );
}

function Filter(props: { action: string }) {
  const kind = kindOf(props.action);
  const isKind = props.action === "" || props.action.endsWith(".");
  const options = [{ value: "", label: t.all }, ...KINDS.map((one) => ({ value: one, label: translate(kindNames, one) }))];
  if (kind !== "" && !KINDS.includes(kind)) options.push({ value: kind, label: kind });
  return (
    <div class="audit-filter">
      <Select bare label={t.filter} value={kind} options={options} onChange={(value) => setQuery({ action: value ? `${value}.` : "" })} />
      <SearchField value={isKind ? "" : props.action} label={t.exact} placeholder={t.exactHint} onSearch={(value) => setQuery({ action: value.slice(0, 100) })} />
    </div>
  );
}

function NoRecords(props: { action: string; hasMore: boolean }) {
  if (props.action === "") return <Empty title={t.none}>{t.noneHint}</Empty>;
  return (
    <Empty title={t.noneSuch}>
      {props.hasMore && <p>{t.moreMay}</p>}
      <Button small onClick={() => setQuery({ action: "" })}>
        {t.showAll}
      </Button>
    </Empty>
  );
}

function columns(): Column<AuditRecord>[] {
  return [
    { key: "action", title: t.action, render: (record) => <Action record={record} />, phone: "title" },
    { key: "subject", title: t.subject, render: (record) => <Subject record={record} /> },
    { key: "details", title: t.details, render: (record) => <Details record={record} />, wide: true },
    { key: "actor", title: t.actor, render: (record) => <Actor actor={record.actorId} /> },
    { key: "at", title: t.when, render: (record) => <Time atMs={Date.parse(record.at)} /> },
    { key: "seq", title: t.number, render: (record) => <FullRecord record={record} />, align: "end" },
  ];
}

function Action(props: { record: AuditRecord }) {
  const { action, result } = props.record;
  return (
    <span class="audit-action">
      <code>{action}</code>
      {result !== "ok" && <Badge tone="bad">{result === "failed" ? t.failed : result}</Badge>}
    </span>
  );
}

function Subject(props: { record: AuditRecord }) {
  const { subjectType, subjectId } = props.record;
  const href = hrefOf(subjectType, subjectId);
  const text = <Name text={subjectId} most={24} />;
  return (
    <span>
      <span class="dim">{subjectType}</span> {href ? <a href={href}>{text}</a> : text}
    </span>
  );
}

function Actor(props: { actor: string }) {
  const [kind = "", ...rest] = props.actor.split(":");
  const name = rest.join(":");
  if (name === "") return <Name text={props.actor} most={24} />;
  return (
    <span>
      <span class="dim">{translate(actorNames, kind)}</span> {kind === "key" ? <a href={link("/access/keys")}>{name}</a> : <Name text={name} most={24} />}
    </span>
  );
}

function Details(props: { record: AuditRecord }) {
  const details = detailsOf(props.record.details);
  if (details.length === 0) return <span class="dim">–</span>;
  return (
    <ul class="audit-details">
      {details.map(([name, value]) => (
        <li key={name}>
          <span class="dim">
            <Name text={name} most={60} />
          </span>{" "}
          {isTime(name, value) ? <Time at={Number(value)} /> : <Name text={value} wrap most={200} />}
        </li>
      ))}
    </ul>
  );
}

function FullRecord(props: { record: AuditRecord }) {
  const { record } = props;
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button small tone="quiet" onClick={() => setOpen(true)} label={t.record(String(record.seq))}>
        <span class="number">{record.seq}</span>
      </Button>
      <Dialog open={isOpen} title={t.record(String(record.seq))} onClose={close}>
        <Facts items={factsOf(record)} />
        <DialogButtons>
          <Button onClick={close}>{words.close}</Button>
        </DialogButtons>
      </Dialog>
    </>
  );
}

// All fields of the file.
function factsOf(record: AuditRecord): [string, ComponentChildren][] {
  const written = (text: string) => <Name text={text} wrap most={2000} />;
  return [
    [t.action, <code>{record.action}</code>],
    [t.subject, written(`${record.subjectType} ${record.subjectId}`)],
    [t.actor, written(record.actorId)],
    [t.when, <code>{record.at}</code>],
    [t.result, written(record.result)],
    ...detailsOf(record.details).map(([name, value]): [string, ComponentChildren] => [name, written(value)]),
    [t.hash, <code>{record.hash}</code>],
    [t.prev, <code>{record.prev}</code>],
  ];
}
