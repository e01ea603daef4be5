// The member's token: its source, renewal and expiry.
//
// A site that embeds this page in a frame sends a token at any time, with
// `frame.contentWindow.postMessage({ type: "rollcall.token", token }, origin)`. The page requests one with
// `{ type: "rollcall.token-wanted" }` at the start and shortly before the old one expires. Only messages of the parent page
// are accepted, and the server decides which pages may be the parent. In a frame the token is not stored: another member may
// have signed in to the site since.
import { computed, signal } from "@preact/signals";
import { identify } from "../../api/client";
import { nowS } from "../../clock";
import { TokenRenewal } from "./token-renewal";
import { claimsOf, isExpired, storeToken, takeToken, type TabStorage } from "./token";

export const token = signal<string | null>(null);

export const claims = computed(() => (token.value === null ? null : claimsOf(token.value)));

/** The token that the server refused. */
const refused = signal<string | null>(null);

/** The token expired, is invalid or was refused. */
export const isInvalid = computed(() => {
  if (token.value === null) return false;
  return claims.value === null || refused.value === token.value || isExpired(claims.value, nowS.value);
});

const TOKEN_WANTED = "rollcall.token-wanted";
const TOKEN_GIVEN = "rollcall.token";
/** Interval of the expiry check. */
const CHECK_MS = 1000;

const isFramed = () => window.parent !== window;
const renewal = new TokenRenewal(requestToken);
let waiting: ((token: string) => void)[] = [];

export function startMemberToken(): void {
  readAddress();
  window.addEventListener("hashchange", readAddress);
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (event.source === window.parent && isFramed()) onMessage(event.data);
  });
  identify({
    headers: (): Record<string, string> => (token.value === null ? {} : { authorization: `Bearer ${token.value}` }),
    onUnauthorized: () => {
      refused.value = token.value;
      requestToken();
    },
  });
  // Not `nowS`, which stops while the tab is hidden.
  setInterval(() => renewal.check(token.value, claims.value, clockS()), CHECK_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) renewal.checkAgain(token.value, claims.value, clockS());
  });
  requestToken();
}

/** The current token, or a new one from the site if it is about to expire. */
export function getToken(): Promise<string> {
  const [current, known] = [token.value, claims.value];
  if (current !== null && known !== null && !isExpired(known, clockS() + 5)) return Promise.resolve(current);
  requestToken();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the site sent no new token")), 5000);
    waiting.push((given) => {
      clearTimeout(timer);
      resolve(given);
    });
  });
}

function readAddress(): void {
  const bar = {
    hash: location.hash,
    replaceHash: (hash: string) => history.replaceState(null, "", `${location.pathname}${location.search}${hash === "" ? "" : `#${hash}`}`),
  };
  const found = takeToken(bar, tabStorage());
  if (found !== null) setToken(found);
}

function onMessage(data: unknown): void {
  const { type, token: given } = (data ?? {}) as { type?: unknown; token?: unknown };
  if (type !== TOKEN_GIVEN || typeof given !== "string" || claimsOf(given) === null) return;
  storeToken(given, tabStorage());
  setToken(given);
}

function setToken(given: string): void {
  token.value = given;
  waiting.splice(0).forEach((call) => call(given));
}

function requestToken(): void {
  // The message contains no secret.
  if (isFramed()) window.parent.postMessage({ type: TOKEN_WANTED }, "*");
}

function clockS(): number {
  return Math.floor(Date.now() / 1000);
}

// Not in a frame: the stored token may be of another member.
function tabStorage(): TabStorage | null {
  if (isFramed()) return null;
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}
