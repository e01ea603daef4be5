// Parts of a page of which one is shown. They are links: each part has an address.
import type { ComponentChildren } from "preact";

/** One part. */
export interface Tab {
  key: string;
  label: ComponentChildren;
  href: string;
}

/** The row of parts. */
export function Tabs(props: { tabs: readonly Tab[]; active: string; label: string }) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map((tab) => (
        <a key={tab.key} href={tab.href} class="tab" aria-current={tab.key === props.active ? "page" : undefined}>
          {tab.label}
        </a>
      ))}
    </nav>
  );
}
