// Where signing in leads, and whether there is any need for it.

/** Where to go after signing in: only to a place of our own, never to another site. */
export function placeAfter(asked: string | null): string {
  return asked !== null && /^\/(?!\/)/.test(asked) && !asked.startsWith("/sign-in") ? asked : "/";
}

/** Whether this secret is of the key with this id: the id stands in it. */
export function isOfKey(secret: string, id: string): boolean {
  return secret.trim().split("_")[1] === id;
}
