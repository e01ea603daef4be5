// Buttons.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { words } from "./texts";

export type ButtonTone = "plain" | "primary" | "danger" | "quiet";

/** Disabled while `onClick` is running. */
export function Button(props: {
  children: ComponentChildren;
  onClick?: (() => unknown) | undefined;
  tone?: ButtonTone | undefined;
  busy?: boolean | undefined;
  disabled?: boolean | undefined;
  type?: "button" | "submit" | undefined;
  label?: string | undefined;
  title?: string | undefined;
  pressed?: boolean | undefined;
  small?: boolean | undefined;
}) {
  const [isWorking, setWorking] = useState(false);
  const busy = props.busy ?? isWorking;
  const press = async () => {
    const work = props.onClick?.();
    if (!(work instanceof Promise)) return;
    setWorking(true);
    try {
      await work;
    } finally {
      setWorking(false);
    }
  };
  return (
    <button
      type={props.type ?? "button"}
      class={`button button-${props.tone ?? "plain"}${props.small ? " button-small" : ""}`}
      disabled={Boolean(props.disabled) || busy}
      aria-busy={busy}
      aria-label={props.label}
      aria-pressed={props.pressed}
      title={props.title}
      onClick={props.onClick ? () => void press() : undefined}
    >
      {busy && <span class="spinner" aria-hidden="true" />}
      {props.children}
    </button>
  );
}

export function CopyButton(props: { text: string; children?: ComponentChildren }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await putOnClipboard(props.text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <Button tone="quiet" small onClick={copy}>
      <span aria-live="polite">{done ? words.copied : (props.children ?? words.copy)}</span>
    </Button>
  );
}

// The clipboard API needs a secure context; over plain HTTP the deprecated command still works.
async function putOnClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
