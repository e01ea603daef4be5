// Badges. Colour is never the only signal: a word or a shape stands beside it.
import type { ComponentChildren } from "preact";
import { statusName } from "./texts";

export type Tone = "plain" | "ok" | "warn" | "bad" | "info";

export function Badge(props: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge tone-${props.tone ?? "plain"}`} title={props.title}>
      {props.children}
    </span>
  );
}

const STATUSES = new Set(["online", "away", "busy", "offline", "invisible", "pending"]);

/** Each presence status has its own shape. */
export function StatusDot(props: { status: string; bare?: boolean }) {
  const known = STATUSES.has(props.status) ? props.status : "offline";
  return (
    <span class="status">
      <svg class={`dot dot-${known}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
        <StatusShape status={known} />
      </svg>
      <span class={props.bare ? "visually-hidden" : ""}>{statusName(props.status)}</span>
    </span>
  );
}

function StatusShape(props: { status: string }) {
  switch (props.status) {
    case "online":
      return <circle cx="6" cy="6" r="5" fill="currentColor" />;
    case "away":
      return <path d="M8.2 10.5A5 5 0 1 1 6.2 1a4 4 0 0 0 2 9.5z" fill="currentColor" />;
    case "busy":
      return <path d="M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zM3 5h6v2H3z" fill="currentColor" fill-rule="evenodd" />;
    case "invisible":
      return <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-dasharray="2.2 2" />;
    default:
      return <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" />;
  }
}
