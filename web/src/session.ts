// Who is signed in. The secret is in a cookie that no script can read; here is only what it allows.
import { signal } from "@preact/signals";
import { identify, Problem, request } from "./api/client";
import type { OperatorSession } from "./api/types";
import { link, navigate, place } from "./router";
import { forget, keep, kept } from "./storage";

// Whether this browser signed in before. The cookie is HttpOnly, and asking for a session that does not exist logs an error
// in the console.
const KEY = "rollcall.signed-in";

/** The operator who is signed in: null if there is none, undefined while it is not known. */
export const session = signal<OperatorSession | null | undefined>(undefined);

/** Why we do not know, if the server could not be asked. */
export const sessionProblem = signal<Problem | null>(null);

/** Whether what needs this scope may be offered. */
export function can(scope: "read" | "verify" | "admin"): boolean {
  const scopes = session.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}

/** Asks the server who is signed in. */
export async function findSession(): Promise<void> {
  if (kept(KEY) === null) {
    session.value = null;
    return;
  }
  try {
    session.value = (await request("GET", "/session")) as OperatorSession;
    sessionProblem.value = null;
  } catch (thrown) {
    if (thrown instanceof Problem && (thrown.status === 401 || thrown.status === 404)) {
      session.value = null;
      sessionProblem.value = null;
      forget(KEY);
    } else {
      sessionProblem.value = thrown as Problem;
    }
  }
}

/** Signs in with an API key. A refused key leaves the present session as it is. */
export async function signIn(key: string): Promise<void> {
  session.value = (await request("POST", "/session", { body: { key }, isSignIn: true })) as OperatorSession;
  keep(KEY, "yes");
}

/** Ends the session, here and in the server. */
export async function signOut(): Promise<void> {
  await request("DELETE", "/session");
  forget(KEY);
  navigate("/sign-in", { replace: true });
  session.value = null;
}

/** Takes up who is asking, for every request from now on. */
export function startSession(): void {
  identify({
    headers: (method): Record<string, string> =>
      method === "GET" || !session.value ? {} : { "x-csrf-token": session.value.csrf },
    onUnauthorized: () => {
      const wasSignedIn = Boolean(session.value);
      session.value = null;
      if (wasSignedIn && place.value.path !== "/sign-in") toSignIn();
    },
  });
}

/** To the sign-in page, and from there back to here. */
export function toSignIn(): void {
  const here = link(place.value.path, Object.fromEntries(place.value.query)).slice(1);
  navigate(link("/sign-in", here === "/" ? {} : { to: here }), { replace: true });
}
