// The tab "Users and passkeys".
import { useState } from "preact/hooks";
import { api, Problem } from "../../api/client";
import type { PageOf, User } from "../../api/types";
import { usePaged } from "../../resource";
import { link } from "../../router";
import { can } from "../../session";
import { attempt, Badge, Button, Card, confirm, Dialog, DialogButtons, Empty, Failure, Loading, MoreButton, Name, SearchField, Table, TextField, Time, type Column } from "../../ui";
import { AccessForm } from "./form";
import { parseId, parsePasskey } from "./parse";
import { NewSecret, Secret } from "./secret";
import { t as all } from "./texts";
import { t } from "./texts/users";
import { Whitelist } from "./whitelist";

const PAGE = 50;

export function Users() {
  const [text, setText] = useState("");
  const list = usePaged<User>(`access users ${text}`, (cursor, signal) => (text ? search(text, cursor, signal) : page(cursor, signal)));
  return (
    <>
      {can("admin") && <Add refresh={list.refresh} />}
      <Card title={t.users} actions={<SearchField value={text} label={t.search} placeholder={t.search} onSearch={setText} />} flush>
        {list.error && list.items.length === 0 ? (
          <Failure problem={list.error} retry={list.refresh} />
        ) : list.loading ? (
          <Loading rows={6} />
        ) : (
          <>
            <List users={list.items} isSearch={text !== ""} refresh={list.refresh} />
            <MoreButton list={list} />
          </>
        )}
      </Card>
      <Whitelist />
    </>
  );
}

function page(cursor: string | undefined, signal: AbortSignal): Promise<PageOf<User>> {
  return api.get("/api/v1/users", { query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, signal });
}

// By name or number, or by a full passkey. A passkey is sent in the body: addresses are logged.
async function search(text: string, cursor: string | undefined, signal: AbortSignal): Promise<PageOf<User>> {
  const passkey = parsePasskey(text);
  if (passkey === null || !can("admin")) {
    return api.get("/api/v1/users", { query: { limit: PAGE, search: text, ...(cursor ? { cursor } : {}) }, signal });
  }
  const ids = new Set<number>();
  const id = parseId(text);
  if (id !== null) ids.add(id);
  const holders = await api.post("/api/v1/users/lookup", { body: { passkeys: [passkey] }, signal });
  for (const holder of holders.items) if (typeof holder.user === "number") ids.add(holder.user);
  const users: User[] = [];
  for (const one of ids) {
    try {
      users.push((await api.get("/api/v1/users/{id}", { path: { id: one }, signal })).user);
    } catch (thrown) {
      if (!(thrown instanceof Problem) || thrown.status !== 404) throw thrown;
    }
  }
  return { items: users, next: null };
}

function Add(props: { refresh(): void }) {
  const [id, setId] = useState("");
  const [passkey, setPasskey] = useState("");
  const [name, setName] = useState("");
  const [errors, setErrors] = useState<{ id?: string; passkey?: string }>({});
  const [created, setCreated] = useState<{ id: string; passkey: string } | null>(null);
  const submit = async () => {
    const idNumber = parseId(id);
    const passkeyText = parsePasskey(passkey);
    const faults = {
      ...(id.trim() && idNumber === null ? { id: all.badNumber } : {}),
      ...(passkey.trim() && passkeyText === null ? { passkey: t.passkeyBad } : {}),
    };
    setErrors(faults);
    if (Object.keys(faults).length > 0) return;
    const isDone = await attempt(async () => {
      const user = await api.post("/api/v1/users", { body: { id: idNumber, passkey: passkeyText, name: name.trim() || null } });
      setCreated({ id: String(user.id), passkey: user.passkey ?? "" });
    });
    if (!isDone) return;
    props.refresh();
    setId("");
    setPasskey("");
    setName("");
  };
  return (
    <Card title={t.add}>
      <AccessForm action={all.add} onSubmit={submit}>
        <TextField label={t.id} hint={t.idHint} value={id} onInput={setId} error={errors.id} mono />
        <TextField label={t.passkey} hint={t.passkeyHint} value={passkey} onInput={setPasskey} error={errors.passkey} mono maxLength={64} />
        <TextField label={t.name} hint={t.nameHint} value={name} onInput={setName} maxLength={100} />
      </AccessForm>
      {created && <NewSecret title={`${t.added(created.id)}. ${t.passkeyOf(created.id)}:`} warning={t.passkeyWarning} value={created.passkey} onClose={() => setCreated(null)} />}
    </Card>
  );
}

