// Target route after the sign-in.

/** Only routes of the dashboard, never another site. */
export function targetRoute(wanted: string | null): string {
  return wanted !== null && /^\/(?!\/)/.test(wanted) && !wanted.startsWith("/sign-in") ? wanted : "/";
}

/** Whether the secret belongs to the key with this id, which is part of it. */
export function isOfKey(secret: string, id: string): boolean {
  return secret.trim().split("_")[1] === id;
}
