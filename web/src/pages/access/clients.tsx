// The tab "Clients".
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ClientRule } from "../../api/types";
import { useResource } from "../../resource";
import { can } from "../../session";
import { attempt, Badge, Button, Card, confirm, Empty, Failure, Loading, Name, Select, Table, TextField, type Column } from "../../ui";
import { AccessForm } from "./form";
import { parsePrefix } from "./parse";
import { t as all } from "./texts";
import { t } from "./texts/clients";

export function Clients() {
  const list = useResource("clients", (signal) => api.get("/api/v1/clients", { signal }), { everyMs: 10_000 });
  const clients = list.data?.items ?? [];
  return (
    <>
      {can("admin") && list.data && <AddRule clients={clients} refresh={list.refresh} />}
      <Card title={t.clients} flush>
        {list.error && !list.data ? <Failure problem={list.error} retry={list.refresh} /> : !list.data ? <Loading /> : <List clients={clients} refresh={list.refresh} />}
      </Card>
    </>
  );
}

/** Asks for confirmation if clients would be refused. Returns whether the rule was set. */
async function setRule(client: ClientRule, clients: readonly ClientRule[]): Promise<boolean> {
  const { prefix, name, allowed } = client;
  const isFirst = allowed && !clients.some((known) => known.allowed);
  if (isFirst && !(await confirm({ title: t.firstTitle(prefix), body: t.firstBody, action: t.allow, tone: "danger" }))) return false;
  if (!allowed && !(await confirm({ title: t.forbidTitle(prefix), body: t.forbidBody, action: t.forbid, tone: "danger" }))) return false;
  const work = () => api.put("/api/v1/clients/{prefix}", { path: { prefix }, body: { allowed, name } });
  return attempt(work, allowed ? t.allowedDone(prefix) : t.forbiddenDone(prefix));
}

function AddRule(props: { clients: readonly ClientRule[]; refresh(): void }) {
  const [prefix, setPrefix] = useState("");
  const [name, setName] = useState("");
  const [verdict, setVerdict] = useState<"allow" | "forbid">("allow");
  const [error, setError] = useState("");
  const submit = async () => {
    const read = parsePrefix(prefix);
    setError(read ? "" : t.prefixBad);
    if (!read) return;
    const isDone = await setRule({ prefix: read, name, allowed: verdict === "allow" }, props.clients);
    props.refresh();
    if (isDone) {
      setPrefix("");
      setName("");
    }
  };
  const verdicts: { value: "allow" | "forbid"; label: string }[] = [
    { value: "allow", label: t.allowed },
    { value: "forbid", label: t.forbidden },
  ];
  return (
    <Card title={t.addRule}>
      <p class="dim">{t.rule}</p>
      <AccessForm action={verdict === "allow" ? t.allow : t.forbid} onSubmit={submit}>
        <TextField label={t.prefix} hint={t.prefixHint} value={prefix} onInput={setPrefix} error={error} mono maxLength={44} />
        <TextField label={t.name} hint={t.nameHint} value={name} onInput={setName} maxLength={200} />
        <Select label={t.verdict} value={verdict} options={verdicts} onChange={(value) => setVerdict(value)} />
      </AccessForm>
    </Card>
  );
}

function List(props: { clients: readonly ClientRule[]; refresh(): void }) {
  const { clients } = props;
  const allowedCount = clients.filter((client) => client.allowed).length;
  const columns: Column<ClientRule>[] = [
    { key: "prefix", title: t.prefix, render: (client) => <code class="nowrap">{client.prefix}</code>, phone: "title" },
    { key: "name", title: t.name, render: (client) => <Name text={client.name} />, wide: true },
    { key: "state", title: all.state, render: (client) => (client.allowed ? <Badge tone="ok">{t.allowed}</Badge> : <Badge tone="bad">{t.forbidden}</Badge>) },
  ];
  if (can("admin")) {
    columns.push({ key: "action", title: all.actions, render: (client) => <Actions client={client} clients={clients} refresh={props.refresh} />, align: "end" });
  }
  return (
    <>
      {clients.length > 0 && <p class="dim access-note">{allowedCount > 0 ? t.closed : t.open}</p>}
      <Table columns={columns} rows={clients} rowKey={(client) => client.prefix} caption={t.clients} empty={<Empty title={t.none}>{t.noneHint}</Empty>} />
    </>
  );
}

function Actions(props: { client: ClientRule; clients: readonly ClientRule[]; refresh(): void }) {
  const { client, clients } = props;
  const change = async () => {
    await setRule({ ...client, allowed: !client.allowed }, clients);
    props.refresh();
  };
  const remove = async () => {
    const others = clients.filter((one) => one.allowed && one.prefix !== client.prefix).length;
    const body = others > 0 ? t.removeBodyClosed : client.allowed ? t.removeBodyLast : t.removeBodyOpen;
    if (!(await confirm({ title: t.removeTitle(client.prefix), body, action: all.remove, tone: "danger" }))) return;
    await attempt(() => api.del("/api/v1/clients/{prefix}", { path: { prefix: client.prefix } }), t.removedDone(client.prefix));
    props.refresh();
  };
  return (
    <span class="access-actions">
      <Button small onClick={change} label={`${client.allowed ? t.forbid : t.allow}: ${client.prefix}`}>
        {client.allowed ? t.forbid : t.allow}
      </Button>
      <Button small tone="danger" onClick={remove} label={`${all.remove}: ${client.prefix}`}>
        {all.remove}
      </Button>
    </span>
  );
}
