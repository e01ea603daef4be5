// A table. On a phone each row becomes a card, with the names of the columns beside the values.
import type { ComponentChildren } from "preact";
import { Button } from "./button";
import { Empty } from "./page";
import { words } from "./texts";

/** A column. */
export interface Column<T> {
  /** What it is called in code: unique in the table. */
  key: string;
  title: ComponentChildren;
  render(row: T): ComponentChildren;
  /** Numbers stand at the end. */
  align?: "end" | undefined;
  /** What `onSort` is told; without it the column cannot be sorted. */
  sort?: string | undefined;
  /** Takes the room that is left. */
  wide?: boolean | undefined;
  /** On a phone: the heading of the card, or left out. */
  phone?: "title" | "hide" | undefined;
}

/** By what a table is sorted. */
export interface Sorting {
  by: string;
  order: "asc" | "desc";
}

/** A table. */
export function Table<T>(props: {
  columns: Column<T>[];
  rows: readonly T[];
  rowKey(row: T): string | number;
  caption?: string | undefined;
  empty?: ComponentChildren;
  onSort?: ((sorting: Sorting) => void) | undefined;
  sort?: Sorting | undefined;
  /** A class for a row that stands out. */
  rowClass?: ((row: T) => string | undefined) | undefined;
}) {
  if (props.rows.length === 0) return <>{props.empty ?? <Empty />}</>;
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
  return [column.align === "end" ? "end" : "", column.wide ? "wide" : "", column.phone ? `phone-${column.phone}` : ""].filter(Boolean).join(" ");
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

/** The button under a list of which there is more. */
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
