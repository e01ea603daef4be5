// Form fields.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { words } from "./texts";

export function Field(props: { label: ComponentChildren; hint?: ComponentChildren; error?: ComponentChildren; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="field-label">{props.label}</span>
      {props.children}
      {props.hint && <span class="field-hint">{props.hint}</span>}
      {props.error && (
        <span class="field-error" role="alert">
          {props.error}
        </span>
      )}
    </label>
  );
}

export function TextField(props: {
  label: ComponentChildren;
  value: string;
  onInput(value: string): void;
  hint?: ComponentChildren;
  error?: ComponentChildren;
  type?: "text" | "password" | "number" | "search" | "datetime-local";
  placeholder?: string;
  required?: boolean;
  pattern?: string;
  min?: number | string;
  max?: number | string;
  step?: number | string;
  maxLength?: number;
  autoFocus?: boolean;
  autoComplete?: string;
  mono?: boolean;
  name?: string;
}) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (props.autoFocus) input.current?.focus();
  }, []);
  return (
    <Field label={props.label} hint={props.hint} error={props.error}>
      <input
        ref={input}
        class={props.mono ? "input mono" : "input"}
        type={props.type ?? "text"}
        name={props.name}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
        placeholder={props.placeholder}
        required={props.required}
        pattern={props.pattern}
        min={props.min}
        max={props.max}
        step={props.step}
        maxLength={props.maxLength}
        autoComplete={props.autoComplete ?? "off"}
        spellcheck={false}
        aria-invalid={props.error ? true : undefined}
      />
    </Field>
  );
}

export function Select<V extends string>(props: {
  label: ComponentChildren;
  value: V;
  options: readonly { value: V; label: string }[];
  onChange(value: V): void;
  hint?: ComponentChildren;
  /** The label is for screen readers only. */
  bare?: boolean;
}) {
  const box = (
    <select class="input" value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as V)}>
      {props.options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
  if (!props.bare) {
    return (
      <Field label={props.label} hint={props.hint}>
        {box}
      </Field>
    );
  }
  return (
    <label class="field-bare">
      <span class="visually-hidden">{props.label}</span>
      {box}
    </label>
  );
}

export function Check(props: { label: ComponentChildren; checked: boolean; onChange(checked: boolean): void; hint?: ComponentChildren; disabled?: boolean }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>
        {props.label}
        {props.hint && <span class="field-hint">{props.hint}</span>}
      </span>
    </label>
  );
}

/** Calls `onSearch` when typing pauses, and at once on Enter. */
export function SearchField(props: { value: string; onSearch(value: string): void; placeholder?: string; label?: string; waitMs?: number }) {
  const id = useId();
  const [text, setText] = useState(props.value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const reported = useRef(props.value);
  // The value may change from outside, as by the back button.
  useEffect(() => {
    if (props.value !== reported.current) {
      reported.current = props.value;
      setText(props.value);
    }
  }, [props.value]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const report = (value: string) => {
    clearTimeout(timer.current);
    if (value === reported.current) return;
    reported.current = value;
    props.onSearch(value);
  };
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        report(text.trim());
      }}
    >
      <label class="visually-hidden" for={id}>
        {props.label ?? words.search}
      </label>
      <input
        id={id}
        class="input"
        type="search"
        value={text}
        placeholder={props.placeholder ?? words.search}
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => {
          const value = event.currentTarget.value;
          setText(value);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => report(value.trim()), props.waitMs ?? 300);
        }}
      />
    </form>
  );
}
