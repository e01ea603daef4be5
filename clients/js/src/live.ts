/** Observable values. An exception of a listener is reported as uncaught and does not affect the others. */

/** Idempotent. */
export type Unsubscribe = () => void;

class Listeners<T> {
  readonly #all = new Set<{ call: (value: T) => void }>();

  add(call: (value: T) => void): Unsubscribe {
    const entry = { call };
    this.#all.add(entry);
    return () => void this.#all.delete(entry);
  }

  notify(value: T): void {
    // A copy: a listener may remove itself or add another.
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

export class Signal<T> {
  readonly #listeners = new Listeners<T>();

  subscribe(listener: (value: T) => void): Unsubscribe {
    return this.#listeners.add(listener);
  }

  emit(value: T): void {
    this.#listeners.notify(value);
  }
}

export class Live<T> {
  #value: T;
  readonly #listeners = new Listeners<T>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Calls the listener at once and on each change. */
  subscribe(listener: (value: T) => void): Unsubscribe {
    const end = this.#listeners.add(listener);
    listener(this.#value);
    return end;
  }

  set(value: T): void {
    this.#value = value;
    this.#listeners.notify(value);
  }
}

/** `changed`: new or different keys. */
export interface MapChange<K> {
  readonly changed: readonly K[];
  readonly removed: readonly K[];
}

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

  /** Calls the listener after each change, not at once. */
  subscribe(listener: (change: MapChange<K>) => void): Unsubscribe {
    return this.#listeners.add(listener);
  }

  /** One change. */
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
    if (changed.length > 0 || removed.length > 0) this.#listeners.notify({ changed, removed });
  }

  /** One change. */
  replace(entries: Iterable<[K, V]>): void {
    const before = this.#entries;
    this.#entries = new Map(entries);
    const removed = [...before.keys()].filter((key) => !this.#entries.has(key));
    const changed = [...this.#entries].filter(([key, value]) => before.get(key) !== value).map(([key]) => key);
    if (changed.length > 0 || removed.length > 0) this.#listeners.notify({ changed, removed });
  }
}
