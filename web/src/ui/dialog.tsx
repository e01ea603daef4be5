// Dialogs. The browser's <dialog> keeps the focus inside and closes on Escape.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { TextField } from "./field";
import { words } from "./texts";

/** Children are mounted only while it is open. */
export function Dialog(props: { open: boolean; title: ComponentChildren; onClose(): void; children: ComponentChildren }) {
  return props.open ? <OpenDialog {...props} /> : null;
}

function OpenDialog(props: { title: ComponentChildren; onClose(): void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
    >
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** The confirming button comes last. */
export function DialogButtons(props: { children: ComponentChildren }) {
  return <div class="dialog-buttons">{props.children}</div>;
}

export interface Question {
  title: string;
  body?: ComponentChildren;
  /** Label of the button: a verb. */
  action: string;
  tone?: "primary" | "danger";
  /** A word to type before an irreversible action. */
  typed?: string;
}

const pending = signal<{ question: Question; answer(yes: boolean): void } | null>(null);

export function confirm(question: Question): Promise<boolean> {
  pending.value?.answer(false);
  return new Promise((resolve) => {
    pending.value = {
      question,
      answer: (yes) => {
        pending.value = null;
        resolve(yes);
      },
    };
  });
}

/** Renders the dialog of `confirm`; once per page. */
export function Confirm() {
  const open = pending.value;
  if (!open) return null;
  return (
    <Dialog open title={open.question.title} onClose={() => open.answer(false)}>
      <ConfirmBody question={open.question} answer={open.answer} />
    </Dialog>
  );
}

function ConfirmBody(props: { question: Question; answer(yes: boolean): void }) {
  const { question, answer } = props;
  const [text, setText] = useState("");
  const isReady = question.typed === undefined || text === question.typed;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) answer(true);
      }}
    >
      {question.body && <div class="dialog-body">{question.body}</div>}
      {question.typed !== undefined && <TextField label={words.typeToConfirm(question.typed)} value={text} onInput={setText} autoFocus mono />}
      <DialogButtons>
        <Button onClick={() => answer(false)}>{words.cancel}</Button>
        <Button type="submit" tone={question.tone ?? "primary"} disabled={!isReady}>
          {question.action}
        </Button>
      </DialogButtons>
    </form>
  );
}
