// How many may leech at once, of a torrent or of a user: shown, and asked for.
import { useState } from "preact/hooks";
import * as format from "../format";
import { texts } from "../i18n";
import { Button } from "./button";
import { Dialog, DialogButtons } from "./dialog";
import { TextField } from "./field";
import { words } from "./texts";

const t = texts({
  en: {
    asConfigured: "default",
    any: "any number",
    label: "Leech slots",
    hint: "Empty: the default. -1: any number. Whoever leeches already goes on.",
    bad: "A whole number from -1 to 1,000,000, or nothing.",
    save: "Save",
  },
  zh: {
    asConfigured: "默认",
    any: "不限",
    label: "下载名额",
    hint: "留空：默认值。-1：不限。已在下载的不受影响。",
    bad: "请输入 -1 到 1,000,000 的整数，或留空。",
    save: "保存",
  },
});

const SLOTS_MAX = 1_000_000;

/** What is written, as the API has it: null for the configured default; undefined where it is no such number. */
export function readSlots(text: string): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (!/^(-1|\d{1,7})$/.test(trimmed)) return undefined;
  const slots = Number(trimmed);
  return slots <= SLOTS_MAX ? slots : undefined;
}

/** How many. */
export function Slots(props: { value: number | null | undefined }) {
  if (props.value === null || props.value === undefined) return <span>{t.asConfigured}</span>;
  return <span class="number">{props.value < 0 ? t.any : format.countExact(props.value)}</span>;
}

/** Asks how many. `onSave` says whether it worked. */
export function SlotsDialog(props: {
  title: string;
  value: number | null | undefined;
  onSave(slots: number | null): Promise<boolean>;
  onClose(): void;
}) {
  const [text, setText] = useState(props.value === null || props.value === undefined ? "" : String(props.value));
  const [busy, setBusy] = useState(false);
  const slots = readSlots(text);
  const save = async () => {
    if (slots === undefined) return;
    setBusy(true);
    if (await props.onSave(slots)) props.onClose();
    else setBusy(false);
  };
  return (
    <Dialog open title={props.title} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField label={t.label} value={text} onInput={setText} hint={t.hint} error={slots === undefined ? t.bad : undefined} autoFocus mono />
        <DialogButtons>
          <Button onClick={props.onClose}>{words.cancel}</Button>
          <Button type="submit" tone="primary" busy={busy} disabled={slots === undefined}>
            {t.save}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
