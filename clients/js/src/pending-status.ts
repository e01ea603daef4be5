/**
 * A status that was set and is not confirmed yet. The server stores confirmed ones across disconnects and restarts; sending
 * them again at each reconnect would overwrite what another device has set since.
 */

import type { DeclaredStatus } from "./protocol.js";

export interface StatusRequest {
  readonly status: DeclaredStatus;
  readonly text?: string;
  /** Seconds since 1970. */
  readonly until?: number;
}

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

export class PendingStatus {
  #request: StatusRequest | null = null;
  #waiters: Waiter[] = [];
  #number = 0;
  #isOpen = false;

  /** Null clears the status. Replaces an unconfirmed request, which shares the outcome. */
  set(request: StatusRequest | null): Promise<void> {
    this.#request = request;
    this.#isOpen = true;
    this.#number += 1;
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** The unconfirmed request and its number. */
  get open(): { readonly request: StatusRequest | null; readonly number: number } | null {
    return this.#isOpen ? { request: this.#request, number: this.#number } : null;
  }

  /** Ignored for an earlier request. */
  confirm(number: number): void {
    if (number === this.#number) this.#settle((waiter) => waiter.resolve());
  }

  /** The server refused, or the connection was closed permanently. */
  refuse(number: number, error: unknown): void {
    if (number === this.#number) this.#settle((waiter) => waiter.reject(error));
  }

  #settle(call: (waiter: Waiter) => void): void {
    this.#isOpen = false;
    this.#waiters.splice(0).forEach(call);
  }
}
