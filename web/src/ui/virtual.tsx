// Virtual list: only visible rows are rendered.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

const AROUND = 8;

/** All rows have the same height. */
export function VirtualList<T>(props: {
  items: readonly T[];
  rowHeight: number;
  height: number;
  itemKey(item: T, index: number): string | number;
  render(item: T, index: number): ComponentChildren;
  label: string;
  empty?: ComponentChildren;
}) {
  const [top, setTop] = useState(0);
  const { items, rowHeight, height } = props;
  if (items.length === 0 && props.empty) return <>{props.empty}</>;
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - AROUND, items.length - 1));
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + AROUND);
  return (
    <div
      class="virtual"
      style={{ maxHeight: `${height}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      tabIndex={0}
      role="region"
      aria-label={props.label}
    >
      <ul class="virtual-all" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, offset) => (
          <li
            key={props.itemKey(item, first + offset)}
            class="virtual-row"
            style={{ height: `${rowHeight}px`, transform: `translateY(${(first + offset) * rowHeight}px)` }}
            aria-setsize={items.length}
            aria-posinset={first + offset + 1}
          >
            {props.render(item, first + offset)}
          </li>
        ))}
      </ul>
    </div>
  );
}
