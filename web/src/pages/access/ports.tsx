// The tab "Banned ports".
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { BannedPorts } from "../../api/types";
import { useResource } from "../../resource";
import { can } from "../../session";
import { attempt, Button, Card, confirm, Empty, Failure, Loading, Name, Table, TextField, type Column } from "../../ui";
import { AccessForm } from "./form";
import { portsText, parsePorts } from "./parse";
import { t as all } from "./texts";
import { t } from "./texts/ports";

export function Ports() {
  const list = useResource("ports", (signal) => api.get("/api/v1/ports", { signal }), { everyMs: 10_000 });
  return (
    <>
      {can("admin") && <Ban refresh={list.refresh} />}
      <Card title={t.list} flush>
        {list.error && !list.data ? <Failure problem={list.error} retry={list.refresh} /> : !list.data ? <Loading /> : <List banned={list.data.items} refresh={list.refresh} />}
      </Card>
    </>
  );
}

function Ban(props: { refresh(): void }) {
  const [text, setText] = useState("");
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const submit = async () => {
    const ports = parsePorts(text);
    setError(ports ? "" : t.portsBad);
    if (!ports) return;
    const name = portsText(ports);
    if (!(await confirm({ title: t.banTitle(name), body: t.banBody, action: t.banDo, tone: "danger" }))) return;
    const isDone = await attempt(() => api.put("/api/v1/ports/{first}/{last}", { path: { ...ports }, body: { reason } }), t.banned(name));
    props.refresh();
    if (isDone) {
      setText("");
      setReason("");
    }
  };
  return (
    <Card title={t.ban}>
      <p class="dim">{t.rule}</p>
      <AccessForm action={t.banDo} onSubmit={submit}>
        <TextField label={t.ports} hint={t.portsHint} value={text} onInput={setText} error={error} mono />
        <TextField label={t.reason} hint={t.reasonHint} value={reason} onInput={setReason} maxLength={200} />
      </AccessForm>
    </Card>
  );
}

function List(props: { banned: readonly BannedPorts[]; refresh(): void }) {
  const unban = async (ports: BannedPorts) => {
    const name = portsText(ports);
    if (!(await confirm({ title: t.unbanTitle(name), body: t.unbanBody, action: t.unban }))) return;
    await attempt(() => api.del("/api/v1/ports/{first}/{last}", { path: { first: ports.first, last: ports.last } }), t.unbanned(name));
    props.refresh();
  };
  const columns: Column<BannedPorts>[] = [
    { key: "ports", title: t.ports, render: (ports) => <span class="mono nowrap">{portsText(ports)}</span>, phone: "title" },
    { key: "many", title: t.portCount, render: (ports) => <span class="nowrap">{t.many(ports.last - ports.first + 1)}</span> },
    { key: "reason", title: t.reason, render: (ports) => <Name text={ports.reason} />, wide: true },
  ];
  if (can("admin")) {
    const button = (ports: BannedPorts) => (
      <Button small onClick={() => unban(ports)}>
        {t.unban}
      </Button>
    );
    columns.push({ key: "action", title: all.actions, render: button, align: "end" });
  }
  return <Table columns={columns} rows={props.banned} rowKey={(ports) => ports.first} caption={t.list} empty={<Empty title={t.none}>{t.noneHint}</Empty>} />;
}
