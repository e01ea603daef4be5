// A paged list that is polled: all loaded rows are fetched again together, so that rows that moved are neither missing nor
// listed twice.
//
// Long lists are not polled, so that rows do not move while they are read.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "./api/client";
import { useResource } from "./resource";

/** A page of the API, possibly with further fields such as a total. */
export interface AnyPage {
  items: unknown[];
  next?: string | null;
}

export type Row<P extends AnyPage> = P["items"][number];

export interface LiveList<P extends AnyPage> {
  items: Row<P>[];
  /** The first page, for fields beside the rows. */
  first: P | undefined;
  error: Problem | null;
  /** Nothing to show yet. */
  loading: boolean;
  /** The rows are still those of the previous key; only with `keepsRows`. */
  stale: boolean;
  /** More rows were requested and have not arrived. */
  busy: boolean;
  hasMore: boolean;
  more(): void;
  refresh(): void;
}

export interface PageQuery {
  limit: number;
  cursor?: string;
}

const ROWS_A_PAGE = 50;
const ROWS_LIVE_MAX = 250;
// Limit of the server.
const LIMIT_MAX = 1000;

export interface LiveOptions {
  /** Poll interval; default: not polled. */
  everyMs?: number;
  /** Rows per page. */
  rows?: number;
  /** Keeps the old rows until the new ones arrive when `key` changes: for another order or search of the same list. */
  keepsRows?: boolean;
}

/** Restarts when `key` changes; loads nothing while `key` is null. */
export function useLiveList<P extends AnyPage>(
  key: string | null,
  load: (query: PageQuery, signal: AbortSignal) => Promise<P>,
  options: LiveOptions = {},
): LiveList<P> {
  const step = options.rows ?? ROWS_A_PAGE;
  const [requested, setRequested] = useState({ key, rows: step });
  const rows = requested.key === key ? requested.rows : step;
  const everyMs = rows <= ROWS_LIVE_MAX ? (options.everyMs ?? 0) : 0;
  const list = useResource(key, (signal) => gather(rows, (query) => load(query, signal)), { everyMs });
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
    more: () => setRequested({ key, rows: Math.max(rows, data?.items.length ?? 0) + step }),
    refresh,
  };
}

interface Gathered<P extends AnyPage> {
  items: Row<P>[];
  first: P | undefined;
  cursor: string | null;
  /** Rows requested. */
  rows: number;
}

/** Fetches `rows` rows in as few pages as possible. */
export async function gather<P extends AnyPage>(
  rows: number,
  load: (query: PageQuery) => Promise<P>,
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
    // A bounded search may return an empty page with a cursor.
    if (page.items.length === 0 || next === cursor) return { items, first, cursor: next, rows };
    cursor = next;
  } while (cursor !== null && items.length < rows);
  return { items, first, cursor, rows };
}
