// Actions on a user. Each asks for confirmation.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { User, UpdateUser } from "../../api/types";
import { can } from "../../session";
import { attempt, Button, confirm, CopyButton, Dialog, DialogButtons, TextField, words, type Question } from "../../ui";
import { SlotsDialog } from "../../ui/slots";
import { t } from "./texts";

/** Empty without the scope admin. */
export function UserActions(props: { user: User; refresh(): void }) {
  const { user, refresh } = props;
  const [asksSlots, setAsksSlots] = useState(false);
  const [asksName, setAsksName] = useState(false);
  const [newPasskey, setNewPasskey] = useState<string | null>(null);
  if (!can("admin")) return null;
  const id = String(user.id);
  const path = { id: user.id };
  const change = async (body: UpdateUser): Promise<boolean> => {
    const done = await attempt(() => api.patch("/api/v1/users/{id}", { path, body }), t.done);
    if (done) refresh();
    return done;
  };
  const ask = async (question: Question, body: UpdateUser) => {
    if (await confirm(question)) await change(body);
  };
  const reset = async () => {
    if (!(await confirm({ title: t.resetTitle(id), body: t.resetBody, action: t.resetPasskey, tone: "danger", typed: id }))) return;
    await attempt(async () => setNewPasskey((await api.post("/api/v1/users/{id}/passkey", { path, body: {} })).passkey ?? ""), t.done);
    refresh();
  };
  return (
    <>
      {user.enabled ? (
        <Button tone="danger" onClick={() => ask({ title: t.disableTitle(id), body: t.disableBody, action: t.disable, tone: "danger" }, { enabled: false })}>
          {t.disable}
        </Button>
      ) : (
        <Button tone="primary" onClick={() => ask({ title: t.enableTitle(id), body: t.enableBody, action: t.enable }, { enabled: true })}>
          {t.enable}
        </Button>
      )}
      <Button onClick={() => setAsksName(true)}>{t.setName}</Button>
      <Button onClick={() => setAsksSlots(true)}>{t.setSlots}</Button>
      <Button tone="danger" onClick={reset}>
        {t.resetPasskey}
      </Button>
      {asksSlots && (
        <SlotsDialog title={t.slotsTitle} value={user.leech_slots} onSave={(leech_slots) => change({ leech_slots })} onClose={() => setAsksSlots(false)} />
      )}
      {asksName && <NameDialog user={user} onSave={(name) => change({ name })} onClose={() => setAsksName(false)} />}
      {newPasskey !== null && <NewPasskey value={newPasskey} onClose={() => setNewPasskey(null)} />}
    </>
  );
}

/** `onSave` returns whether it succeeded. */
function NameDialog(props: { user: User; onSave(name: string | null): Promise<boolean>; onClose(): void }) {
  const [text, setText] = useState(props.user.name ?? "");
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    if (await props.onSave(text.trim() || null)) props.onClose();
    else setBusy(false);
  };
  return (
    <Dialog open title={t.nameTitle(String(props.user.id))} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField label={t.name} hint={t.nameHint} value={text} onInput={setText} maxLength={100} autoFocus />
        <DialogButtons>
          <Button onClick={props.onClose}>{words.cancel}</Button>
          <Button tone="primary" type="submit" busy={busy}>
            {t.save}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

function NewPasskey(props: { value: string; onClose(): void }) {
  return (
    <Dialog open title={t.resetDone} onClose={props.onClose}>
      <p class="hash-line">
        <code class="hash">{props.value}</code>
        <CopyButton text={props.value} />
      </p>
      <DialogButtons>
        <Button tone="primary" onClick={props.onClose}>
          {words.close}
        </Button>
      </DialogButtons>
    </Dialog>
  );
}
