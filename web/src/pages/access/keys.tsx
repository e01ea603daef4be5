// The tab "API keys".
import { useState } from "preact/hooks";
import { api, request } from "../../api/client";
import type { ApiKey } from "../../api/types";
import { useResource } from "../../resource";
import { can, findSession, session } from "../../session";
import { attempt, Badge, Button, Card, Check, confirm, Empty, Failure, Loading, Name, Table, TextField, Time, type Column } from "../../ui";
import { AccessForm } from "./form";
import { NewSecret } from "./secret";
import { t as all } from "./texts";
import { scopeNames, t } from "./texts/keys";

/** The limit of one page. */
const KEYS_MAX = 1000;
const SCOPES = ["verify", "read", "admin"] as const;

export function Keys() {
  if (!can("admin")) return <Empty title={all.needAdmin} />;
  return <AllKeys />;
}

function AllKeys() {
  const list = useResource("keys", (signal) => api.get("/api/v1/keys", { query: { limit: KEYS_MAX }, signal }), { everyMs: 10_000 });
  return (
    <>
      <Create refresh={list.refresh} />
      <Card title={t.list} flush>
        {list.error && !list.data ? <Failure problem={list.error} retry={list.refresh} /> : !list.data ? <Loading /> : <List keys={list.data.items} refresh={list.refresh} />}
      </Card>
    </>
  );
}

function Create(props: { refresh(): void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(["read"]);
  const [errors, setErrors] = useState<{ name?: string; scopes?: string }>({});
  const [created, setCreated] = useState<{ name: string; key: string } | null>(null);
  const submit = async () => {
    const found = { ...(name.trim() ? {} : { name: t.nameMissing }), ...(scopes.length > 0 ? {} : { scopes: t.scopeMissing }) };
    setErrors(found);
    if (Object.keys(found).length > 0) return;
    if (scopes.includes("admin") && !(await confirm({ title: t.adminTitle, body: t.adminBody, action: t.createDo, tone: "danger" }))) return;
    const isDone = await attempt(async () => {
      const answer = await api.post("/api/v1/keys", { body: { name: name.trim(), scopes: SCOPES.filter((scope) => scopes.includes(scope)) } });
      setCreated({ name: answer.name, key: answer.key });
    });
    props.refresh();
    if (isDone) setName("");
  };
  const toggle = (scope: string, isChosen: boolean) => setScopes(isChosen ? [...scopes, scope] : scopes.filter((one) => one !== scope));
  return (
    <Card title={t.create}>
      <p class="dim">{t.rule}</p>
      <AccessForm action={t.createDo} onSubmit={submit}>
        <TextField label={t.name} hint={t.nameHint} value={name} onInput={setName} error={errors.name} maxLength={100} />
        <fieldset class="access-scopes">
          <legend>{t.scopes}</legend>
          {SCOPES.map((scope) => (
            <Check key={scope} label={scopeNames[scope]} checked={scopes.includes(scope)} onChange={(isChosen) => toggle(scope, isChosen)} />
          ))}
          {errors.scopes && (
            <span class="field-error" role="alert">
              {errors.scopes}
            </span>
          )}
        </fieldset>
      </AccessForm>
      {created && <NewSecret title={t.created(created.name)} warning={t.once} value={created.key} onClose={() => setCreated(null)} />}
    </Card>
  );
}

function isOwn(key: ApiKey): boolean {
  return String(session.value?.key_id) === String(key.id);
}

function List(props: { keys: readonly ApiKey[]; refresh(): void }) {
  const { keys } = props;
  const columns: Column<ApiKey>[] = [
    { key: "name", title: t.name, render: (key) => <KeyName shown={key} />, wide: true, phone: "title" },
    { key: "id", title: t.id, render: (key) => <code class="nowrap">{key.id}</code> },
    { key: "scopes", title: t.scopesColumn, render: (key) => <Scopes scopes={key.scopes} /> },
    { key: "since", title: t.since, render: (key) => <Time at={key.created_at} /> },
    { key: "used", title: t.used, render: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : <span class="dim">{t.unused}</span>) },
    { key: "action", title: all.actions, render: (key) => <Revoke shown={key} keys={keys} refresh={props.refresh} />, align: "end" },
  ];
  return <Table columns={columns} rows={keys} rowKey={(key) => key.id} caption={t.list} empty={<Empty title={t.none} />} />;
}

function KeyName(props: { shown: ApiKey }) {
  return (
    <span class="wrap">
      <Name text={props.shown.name} />
      {isOwn(props.shown) && <Badge tone="info">{t.yours}</Badge>}
    </span>
  );
}

function Scopes(props: { scopes: readonly string[] }) {
  return (
    <span class="access-actions">
      {props.scopes.map((scope) => (
        <Badge key={scope} tone={scope === "admin" ? "warn" : "plain"}>
          {scope}
        </Badge>
      ))}
    </span>
  );
}

function Revoke(props: { shown: ApiKey; keys: readonly ApiKey[]; refresh(): void }) {
  const { shown, keys } = props;
  const isLast = shown.scopes.includes("admin") && keys.filter((key) => key.scopes.includes("admin")).length === 1;
  const remove = async () => {
    const isConfirmed = await confirm(
      isLast
        ? { title: t.lastTitle, body: t.lastBody, action: all.remove, tone: "danger", typed: t.removeTyped }
        : { title: t.removeTitle(shown.name), body: isOwn(shown) ? t.removeOwnBody : t.removeBody, action: all.remove, tone: "danger" },
    );
    if (!isConfirmed) return;
    // `force` is confirmed by the dialog above.
    const query = isLast || isOwn(shown) ? { force: true } : {};
    const isDone = await attempt(() => request("DELETE", "/api/v1/keys/{id}", { path: { id: shown.id }, query }), t.removed(shown.name));
    if (isDone && isOwn(shown)) await findSession();
    else props.refresh();
  };
  return (
    <Button small tone="danger" onClick={remove} label={`${all.remove}: ${shown.name}`}>
      {all.remove}
    </Button>
  );
}