function List(props: { users: readonly User[]; isSearch: boolean; refresh(): void }) {
  const columns: Column<User>[] = [
    { key: "user", title: t.user, render: (user) => <UserCell user={user} />, phone: "title" },
    { key: "state", title: all.state, render: (user) => <State user={user} /> },
    { key: "since", title: t.since, render: (user) => <Time at={user.created_at} /> },
  ];
  if (can("admin")) {
    columns.splice(1, 0, {
      key: "passkey",
      title: t.passkey,
      render: (user) => (user.passkey ? <Secret value={user.passkey} label={t.passkeyOf(String(user.id))} /> : null),
    });
    columns.push({ key: "action", title: all.actions, render: (user) => <Actions user={user} refresh={props.refresh} />, align: "end" });
  }
  const empty = props.isSearch ? <Empty title={t.noneSuch} /> : <Empty title={t.none}>{t.noneHint}</Empty>;
  return <Table columns={columns} rows={props.users} rowKey={(user) => user.id} caption={t.users} empty={empty} />;
}

function UserCell(props: { user: User }) {
  const { id, name } = props.user;
  return (
    <span class="access-user">
      <a href={link(`/users/${id}`)}>{id}</a>
      {name && <Name text={name} most={18} />}
    </span>
  );
}

function State(props: { user: User }) {
  return (
    <span class="wrap">
      {props.user.enabled ? <Badge tone="ok">{all.enabled}</Badge> : <Badge tone="bad">{all.disabled}</Badge>}
      {props.user.external && <Badge title={t.externalHint}>{t.external}</Badge>}
    </span>
  );
}

function Actions(props: { user: User; refresh(): void }) {
  const { user, refresh } = props;
  const id = String(user.id);
  const [isReplacing, setReplacing] = useState(false);
  const setEnabled = async () => {
    if (user.enabled && !(await confirm({ title: t.disableTitle(id), body: t.disableBody, action: all.disable, tone: "danger" }))) return;
    const work = () => api.patch("/api/v1/users/{id}", { path: { id: user.id }, body: { enabled: !user.enabled } });
    await attempt(work, user.enabled ? t.disabledDone(id) : t.enabledDone(id));
    refresh();
  };
  const remove = async () => {
    if (!(await confirm({ title: t.removeTitle(id), body: t.removeBody, action: all.remove, tone: "danger", typed: id }))) return;
    await attempt(() => api.del("/api/v1/users/{id}", { path: { id: user.id } }), t.removedDone(id));
    refresh();
  };
  return (
    <span class="access-actions">
      <Button small onClick={() => setReplacing(true)} label={`${t.replace}: ${id}`}>
        {t.replace}
      </Button>
      <Button small onClick={setEnabled} label={`${user.enabled ? all.disable : all.enable}: ${id}`}>
        {user.enabled ? all.disable : all.enable}
      </Button>
      <Button small tone="danger" onClick={remove} label={`${all.remove}: ${id}`}>
        {all.remove}
      </Button>
      <Dialog open={isReplacing} title={t.replaceTitle(id)} onClose={() => setReplacing(false)}>
        <ReplacePasskey user={user} close={() => setReplacing(false)} refresh={refresh} />
      </Dialog>
    </span>
  );
}

function ReplacePasskey(props: { user: User; close(): void; refresh(): void }) {
  const id = String(props.user.id);
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const [created, setCreated] = useState<string | null>(null);
  if (created !== null) return <NewSecret title={t.replaced(id)} warning={t.passkeyWarning} value={created} onClose={props.close} />;
  const replace = async () => {
    const passkey = parsePasskey(text);
    const isBad = text.trim() !== "" && passkey === null;
    setError(isBad ? t.passkeyBad : "");
    if (isBad) return;
    await attempt(async () => {
      const user = await api.post("/api/v1/users/{id}/passkey", { path: { id: props.user.id }, body: { passkey } });
      setCreated(user.passkey ?? "");
      props.refresh();
    });
  };
  return (
    <div class="stack-small">
      <p>{t.replaceBody}</p>
      <TextField label={t.newPasskey} hint={t.passkeyHint} value={text} onInput={setText} error={error} mono maxLength={64} />
      <DialogButtons>
        <Button onClick={props.close}>{all.cancel}</Button>
        <Button tone="danger" onClick={replace}>
          {t.replace}
        </Button>
      </DialogButtons>
    </div>
  );
}
