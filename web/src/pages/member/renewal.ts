// When to ask for a new token: shortly before the old one ends, and once for each. Whoever comes back to the page asks once
// more, since the first question may have gone unheard.
import { isOver, type Claims } from "./token";

/** How long before the end a new one is asked for. */
export const AHEAD_S = 60;

/** Remembers for which token a new one was asked. */
export class Renewal {
  private askedFor: string | null = null;

  constructor(private readonly ask: () => void) {}

  /** Asks, if the token ends soon or has ended, and nobody has asked yet. */
  look(token: string | null, claims: Claims | null, now_s: number): void {
    if (token === null || claims === null || token === this.askedFor || !isOver(claims, now_s + AHEAD_S)) return;
    this.askedFor = token;
    this.ask();
  }

  /** The same, even if somebody has asked. */
  lookAgain(token: string | null, claims: Claims | null, now_s: number): void {
    this.askedFor = null;
    this.look(token, claims, now_s);
  }
}
