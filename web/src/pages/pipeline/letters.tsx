// Dead letters and failed entries: look, choose some or all, try again or drop.
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { DeadLetter, JournalStatus } from "../../api/types";
import { nowS } from "../../clock";
import { usePaged } from "../../resource";
import { link } from "../../router";
import { can } from "../../session";
import { attempt, Button, Card, confirm, Count, Empty, Facts, Failure, Loading, MoreButton, Name, Table, Tabs, Time, toast, type Column } from "../../ui";
import { NONE, requestsFor, stillThere, toggled, type Choice } from "./choice";
import { allWellHints, lettersHints, t } from "./texts";

type Lane = "dlq" | "failed";

const PAGE = 50;

/** Both lanes, one of them shown. */
export function Letters(props: { lane: Lane; journal: JournalStatus; refreshJournal(): void }) {
  const { lane, journal } = props;
  const tabs = [
    { key: "dlq", label: <Counted text={t.dlq} n={journal.dlq} />, href: link("/pipeline") },
    { key: "failed", label: <Counted text={t.failed} n={journal.failed} />, href: link("/pipeline", { lane: "failed" }) },
  ];
  return (
    <Card title={t.letters} flush>
      <div class="letter-head">
        <Tabs tabs={tabs} active={lane} label={t.letters} />
        <p class="dim">{lettersHints[lane]}</p>
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
  const list = usePaged<DeadLetter>(`letters ${lane}`, (cursor, signal) =>
    api.get("/api/v1/letters/{lane}", { path: { lane }, query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, signal }),
  );
  const [chosen, setChosen] = useState<Choice>(NONE);
  const ids = list.items.map((letter) => letter.id);
  const choice = stillThere(chosen, ids);

  // The first page follows what happens. Whoever has loaded more reads in peace.
  useEffect(() => {
    if (!list.loading && list.items.length <= PAGE) list.refresh();
  }, [total]);

  const after = () => {
    setChosen(NONE);
    list.refresh();
    props.refreshJournal();
  };
  if (list.error && list.items.length === 0) return <Failure problem={list.error} retry={list.refresh} />;
  if (list.loading) return <Loading rows={4} />;
  if (list.items.length === 0) {
    return (
      <Empty title={t.allWell} tone="ok">
        {allWellHints[lane]}
      </Empty>
    );
  }
  const mayChange = can("admin");
  return (
    <>
      {mayChange ? <Doings lane={lane} choice={choice} ids={ids} total={total} choose={setChosen} after={after} /> : <p class="dim letter-doings">{t.readOnly}</p>}
      <Table
        columns={columnsOf(lane, journal, mayChange ? { choice, choose: setChosen } : null)}
        rows={list.items}
        rowKey={(letter) => letter.id}
        caption={t.letters}
      />
      <MoreButton list={list} />
    </>
  );
}

interface Choosing {
  choice: Choice;
  choose(choice: Choice): void;
}

function columnsOf(lane: Lane, journal: JournalStatus, choosing: Choosing | null): Column<DeadLetter>[] {
  const viewOf = (group: string) => journal.groups.find((known) => known.group === group)?.view ?? (group || "–");
  return [
    { key: "reason", title: t.reason, render: (letter) => <Row letter={letter} choosing={choosing} />, wide: true, phone: "title" },
    { key: "view", title: t.of, render: (letter) => viewOf(letter.group) },
    { key: "failed", title: t.failedAt, render: (letter) => <Time at={letter.failed_at} /> },
    { key: "tries", title: t.tries, render: (letter) => <Count value={letter.retry} />, align: "end" },
    { key: "due", title: t.due, render: (letter) => <Due lane={lane} at={letter.due_at} /> },
  ];
}

function Row(props: { letter: DeadLetter; choosing: Choosing | null }) {
  const { letter, choosing } = props;
  return (
    <div class="letter">
      {choosing && (
        <input
          type="checkbox"
          aria-label={t.choose(letter.id)}
          checked={choosing.choice.has(letter.id)}
          onChange={(event) => choosing.choose(toggled(choosing.choice, letter.id, event.currentTarget.checked))}
        />
      )}
      <Said letter={letter} />
    </div>
  );
}

function Due(props: { lane: Lane; at: number }) {
  if (props.lane === "failed") return <span class="dim">{t.never}</span>;
  return props.at <= nowS.value ? <span>{t.dueNow}</span> : <Time at={props.at} />;
}

function Said(props: { letter: DeadLetter }) {
  const { letter } = props;
  const fields = Object.entries(letter.fields).map(([name, value]): [string, preact.ComponentChildren] => [name, <FieldValue name={name} value={value} />]);
  return (
    <div class="letter-said">
      <Name text={letter.reason} wrap most={300} />
      <details>
        <summary>{t.fields}</summary>
        <Facts items={[[t.letterId, <code>{letter.id}</code>], [t.origin, <code>{letter.origin}</code>], ...fields]} />
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

function Doings(props: { lane: Lane; choice: Choice; ids: string[]; total: number; choose(choice: Choice): void; after(): void }) {
  const { lane, choice, ids } = props;
  const isAll = choice.size === 0;
  const n = isAll ? props.total : choice.size;

  const doIt = async (path: "/api/v1/letters/{lane}/replay" | "/api/v1/letters/{lane}/drop", done: (n: number) => string) => {
    let handled = 0;
    const work = async () => {
      for (const body of requestsFor(choice)) handled += (await api.post(path, { path: { lane }, body })).count;
    };
    if (await attempt(work)) toast(handled > 0 ? done(handled) : t.goneAlready, handled > 0 ? "ok" : "info");
    props.after();
  };
  const replay = async () => {
    if (await confirm({ title: t.replayTitle(n), body: t.replayBody, action: t.replay })) {
      await doIt("/api/v1/letters/{lane}/replay", t.replayed);
    }
  };
  const drop = async () => {
    const question = { title: t.dropTitle(n), body: t.dropBody, action: t.drop, tone: "danger" as const };
    if (await confirm(isAll ? { ...question, typed: t.dropTyped } : question)) await doIt("/api/v1/letters/{lane}/drop", t.dropped);
  };
  return (
    <div class="letter-doings">
      <label class="check">
        <input
          type="checkbox"
          checked={choice.size === ids.length}
          onChange={(event) => props.choose(event.currentTarget.checked ? new Set(ids) : NONE)}
        />
        <span>{t.chooseShown}</span>
      </label>
      <span class="dim" aria-live="polite">
        {isAll ? t.noneChosen : t.chosen(choice.size)}
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
