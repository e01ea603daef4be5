/**
 * Who the member is: the token, where it comes from, and when it has ended.
 *
 * A site that shows this page in a frame can hand over a new token at any time, with
 * `frame.contentWindow.postMessage({ type: "rollcall.token", token }, origin)`; shortly before the old one ends it is asked
 * for one with `{ type: "rollcall.token-wanted" }`. Only the page around the frame is listened to, and only those that the server
 * allows can be that. In a frame that page is asked at the start, too, and nothing is kept: another member may have signed in
 * since, and only the page around knows.
 */
import { computed, signal } from "@preact/signals";
import { identify } from "../../api/client";
import { nowS } from "../../clock";
import { Renewal } from "./renewal";
import { claimsOf, isOver, storeToken, takeToken, type Keep } from "./token";

/** The token; null where there is none. */
export const token = signal<string | null>(null);

/** What it says of itself. */
export const claims = computed(() => (token.value === null ? null : claimsOf(token.value)));

/** Whether the server has refused it. */
const refused = signal<string | null>(null);

/** Whether there was one that is no longer good. */
export const isEnded = computed(() => {
  if (token.value === null) return false;
  return claims.value === null || refused.value === token.value || isOver(claims.value, nowS.value);
});

const WANTED = "rollcall.token-wanted";
const GIVEN = "rollcall.token";
/** How often we look whether the token is about to end. */
const LOOK_MS = 1000;

const isFramed = () => window.parent !== window;
const renewal = new Renewal(askForToken);
let waiting: ((token: string) => void)[] = [];

/** Finds out who is here, and listens to who says so later. */
export function startIdentity(): void {
  take();
  window.addEventListener("hashchange", take);
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (event.source === window.parent && isFramed()) onMessage(event.data);
  });
  identify({
    headers: (): Record<string, string> => (token.value === null ? {} : { authorization: `Bearer ${token.value}` }),
    onUnauthorized: () => {
      refused.value = token.value;
      askForToken();
    },
  });
  // A clock of its own: the one for texts stands still while nobody looks, and tokens end all the same.
  setInterval(() => renewal.look(token.value, claims.value, clockS()), LOOK_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) renewal.lookAgain(token.value, claims.value, clockS());
  });
  askForToken();
}

/** A token for the connection: the one there is, or, when that is about to end, the one that the site gives us. */
export function getToken(): Promise<string> {
  const [current, said] = [token.value, claims.value];
  if (current !== null && said !== null && !isOver(said, clockS() + 5)) return Promise.resolve(current);
  askForToken();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no new token was given")), 5000);
    waiting.push((given) => {
      clearTimeout(timer);
      resolve(given);
    });
  });
}

function take(): void {
  const bar = {
    hash: location.hash,
    replaceHash: (hash: string) => history.replaceState(null, "", `${location.pathname}${location.search}${hash === "" ? "" : `#${hash}`}`),
  };
  const found = takeToken(bar, tabStorage());
  if (found !== null) become(found);
}

function onMessage(data: unknown): void {
  const { type, token: given } = (data ?? {}) as { type?: unknown; token?: unknown };
  if (type !== GIVEN || typeof given !== "string" || claimsOf(given) === null) return;
  storeToken(given, tabStorage());
  become(given);
}

function become(given: string): void {
  token.value = given;
  waiting.splice(0).forEach((call) => call(given));
}

function askForToken(): void {
  // It says nothing that anybody could not hear.
  if (isFramed()) window.parent.postMessage({ type: WANTED }, "*");
}

function clockS(): number {
  return Math.floor(Date.now() / 1000);
}

// In a frame there is none: what a tab keeps may be of whoever was signed in before.
function tabStorage(): Keep | null {
  if (isFramed()) return null;
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}
