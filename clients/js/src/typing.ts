/**
 * Typing notifications. `typing` may be called on each keystroke: it is sent at the start, repeated every few seconds (it
 * expires on the server), and sent at the end.
 */

import { LiveMap } from "./live.js";

/** Repeat interval. The server shows it for 6 s by default. */
const REPEAT_MS = 3000;
/** Above this, notifications are not throttled. */
const TARGETS_MAX = 100;

/** A user id or a room. */
export type TypingTarget = string | { readonly room: string };

/** `room` is absent for direct typing. */
export interface TypingNote {
  readonly from: string;
  readonly room?: string;
}

export function typingFields(target: TypingTarget): { to: string } | { room: string } {
  return typeof target === "string" ? { to: target } : { room: target.room };
}

export class TypingThrottle {
  readonly #sentAt = new Map<string, number>();

  /** Whether to send it now. */
  admits(target: TypingTarget, on: boolean, now: number): boolean {
    const key = JSON.stringify(typingFields(target));
    const sent = this.#sentAt.get(key);
    if (!on) {
      this.#sentAt.delete(key);
      return sent !== undefined;
    }
    if (sent !== undefined && now - sent < REPEAT_MS) return false;
    if (sent !== undefined || this.#sentAt.size < TARGETS_MAX) this.#sentAt.set(key, now);
    return true;
  }

  /** For a new connection. */
  clear(): void {
    this.#sentAt.clear();
  }
}

export class Typists {
  /** By user and room. */
  readonly notes = new LiveMap<string, TypingNote>();

  apply(from: string, on: boolean, room: string | null | undefined): void {
    const key = room == null ? from : `${from} in ${room}`;
    if (on) this.notes.apply([[key, room == null ? { from } : { from, room }]]);
    else this.notes.apply([], [key]);
  }

  /** For a lost connection: the end would not be received. */
  clear(): void {
    this.notes.replace([]);
  }
}
