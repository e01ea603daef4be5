/**
 * "Is typing", both ways. A program may call it at each keystroke: the server is told when it begins, again every few
 * seconds while it goes on (it forgets by itself), and when it ends.
 */

import { LiveMap } from "./live.js";

/** How often typing that goes on is said again. The server shows it for 6 s unless told otherwise. */
const AGAIN_MS = 3000;
/** Nobody types to more at once; the rest is said each time. */
const TARGETS_MAX = 100;

/** To whom, or where: a person's id, or a room. */
export type TypingTarget = string | { readonly room: string };

/** Who types, and where: `room` is absent where it is to the one who looks. */
export interface TypingNote {
  readonly from: string;
  readonly room?: string;
}

/** What a target is called on the wire. */
export function typingFields(target: TypingTarget): { to: string } | { room: string } {
  return typeof target === "string" ? { to: target } : { room: target.room };
}

/** Decides what is worth saying. */
export class TypingThrottle {
  readonly #saidAt = new Map<string, number>();

  /** Whether to tell the server now. */
  admits(target: TypingTarget, on: boolean, now: number): boolean {
    const key = JSON.stringify(typingFields(target));
    const said = this.#saidAt.get(key);
    if (!on) {
      this.#saidAt.delete(key);
      return said !== undefined;
    }
    if (said !== undefined && now - said < AGAIN_MS) return false;
    if (said !== undefined || this.#saidAt.size < TARGETS_MAX) this.#saidAt.set(key, now);
    return true;
  }

  /** Forgets all: a new connection has said nothing yet. */
  clear(): void {
    this.#saidAt.clear();
  }
}

/** Who types now. */
export class Typists {
  /** By person and room. */
  readonly notes = new LiveMap<string, TypingNote>();

  /** Takes a message of the feed. */
  take(from: string, on: boolean, room: string | null | undefined): void {
    const key = room == null ? from : `${from} in ${room}`;
    if (on) this.notes.apply([[key, room == null ? { from } : { from, room }]]);
    else this.notes.apply([], [key]);
  }

  /** Forgets all: nobody would say when it ends. */
  clear(): void {
    this.notes.replace([]);
  }
}
