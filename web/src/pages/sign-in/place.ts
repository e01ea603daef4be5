// Where signing in leads.

/** Where to go after signing in: only to a place of our own, never to another site. */
export function placeAfter(asked: string | null): string {
  return asked !== null && /^\/(?!\/)/.test(asked) && !asked.startsWith("/sign-in") ? asked : "/";
}
