// Data that a page asks for: once, again every so often, or a page at a time.
//
// Promised: one request of a kind at a time; none while nobody looks; the old data stays while the new is fetched; after
// failures the pauses grow. An answer that arrives after its question has changed is thrown away.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "./api/client";
import { backoffMs } from "./backoff";

/** What there is of a resource. */
export interface Resource<T> {
  data: T | undefined;
  error: Problem | null;
  /** Whether there is nothing to show yet. */
  loading: boolean;
  refresh(): void;
}

/**
 * Loads, and loads again every `everyMs` while the tab can be seen. `key` says what is asked for: when it changes, the old
 * data goes. With a key of null nothing is asked for.
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

/** A list that is fetched a page at a time. */
export interface Paged<T> {
  items: T[];
  error: Problem | null;
  /** Whether a request is under way. */
  busy: boolean;
  /** Whether there is nothing to show yet. */
  loading: boolean;
  hasMore: boolean;
  /** Fetches the next page. */
  more(): void;
  /** Starts again from the first page; what is shown stays until it is there. */
  refresh(): void;
}

/** What a page of any list looks like. */
interface AnyPage<T> {
  items: T[];
  next?: string | number | null;
}

/** A list that is fetched a page at a time. When `key` changes it starts anew. */
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
