// Parts of a page of which one is shown. They are links: each part has an address.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** One part. */
export interface Tab {
  key: string;
  label: ComponentChildren;
  href: string;
}

/** The row of parts. */
export function Tabs(props: { tabs: readonly Tab[]; active: string; label: string }) {
  const row = useRef<HTMLElement>(null);
  // On a phone the row scrolls: the one that is shown is in sight.
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
