// Requests a new token shortly before the old one expires, once per token, and again when the tab becomes visible, because
// the first request may have been lost.
import { isExpired, type Claims } from "./token";

/** Seconds before the expiry at which a new token is requested. */
export const AHEAD_S = 60;

export class TokenRenewal {
  private requestedFor: string | null = null;

  constructor(private readonly request: () => void) {}

  /** Requests a token if this one expires soon and none was requested for it. */
  check(token: string | null, claims: Claims | null, now_s: number): void {
    if (token === null || claims === null || token === this.requestedFor || !isExpired(claims, now_s + AHEAD_S)) return;
    this.requestedFor = token;
    this.request();
  }

  /** Also if one was requested already. */
  checkAgain(token: string | null, claims: Claims | null, now_s: number): void {
    this.requestedFor = null;
    this.check(token, claims, now_s);
  }
}
