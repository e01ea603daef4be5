// Tabs. They are links: each tab has an address.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Tab {
  key: string;
  label: ComponentChildren;
  href: string;
}

export function Tabs(props: { tabs: readonly Tab[]; active: string; label: string }) {
  const row = useRef<HTMLElement>(null);
  // On a phone the row scrolls: keep the active tab visible.
  useEffect(() => {
    const tab = row.current?.querySelector<HTMLElement>("[aria-current]");
    if (row.current && tab) row.current.scrollLeft = tab.offsetLeft - row.current.offsetLeft - (row.current.clientWidth - tab.clientWidth) / 2;
  }, [props.active]);
  return (
    <nav class="tabs" aria-label={props.label} ref={row}>
      {props.tabs.map((tab) => (
        <a key={tab.key} href={tab.href} class="tab" aria-current={tab.key === props.active ? "page" : undefined}>
          {tab.label}
        </a>
      ))}
    </nav>
  );
}
