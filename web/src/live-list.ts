// A list that is fetched a page at a time and stays current: what is shown is asked for again every so often, as a whole,
// so that rows that moved are neither twice in it nor missing.
//
// Long lists are no longer asked for by themselves: somebody who has scrolled that far reads, and does not want rows to move.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "./api/client";
import { useResource } from "./resource";

/** A page, as every list of the API has it; and more, such as a total. */
export interface AnyPage {
  items: unknown[];
  next?: string | null;
}

/** A row of such a page. */
export type Row<P extends AnyPage> = P["items"][number];

/** A list that stays current. */
export interface LiveList<P extends AnyPage> {
  items: Row<P>[];
  /** The first page, for what is said beside the rows; none until it is there. */
  first: P | undefined;
  error: Problem | null;
  /** Whether there is nothing to show yet. */
  loading: boolean;
  /** Whether the rows are still those of the question before: only with `keepsRows`. */
  stale: boolean;
  /** Whether more rows were asked for and are not there. */
  busy: boolean;
  hasMore: boolean;
  more(): void;
  refresh(): void;
}

/** What is asked for: one page. */
export interface Asked {
  limit: number;
  cursor?: string;
}

const ROWS_A_PAGE = 50;
const ROWS_LIVE_MAX = 250;
// The most that the server gives at once.
const LIMIT_MAX = 1000;

/** How a list stays current. */
export interface LiveOptions {
  /** How often it is asked for again; never if left out. */
  everyMs?: number;
  /** How many rows at a time. */
  rows?: number;
  /** Shows the old rows until the new ones are there, when `key` changes: for another order or search of the same list. */
  keepsRows?: boolean;
}

/** A list that stays current. When `key` changes it starts anew; with a key of null nothing is asked for. */
export function useLiveList<P extends AnyPage>(
  key: string | null,
  load: (asked: Asked, signal: AbortSignal) => Promise<P>,
  options: LiveOptions = {},
): LiveList<P> {
  const step = options.rows ?? ROWS_A_PAGE;
  const [wanted, setWanted] = useState({ key, rows: step });
  const rows = wanted.key === key ? wanted.rows : step;
  const everyMs = rows <= ROWS_LIVE_MAX ? (options.everyMs ?? 0) : 0;
  const list = useResource(key, (signal) => gather(rows, (asked) => load(asked, signal)), { everyMs });
  const { data: current, error, refresh } = list;
  const before = useRef(current);
  if (current !== undefined) before.current = current;
  const stale = list.loading && options.keepsRows === true && before.current !== undefined;
  const data = stale ? before.current : current;

  useEffect(() => {
    if (rows > step) refresh();
  }, [rows]);

  return {
    items: data?.items ?? [],
    first: data?.first,
    error,
    loading: list.loading && !stale,
    stale,
    busy: !stale && data !== undefined && error === null && data.cursor !== null && data.rows < rows,
    hasMore: !stale && data !== undefined && data.cursor !== null,
    more: () => setWanted({ key, rows: Math.max(rows, data?.items.length ?? 0) + step }),
    refresh,
  };
}

interface Gathered<P extends AnyPage> {
  items: Row<P>[];
  first: P | undefined;
  cursor: string | null;
  /** How many were asked for. */
  rows: number;
}

/** As many rows as wanted, in as few pages as that takes. */
export async function gather<P extends AnyPage>(
  rows: number,
  load: (asked: Asked) => Promise<P>,
): Promise<Gathered<P>> {
  const items: Row<P>[] = [];
  let first: P | undefined;
  let cursor: string | null = null;
  do {
    const limit = Math.min(rows - items.length, LIMIT_MAX);
    const page: P = await load(cursor === null ? { limit } : { limit, cursor });
    first ??= page;
    items.push(...page.items);
    const next: string | null = page.next ?? null;
    // A bounded search may give an empty page and say where it goes on: whoever wants more asks again.
    if (page.items.length === 0 || next === cursor) return { items, first, cursor: next, rows };
    cursor = next;
  } while (cursor !== null && items.length < rows);
  return { items, first, cursor, rows };
}
