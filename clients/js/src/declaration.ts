/**
 * What the program wants the server to know of its status until the server has confirmed it. What is confirmed the server
 * keeps by itself, over disconnects and restarts; saying it again at each reconnect would undo what another device has
 * said since.
 */

import type { DeclaredStatus } from "./words.js";

/** A status with its text and its end; none clears what was declared. */
export interface Declaration {
  readonly status: DeclaredStatus;
  readonly text?: string;
  /** Unix seconds. */
  readonly until?: number;
}

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

/** The last thing that was asked for and not confirmed. */
export class Wish {
  #declaration: Declaration | null = null;
  #waiters: Waiter[] = [];
  #turn = 0;
  #isOpen = false;

  /** Asks for something; what was asked for before and not confirmed is replaced, and shares the outcome. */
  ask(declaration: Declaration | null): Promise<void> {
    this.#declaration = declaration;
    this.#isOpen = true;
    this.#turn += 1;
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** What is still to be confirmed, and which asking it was. */
  get open(): { readonly declaration: Declaration | null; readonly turn: number } | null {
    return this.#isOpen ? { declaration: this.#declaration, turn: this.#turn } : null;
  }

  /** The server has confirmed it. Of an earlier asking this means nothing. */
  confirm(turn: number): void {
    if (turn === this.#turn) this.#settle((waiter) => waiter.resolve());
  }

  /** It is not to be: the server refused, or there will be no server. */
  refuse(turn: number, error: unknown): void {
    if (turn === this.#turn) this.#settle((waiter) => waiter.reject(error));
  }

  #settle(call: (waiter: Waiter) => void): void {
    this.#isOpen = false;
    this.#waiters.splice(0).forEach(call);
  }
}
