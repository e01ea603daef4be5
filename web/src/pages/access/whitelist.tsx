// The whitelist: passkeys of users in the site's own database.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { count } from "../../format";
import { useResource } from "../../resource";
import { can } from "../../session";
import { attempt, Badge, Button, Card, confirm, Count, Failure, Field, toast } from "../../ui";
import { parsePasskeys } from "./parse";
import { t } from "./texts/users";
import { uploadWhitelist } from "./upload";

const PASSKEYS_MAX = 10_000;
const RESULTS_SHOWN_MAX = 200;

export function Whitelist() {
  const size = useResource("whitelist", (signal) => api.get("/api/v1/whitelist", { signal }), { everyMs: 10_000 });
  const n = size.data?.count ?? 0;
  return (
    <Card title={t.whitelist}>
      <div class="stack">
        <p class="dim">{t.whitelistHint}</p>
        {size.error && !size.data && <Failure problem={size.error} retry={size.refresh} />}
        <p>
          {t.size}: <strong>{size.data ? <Count value={n} /> : "–"}</strong>
        </p>
        <div class="grid">
          <EditPasskeys refresh={size.refresh} />
          {can("admin") && <ReplaceList before={n} refresh={size.refresh} />}
        </div>
      </div>
    </Card>
  );
}

type Listed = { passkey: string; isListed: boolean }[];

function EditPasskeys(props: { refresh(): void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const [listed, setListed] = useState<Listed | null>(null);

  const readInput = (): string[] | null => {
    const read = parsePasskeys(text);
    const problem =
      "badLine" in read ? t.lineBad(String(read.badLine)) : read.passkeys.length === 0 ? t.passkeysMissing : read.passkeys.length > PASSKEYS_MAX ? t.tooMany : "";
    setError(problem);
    return problem === "" && "passkeys" in read ? read.passkeys : null;
  };
  const lookUp = async (passkeys: string[]) => {
    const answer = await api.post("/api/v1/whitelist/check", { body: { passkeys } });
    setListed(passkeys.map((passkey, index) => ({ passkey, isListed: answer.listed[index] ?? false })));
  };
  const check = async () => {
    const passkeys = readInput();
    if (passkeys) await attempt(() => lookUp(passkeys));
  };
  const change = async (path: "/api/v1/whitelist/add" | "/api/v1/whitelist/remove", done: (n: string) => string) => {
    const passkeys = readInput();
    if (!passkeys) return;
    const isRemoval = path === "/api/v1/whitelist/remove";
    if (isRemoval && !(await confirm({ title: t.removeThemTitle(count(passkeys.length)), body: t.removeThemBody, action: t.removeThem, tone: "danger" }))) return;
    await attempt(async () => {
      const answer = await api.post(path, { body: { passkeys } });
      toast(done(count(answer.changed)));
      await lookUp(passkeys);
    });
    props.refresh();
  };
  return (
    <section class="stack-small">
      <h3>{t.check}</h3>
      <Field label={t.passkeys} hint={t.passkeysHint} error={error}>
        <textarea class="input mono" rows={4} spellcheck={false} autoComplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <div class="wrap">
        <Button onClick={check}>{t.checkThem}</Button>
        {can("admin") && <Button onClick={() => change("/api/v1/whitelist/add", t.changedAdd)}>{t.addThem}</Button>}
        {can("admin") && (
          <Button tone="danger" onClick={() => change("/api/v1/whitelist/remove", t.changedRemove)}>
            {t.removeThem}
          </Button>
        )}
      </div>
      {listed && <CheckResults listed={listed} />}
    </section>
  );
}

function CheckResults(props: { listed: Listed }) {
  const { listed } = props;
  const on = listed.filter((one) => one.isListed).length;
  return (
    <div role="status">
      <p>{t.checked(count(on), count(listed.length))}</p>
      <ul class="whitelist-results">
        {listed.slice(0, RESULTS_SHOWN_MAX).map((one, index) => (
          <li key={index} class="wrap">
            <Badge tone={one.isListed ? "ok" : "bad"}>{one.isListed ? t.listed : t.notListed}</Badge>
            <code>{one.passkey.slice(0, 8)}…</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

function ReplaceList(props: { before: number; refresh(): void }) {
  const [file, setFile] = useState<File | null>(null);
  const [error, setError] = useState("");
  const replaced = (answer: { before: number; after: number }) => toast(t.listReplaced(answer.before, count(answer.after)));

  const replace = async () => {
    setError(file ? (file.size === 0 ? t.fileEmpty : "") : t.fileMissing);
    if (!file || file.size === 0) return;
    const body = t.replaceListBody(props.before, file.name);
    if (!(await confirm({ title: t.replaceListTitle, body, action: t.replaceListDo, tone: "danger", typed: t.replaceListTyped }))) return;
    await attempt(async () => replaced(await uploadWhitelist(file)));
    props.refresh();
  };
  const undo = async () => {
    if (!(await confirm({ title: t.undoTitle, body: t.undoBody, action: t.undo, tone: "danger" }))) return;
    await attempt(async () => replaced(await api.post("/api/v1/whitelist/undo")));
    props.refresh();
  };
  return (
    <section class="stack-small">
      <h3>{t.replaceList}</h3>
      <Field label={t.file} hint={t.replaceListHint} error={error}>
        <input class="input" type="file" accept=".txt,.csv,text/plain" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </Field>
      <div class="wrap">
        <Button tone="danger" onClick={replace}>
          {t.replaceListDo}
        </Button>
        <Button onClick={undo}>{t.undo}</Button>
      </div>
    </section>
  );
}
