// Leech slots of a torrent or user: display and dialog.
import { useState } from "preact/hooks";
import * as format from "../format";
import { texts } from "../i18n";
import { Button } from "./button";
import { Dialog, DialogButtons } from "./dialog";
import { TextField } from "./field";
import { words } from "./texts";

const t = texts({
  en: {
    defaultValue: "default",
    any: "unlimited",
    label: "Leech slots",
    hint: "Empty: default. -1: unlimited. Peers that already leech are not affected.",
    bad: "Enter a whole number from -1 to 1,000,000, or leave empty.",
    save: "Save",
  },
  zh: {
    defaultValue: "默认",
    any: "不限",
    label: "下载名额",
    hint: "留空：默认值。-1：不限。已在下载的不受影响。",
    bad: "请输入 -1 到 1,000,000 的整数，或留空。",
    save: "保存",
  },
});

const SLOTS_MAX = 1_000_000;

/** Value for the API: null for the configured default; undefined if invalid. */
export function parseSlots(text: string): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (!/^(-1|\d{1,7})$/.test(trimmed)) return undefined;
  const slots = Number(trimmed);
  return slots <= SLOTS_MAX ? slots : undefined;
}

export function Slots(props: { value: number | null | undefined }) {
  if (props.value === null || props.value === undefined) return <span>{t.defaultValue}</span>;
  return <span class="number">{props.value < 0 ? t.any : format.countExact(props.value)}</span>;
}

/** `onSave` returns whether it succeeded. */
export function SlotsDialog(props: {
  title: string;
  value: number | null | undefined;
  onSave(slots: number | null): Promise<boolean>;
  onClose(): void;
}) {
  const [text, setText] = useState(props.value === null || props.value === undefined ? "" : String(props.value));
  const [busy, setBusy] = useState(false);
  const slots = parseSlots(text);
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
