/**
 * Values that tell when they change. A listener that throws keeps neither the others nor the library from going on: its
 * error is reported as an uncaught one.
 */

/** Ends what it came from. Calling it twice is harmless. */
export type Unsubscribe = () => void;

class Listeners<T> {
  readonly #all = new Set<{ call: (value: T) => void }>();

  add(call: (value: T) => void): Unsubscribe {
    const entry = { call };
    this.#all.add(entry);
    return () => void this.#all.delete(entry);
  }

  tell(value: T): void {
    // A copy: a listener may end itself or add another.
    for (const entry of [...this.#all]) {
      try {
        entry.call(value);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Something that happens. */
export class Signal<T> {
  readonly #listeners = new Listeners<T>();

  /** Calls the listener each time. */
  subscribe(listener: (value: T) => void): Unsubscribe {
    return this.#listeners.add(listener);
  }

  /** Tells everyone. */
  emit(value: T): void {
    this.#listeners.tell(value);
  }
}

/** A value that can be read at any time, and watched. */
export class Live<T> {
  #value: T;
  readonly #listeners = new Listeners<T>();

  constructor(value: T) {
    this.#value = value;
  }

  /** The value now. */
  get value(): T {
    return this.#value;
  }

  /** Calls the listener now and at each change. */
  subscribe(listener: (value: T) => void): Unsubscribe {
    const end = this.#listeners.add(listener);
    listener(this.#value);
    return end;
  }

  /** Changes the value. */
  set(value: T): void {
    this.#value = value;
    this.#listeners.tell(value);
  }
}

/** What has changed in a live map: the keys that are new or different, and those that are gone. */
export interface MapChange<K> {
  readonly changed: readonly K[];
  readonly removed: readonly K[];
}

/** A map that can be read like a `Map`, and watched. */
export class LiveMap<K, V> implements Iterable<[K, V]> {
  #entries: Map<K, V> = new Map();
  readonly #listeners = new Listeners<MapChange<K>>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  keys(): IterableIterator<K> {
    return this.#entries.keys();
  }

  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  entries(): IterableIterator<[K, V]> {
    return this.#entries.entries();
  }

  forEach(call: (value: V, key: K) => void): void {
    this.#entries.forEach((value, key) => call(value, key));
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.#entries.entries();
  }

  /** Calls the listener after each change, with what has changed. Nothing is called at first: read the map. */
  subscribe(listener: (change: MapChange<K>) => void): Unsubscribe {
    return this.#listeners.add(listener);
  }

  /** Puts in and takes out, as one change. */
  apply(put: Iterable<[K, V]>, take: Iterable<K> = []): void {
    const changed: K[] = [];
    const removed: K[] = [];
    for (const [key, value] of put) {
      this.#entries.set(key, value);
      changed.push(key);
    }
    for (const key of take) {
      if (this.#entries.delete(key)) removed.push(key);
    }
    if (changed.length > 0 || removed.length > 0) this.#listeners.tell({ changed, removed });
  }

  /** Replaces all there is, as one change. */
  replace(entries: Iterable<[K, V]>): void {
    const before = this.#entries;
    this.#entries = new Map(entries);
    const removed = [...before.keys()].filter((key) => !this.#entries.has(key));
    const changed = [...this.#entries].filter(([key, value]) => before.get(key) !== value).map(([key]) => key);
    if (changed.length > 0 || removed.length > 0) this.#listeners.tell({ changed, removed });
  }
}
