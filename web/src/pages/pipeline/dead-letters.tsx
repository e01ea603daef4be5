// Dead letters and failed entries: list, select, replay, drop.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { DeadLetter, JournalStatus } from "../../api/types";
import { nowS } from "../../clock";
import { useLiveList } from "../../live-list";
import { link } from "../../router";
import { componentName, deadLetterReason } from "../../server-texts";
import { can } from "../../session";
import { attempt, Button, Card, confirm, Count, Empty, Facts, Failure, Loading, MoreButton, Name, Table, Tabs, Time, toast, type Column } from "../../ui";
import { listedOnly, NONE, requestsFor, toggled, type Selection } from "./selection";
import { emptyLaneHints, laneHints, t } from "./texts";

type Lane = "dlq" | "failed";

const EVERY_MS = 2000;

export function DeadLetters(props: { lane: Lane; journal: JournalStatus; refreshJournal(): void }) {
  const { lane, journal } = props;
  const tabs = [
    { key: "dlq", label: <Counted text={t.dlq} n={journal.dlq} />, href: link("/pipeline") },
    { key: "failed", label: <Counted text={t.failed} n={journal.failed} />, href: link("/pipeline", { lane: "failed" }) },
  ];
  return (
    <Card title={t.rejected} flush>
      <div class="letter-head">
        <Tabs tabs={tabs} active={lane} label={t.rejected} />
        <p class="dim">{laneHints[lane]}</p>
      </div>
      <LaneList key={lane} {...props} />
    </Card>
  );
}

function Counted(props: { text: string; n: number }) {
  return (
    <>
      {props.text} <Count value={props.n} />
    </>
  );
}

function LaneList(props: { lane: Lane; journal: JournalStatus; refreshJournal(): void }) {
  const { lane, journal } = props;
  const total = journal[lane];
  const list = useLiveList(`dead letters ${lane}`, (query, signal) => api.get("/api/v1/dead-letters/{lane}", { path: { lane }, query, signal }), { everyMs: EVERY_MS });
  const [selected, setSelected] = useState<Selection>(NONE);
  const ids = list.items.map((letter) => letter.id);
  const selection = listedOnly(selected, ids);

  const after = () => {
    setSelected(NONE);
    list.refresh();
    props.refreshJournal();
  };
  if (list.error && list.items.length === 0) return <Failure problem={list.error} retry={list.refresh} />;
  if (list.loading) return <Loading rows={4} />;
  if (list.items.length === 0) {
    return <Empty title={emptyLaneHints[lane]} tone="ok" />;
  }
  const canChange = can("admin");
  return (
    <>
      {canChange ? <LaneActions lane={lane} selection={selection} ids={ids} total={total} select={setSelected} after={after} /> : <p class="dim letter-actions">{t.readOnly}</p>}
      <Table
        columns={columnsOf(lane, journal, canChange ? { selection, select: setSelected } : null)}
        rows={list.items}
        rowKey={(letter) => letter.id}
        caption={t.rejected}
      />
      <MoreButton list={list} />
    </>
  );
}

interface SelectionState {
  selection: Selection;
  select(selection: Selection): void;
}

function columnsOf(lane: Lane, journal: JournalStatus, selectable: SelectionState | null): Column<DeadLetter>[] {
  const viewOf = (group: string) => journal.groups.find((known) => known.group === group)?.view ?? (group || "–");
  return [
    { key: "reason", title: t.reason, render: (letter) => <Row letter={letter} selectable={selectable} />, wide: true, phone: "title" },
    { key: "view", title: t.view, render: (letter) => componentName(viewOf(letter.group)) },
    { key: "failed", title: t.failedAt, render: (letter) => <Time at={letter.failed_at} /> },
    { key: "retries", title: t.retries, render: (letter) => <Count value={letter.retry} />, align: "end" },
    { key: "due", title: t.due, render: (letter) => <Due lane={lane} at={letter.due_at} /> },
  ];
}

function Row(props: { letter: DeadLetter; selectable: SelectionState | null }) {
  const { letter, selectable } = props;
  return (
    <div class="letter">
      {selectable && (
        <input
          type="checkbox"
          aria-label={t.select(letter.id)}
          checked={selectable.selection.has(letter.id)}
          onChange={(event) => selectable.select(toggled(selectable.selection, letter.id, event.currentTarget.checked))}
        />
      )}
      <EntryDetails letter={letter} />
    </div>
  );
}

function Due(props: { lane: Lane; at: number }) {
  if (props.lane === "failed") return <span class="dim">{t.never}</span>;
  return props.at <= nowS.value ? <span>{t.dueNow}</span> : <Time at={props.at} />;
}

function EntryDetails(props: { letter: DeadLetter }) {
  const { letter } = props;
  const fields = Object.entries(letter.fields).map(([name, value]): [string, preact.ComponentChildren] => [name, <FieldValue name={name} value={value} />]);
  return (
    <div class="letter-entry">
      <Name text={deadLetterReason(letter.reason)} wrap most={300} />
      <details>
        <summary>{t.fields}</summary>
        <Facts items={[[t.deadLetterId, <code>{letter.id}</code>], [t.origin, <code>{letter.origin}</code>], ...fields]} />
      </details>
    </div>
  );
}

function FieldValue(props: { name: string; value: string }) {
  const text = <Name text={props.value} wrap most={300} />;
  if (props.name === "user" && /^[1-9]\d*$/.test(props.value)) return <a href={link(`/users/${props.value}`)}>{text}</a>;
  if (props.name === "infohash" && /^[0-9a-f]{40}$/i.test(props.value)) return <a href={link(`/swarms/${props.value}`)}>{text}</a>;
  return text;
}

function LaneActions(props: { lane: Lane; selection: Selection; ids: string[]; total: number; select(selection: Selection): void; after(): void }) {
  const { lane, selection, ids } = props;
  const isAll = selection.size === 0;
  const n = isAll ? props.total : selection.size;

  const run = async (path: "/api/v1/dead-letters/{lane}/replay" | "/api/v1/dead-letters/{lane}/drop", done: (n: number) => string) => {
    let handled = 0;
    const work = async () => {
      for (const body of requestsFor(selection)) handled += (await api.post(path, { path: { lane }, body })).count;
    };
    if (await attempt(work)) toast(handled > 0 ? done(handled) : t.notFound, handled > 0 ? "ok" : "info");
    props.after();
  };
  const replay = async () => {
    if (await confirm({ title: t.replayTitle(n), body: t.replayBody, action: t.replay })) {
      await run("/api/v1/dead-letters/{lane}/replay", t.replayed);
    }
  };
  const drop = async () => {
    const question = { title: t.dropTitle(n), body: t.dropBody, action: t.drop, tone: "danger" as const };
    if (await confirm(isAll ? { ...question, typed: t.dropTyped } : question)) await run("/api/v1/dead-letters/{lane}/drop", t.dropped);
  };
  return (
    <div class="letter-actions">
      <label class="check">
        <input
          type="checkbox"
          checked={selection.size === ids.length}
          onChange={(event) => props.select(event.currentTarget.checked ? new Set(ids) : NONE)}
        />
        <span>{t.selectShown}</span>
      </label>
      <span class="dim" aria-live="polite">
        {isAll ? t.noneSelected : t.selected(selection.size)}
      </span>
      <span class="letter-buttons">
        <Button small onClick={replay}>
          {isAll ? t.replayAll : t.replay}
        </Button>
        <Button small tone="danger" onClick={drop}>
          {isAll ? t.dropAll : t.drop}
        </Button>
      </span>
    </div>
  );
}
