// The member's token: a JWT in the hash of the address, which is sent to no server. It is removed from the address at once
// and stored for this tab only, so that a reload works.
//
// The signature is verified by the server; claims are read here only to avoid useless requests.

const KEY = "rollcall.member";

/** The part of `location` and `history` that is used. */
export interface AddressBar {
  readonly hash: string;
  /** Adds no history entry. */
  replaceHash(hash: string): void;
}

/** The part of `sessionStorage` that is used. */
export interface TabStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

export interface Claims {
  /** The user. */
  readonly sub: string;
  /** Expiry in seconds since 1970. */
  readonly exp: number | null;
}

/** From the address, else from this tab. */
export function takeToken(bar: AddressBar, storage: TabStorage | null): string | null {
  const fields = new URLSearchParams(bar.hash.replace(/^#/, ""));
  const given = fields.get("token");
  if (given === null) return orNull(() => storage?.getItem(KEY)) ?? null;
  fields.delete("token");
  bar.replaceHash(fields.toString());
  storeToken(given, storage);
  return given;
}

/** Without storage the token lasts as long as the page. */
export function storeToken(token: string, storage: TabStorage | null): void {
  orNull(() => storage?.setItem(KEY, token));
}

/** Null if it is not a JWT. */
export function claimsOf(token: string): Claims | null {
  const [, body, signature, ...more] = token.split(".");
  if (!body || !signature || more.length > 0) return null;
  return orNull(() => {
    const claims = JSON.parse(atob(body.replace(/-/g, "+").replace(/_/g, "/"))) as Record<string, unknown>;
    const { sub, exp } = claims;
    if (typeof sub !== "string") return null;
    return { sub, exp: typeof exp === "number" ? exp : null };
  }) ?? null;
}

export function isExpired(claims: Claims, now_s: number): boolean {
  return claims.exp !== null && claims.exp <= now_s;
}

function orNull<T>(call: () => T): T | null {
  try {
    return call();
  } catch {
    return null;
  }
}
