// Page layout: headings, cards, figures, and the states loading, empty and failed.
import { toChildArray, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Problem } from "../api/client";
import { Button } from "./button";
import { words } from "./texts";

export function Page(props: { title: ComponentChildren; tabTitle?: string; actions?: ComponentChildren; lead?: ComponentChildren; children?: ComponentChildren }) {
  const name = props.tabTitle ?? (typeof props.title === "string" ? props.title : "");
  useEffect(() => {
    document.title = name ? `${name} · Rollcall` : "Rollcall";
  }, [name]);
  return (
    <div class="page">
      <header class="page-head">
        <div class="page-titles">
          <h1 tabIndex={-1}>{props.title}</h1>
          {props.lead && <p class="lead">{props.lead}</p>}
        </div>
        {props.actions && <div class="page-actions">{props.actions}</div>}
      </header>
      {props.children}
    </div>
  );
}

export function Card(props: { title?: ComponentChildren; actions?: ComponentChildren; class?: string; flush?: boolean; children?: ComponentChildren }) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      {(props.title || props.actions) && (
        <header class="card-head">
          {props.title && <h2>{props.title}</h2>}
          {props.actions && <div class="card-actions">{props.actions}</div>}
        </header>
      )}
      <div class={props.flush ? "card-body flush" : "card-body"}>{props.children}</div>
    </section>
  );
}

/** `exact` is shown on hover. */
export function Stat(props: { label: ComponentChildren; value: ComponentChildren; exact?: string; note?: ComponentChildren; tone?: string; href?: string }) {
  const body = (
    <>
      <dt>{props.label}</dt>
      <dd title={props.exact}>{props.value}</dd>
      {props.note !== undefined && <dd class="stat-note">{props.note}</dd>}
    </>
  );
  return <dl class={`stat ${props.tone ? `tone-${props.tone}` : ""}`}>{props.href ? <StatLink href={props.href} exact={props.exact}>{body}</StatLink> : <div>{body}</div>}</dl>;
}

// The link covers the whole figure. It is hidden from keyboard and screen readers: the navigation has the same link.
function StatLink(props: { href: string; exact: string | undefined; children: ComponentChildren }) {
  return (
    <div class="stat-linked">
      {props.children}
      <dd class="stat-link">
        <a href={props.href} title={props.exact} tabIndex={-1} aria-hidden="true" />
      </dd>
    </div>
  );
}

/** Figures in one row or two, of equal length. */
export function Stats(props: { children: ComponentChildren }) {
  const figures = toChildArray(props.children).length;
  return (
    <div class="stats" style={{ "--figures": figures, "--half": Math.ceil(figures / 2) }}>
      {props.children}
    </div>
  );
}

export function Empty(props: { title?: ComponentChildren; children?: ComponentChildren; tone?: "ok" }) {
  return (
    <div class={`empty ${props.tone === "ok" ? "empty-ok" : ""}`}>
      <p class="empty-title">{props.title ?? words.nothing}</p>
      {props.children && <div class="empty-hint">{props.children}</div>}
    </div>
  );
}

export function Loading(props: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">{words.loading}</span>
      {Array.from({ length: props.rows ?? 3 }, (_, row) => (
        <span key={row} class="loading-row" aria-hidden="true" />
      ))}
    </div>
  );
}

export function Failure(props: { problem: Problem; retry?: () => void }) {
  const { problem } = props;
  const isRefused = problem.status === 403;
  return (
    <div class="failure" role="alert">
      <p class="failure-title">{headline(problem)}</p>
      {!problem.isUnreachable && <p class="failure-detail">{problem.detail}</p>}
      {problem.isUnreachable && <p class="failure-detail">{words.unreachableHint}</p>}
      {isRefused && <p class="failure-detail">{words.forbiddenHint}</p>}
      {props.retry && <Button onClick={props.retry}>{words.retry}</Button>}
    </div>
  );
}

function headline(problem: Problem): string {
  if (problem.isUnreachable) return words.unreachable;
  if (problem.status === 403) return words.forbidden;
  if (problem.status === 404) return words.missing;
  if (problem.status === 429) return words.tooMany;
  return words.failed;
}

export function Facts(props: { items: [label: ComponentChildren, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.items.map(([label, value], index) => (
        <div key={index}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
