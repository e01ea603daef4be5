// Tables. On a phone each row becomes a card with the column titles beside the values.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button";
import { Empty } from "./page";
import { isPhone } from "./phone";
import { words } from "./texts";

export interface Column<T> {
  /** Unique in the table. */
  key: string;
  title: ComponentChildren;
  render(row: T): ComponentChildren;
  /** Numbers are aligned to the end. */
  align?: "end" | undefined;
  /** Passed to `onSort`; without it the column is not sortable. */
  sort?: string | undefined;
  /** Takes the remaining width. */
  wide?: boolean | undefined;
  /** On a phone: heading of the card, or hidden. */
  phone?: "title" | "hide" | undefined;
  /** Hidden in narrow windows, for values that are shown elsewhere as well; visible on phones. */
  narrow?: "hide" | undefined;
}

export interface Sorting {
  by: string;
  order: "asc" | "desc";
}

export function Table<T>(props: {
  columns: Column<T>[];
  rows: readonly T[];
  rowKey(row: T): string | number;
  caption?: string | undefined;
  empty?: ComponentChildren;
  onSort?: ((sorting: Sorting) => void) | undefined;
  sort?: Sorting | undefined;
  /** Class of highlighted rows. */
  rowClass?: ((row: T) => string | undefined) | undefined;
  /** Rows shown on a phone before "show more", for a list with content below it. */
  phoneRows?: number | undefined;
}) {
  const [isWhole, setWhole] = useState(false);
  if (props.rows.length === 0) return <>{props.empty ?? <Empty />}</>;
  const shown = isPhone.value && !isWhole ? props.rows.slice(0, props.phoneRows) : props.rows;
  const hidden = props.rows.length - shown.length;
  return (
    <>
      <Frame {...props} rows={shown} />
      {hidden > 0 && (
        <div class="more">
          <Button onClick={() => setWhole(true)}>{words.showMore(hidden)}</Button>
        </div>
      )}
    </>
  );
}

function Frame<T>(props: Parameters<typeof Table<T>>[0]) {
  return (
    <div class="table-frame">
      <table class="table" role="table">
        {props.caption && <caption class="visually-hidden">{props.caption}</caption>}
        <thead role="rowgroup">
          <tr role="row">
            {props.columns.map((column) => (
              <Heading key={column.key} column={column} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {props.rows.map((row) => (
            <tr role="row" key={props.rowKey(row)} class={props.rowClass?.(row)}>
              {props.columns.map((column) => (
                <td
                  role="cell"
                  key={column.key}
                  class={cellClass(column)}
                  data-label={typeof column.title === "string" ? column.title : undefined}
                >
                  {column.render(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cellClass<T>(column: Column<T>): string {
  const classes = [column.align === "end" && "end", column.wide && "wide", column.phone && `phone-${column.phone}`, column.narrow && "narrow-hide"];
  return classes.filter(Boolean).join(" ");
}

function Heading<T>(props: { column: Column<T>; sort: Sorting | undefined; onSort: ((sorting: Sorting) => void) | undefined }) {
  const { column, sort, onSort } = props;
  const by = column.sort;
  const isSorted = by !== undefined && sort?.by === by;
  const order = isSorted ? sort?.order : undefined;
  return (
    <th
      role="columnheader"
      scope="col"
      class={cellClass(column)}
      aria-sort={by === undefined ? undefined : order === "asc" ? "ascending" : order === "desc" ? "descending" : "none"}
    >
      {by !== undefined && onSort ? (
        <button type="button" class="sort" onClick={() => onSort({ by, order: order === "desc" ? "asc" : "desc" })}>
          {column.title}
          <span class="sort-mark" aria-hidden="true">
            {order === "asc" ? "▲" : order === "desc" ? "▼" : ""}
          </span>
        </button>
      ) : (
        column.title
      )}
    </th>
  );
}

export function MoreButton(props: { list: { hasMore: boolean; busy: boolean; more(): void } }) {
  if (!props.list.hasMore) return null;
  return (
    <div class="more">
      <Button onClick={() => props.list.more()} busy={props.list.busy}>
        {words.more}
      </Button>
    </div>
  );
}
