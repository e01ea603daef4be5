// Data of a page: loaded once, polled, or paged.
//
// One request of a resource at a time; no polling while the tab is hidden; old data stays until new data arrives; backoff
// after failures. Answers for a previous key are dropped.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "./api/client";
import { backoffMs } from "./backoff";

export interface Resource<T> {
  data: T | undefined;
  error: Problem | null;
  /** Nothing to show yet. */
  loading: boolean;
  refresh(): void;
}

/**
 * Loads, and polls every `everyMs` while the tab is visible. When `key` changes, the data is dropped; nothing is loaded while
 * `key` is null.
 */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  options: { everyMs?: number } = {},
): Resource<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error: Problem | null }>({ key, error: null });
  const latest = useRef(load);
  latest.current = load;
  const again = useRef<() => void>(() => {});
  const everyMs = options.everyMs ?? 0;

  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let busy = false;
    let missed = false;

    const later = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(run, ms);
    };
    const run = async () => {
      if (busy) {
        missed = true;
        return;
      }
      if (document.hidden && failures === 0 && everyMs > 0) return later(everyMs);
      busy = true;
      try {
        const data = await latest.current(stop.signal);
        if (stop.signal.aborted) return;
        failures = 0;
        setState({ key, data, error: null });
      } catch (thrown) {
        if (stop.signal.aborted) return;
        failures += 1;
        const error = asProblem(thrown);
        setState((before) => (before.key === key ? { ...before, error } : { key, error }));
      } finally {
        busy = false;
      }
      if (missed) {
        missed = false;
        later(0);
      } else if (failures > 0 && (everyMs > 0 || failures < 4)) {
        later(Math.max(everyMs, backoffMs(failures, Math.random())));
      } else if (everyMs > 0) {
        later(everyMs);
      }
    };
    const onVisible = () => {
      if (!document.hidden && everyMs > 0) later(0);
    };

    again.current = () => void run();
    document.addEventListener("visibilitychange", onVisible);
    void run();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
      again.current = () => {};
    };
  }, [key, everyMs]);

  const refresh = useCallback(() => again.current(), []);
  const isCurrent = state.key === key;
  const data = isCurrent ? state.data : undefined;
  const error = isCurrent ? state.error : null;
  return { data, error, loading: key !== null && data === undefined && error === null, refresh };
}

export interface Paged<T> {
  items: T[];
  error: Problem | null;
  /** A request is running. */
  busy: boolean;
  /** Nothing to show yet. */
  loading: boolean;
  hasMore: boolean;
  more(): void;
  /** Loads the first page again; rows stay until it arrives. */
  refresh(): void;
}

interface AnyPage<T> {
  items: T[];
  next?: string | number | null;
}

/** Restarts when `key` changes. */
export function usePaged<T, C extends string | number = string>(
  key: string | null,
  load: (cursor: C | undefined, signal: AbortSignal) => Promise<AnyPage<T>>,
): Paged<T> {
  interface State {
    key: string | null;
    items: T[];
    cursor: C | null;
    started: boolean;
    error: Problem | null;
  }
  const fresh: State = { key, items: [], cursor: null, started: false, error: null };
  const [state, setState] = useState<State>(fresh);
  const [busy, setBusy] = useState(false);
  const latest = useRef(load);
  latest.current = load;
  const running = useRef<AbortController | null>(null);

  const fetchPage = useCallback(
    async (cursor: C | null) => {
      running.current?.abort();
      const stop = new AbortController();
      running.current = stop;
      setBusy(true);
      try {
        const page = await latest.current(cursor ?? undefined, stop.signal);
        if (stop.signal.aborted) return;
        const next = (page.next ?? null) as C | null;
        setState((before) => ({
          key,
          items: cursor === null ? page.items : [...before.items, ...page.items],
          cursor: next,
          started: true,
          error: null,
        }));
      } catch (thrown) {
        if (stop.signal.aborted) return;
        const error = asProblem(thrown);
        setState((before) => (before.key === key ? { ...before, error } : { ...fresh, error }));
      } finally {
        if (running.current === stop) setBusy(false);
      }
    },
    [key],
  );

  useEffect(() => {
    if (key === null) return;
    void fetchPage(null);
    return () => running.current?.abort();
  }, [fetchPage]);

  const shown = state.key === key ? state : fresh;
  return {
    items: shown.items,
    error: shown.error,
    busy,
    loading: key !== null && !shown.started && shown.error === null,
    hasMore: shown.cursor !== null,
    more: () => {
      if (!busy && shown.cursor !== null) void fetchPage(shown.cursor);
    },
    refresh: () => void fetchPage(null),
  };
}
