/**
 * The member's token: a JWT that the site hands over in the part of the address after `#`, which no server sees. It is
 * taken out of the address bar at once, and kept for this tab only, so that a reload still works.
 *
 * Nothing here checks the signature: the server does, each time. What is read of it only saves a useless question.
 */

const KEY = "rollcall.member";

/** What is needed of `location` and `history`. */
export interface AddressBar {
  readonly hash: string;
  /** Shows another hash, without leaving a trace in the history. */
  replaceHash(hash: string): void;
}

/** What is needed of `sessionStorage`. */
export interface Keep {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** What a token says of itself. */
export interface Claims {
  /** Whose it is. */
  readonly sub: string;
  /** When it ends, in unix seconds. */
  readonly exp: number | null;
}

/** The token that the address or this tab has; none if there is none. */
export function takeToken(bar: AddressBar, keep: Keep | null): string | null {
  const fields = new URLSearchParams(bar.hash.replace(/^#/, ""));
  const given = fields.get("token");
  if (given === null) return quietly(() => keep?.getItem(KEY)) ?? null;
  fields.delete("token");
  bar.replaceHash(fields.toString());
  storeToken(given, keep);
  return given;
}

/** Keeps a token for this tab. Storage that may not be used is no storage: it lives as long as the page, then. */
export function storeToken(token: string, keep: Keep | null): void {
  quietly(() => keep?.setItem(KEY, token));
}

/** What the token says of itself; none if it is no token. */
export function claimsOf(token: string): Claims | null {
  const [, body, signature, ...more] = token.split(".");
  if (!body || !signature || more.length > 0) return null;
  return quietly(() => {
    const claims = JSON.parse(atob(body.replace(/-/g, "+").replace(/_/g, "/"))) as Record<string, unknown>;
    const { sub, exp } = claims;
    if (typeof sub !== "string") return null;
    return { sub, exp: typeof exp === "number" ? exp : null };
  }) ?? null;
}

/** Whether it is over at that time. */
export function isOver(claims: Claims, now_s: number): boolean {
  return claims.exp !== null && claims.exp <= now_s;
}

function quietly<T>(call: () => T): T | null {
  try {
    return call();
  } catch {
    return null;
  }
}
