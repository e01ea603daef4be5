// The signed-in session. Its secret is in an HttpOnly cookie.
import { signal } from "@preact/signals";
import { identify, Problem, request } from "./api/client";
import type { OperatorSession } from "./api/types";
import { link, navigate, route } from "./router";
import { load, remove, save } from "./storage";

// Whether this browser signed in before: scripts cannot see the cookie, and a request without a session logs an error in
// the console.
const KEY = "rollcall.signed-in";

/** Null if not signed in, undefined while unknown. */
export const session = signal<OperatorSession | null | undefined>(undefined);

/** Why the session is unknown. */
export const sessionProblem = signal<Problem | null>(null);

/** Whether the session has this scope. */
export function can(scope: "read" | "verify" | "admin"): boolean {
  const scopes = session.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}

export async function findSession(): Promise<void> {
  if (load(KEY) === null) {
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
      remove(KEY);
    } else {
      sessionProblem.value = thrown as Problem;
    }
  }
}

/** A refused key leaves the current session unchanged. */
export async function signIn(key: string): Promise<void> {
  session.value = (await request("POST", "/session", { body: { key }, isSignIn: true })) as OperatorSession;
  save(KEY, "yes");
}

export async function signOut(): Promise<void> {
  await request("DELETE", "/session");
  remove(KEY);
  navigate("/sign-in", { replace: true });
  session.value = null;
}

/** Adds the CSRF token to all further requests. */
export function startSession(): void {
  identify({
    headers: (method): Record<string, string> =>
      method === "GET" || !session.value ? {} : { "x-csrf-token": session.value.csrf },
    onUnauthorized: () => {
      const wasSignedIn = Boolean(session.value);
      session.value = null;
      if (wasSignedIn && route.value.path !== "/sign-in") toSignIn();
    },
  });
}

/** Returns to the current route after the sign-in. */
export function toSignIn(): void {
  const here = link(route.value.path, Object.fromEntries(route.value.query)).slice(1);
  navigate(link("/sign-in", here === "/" ? {} : { to: here }), { replace: true });
}
