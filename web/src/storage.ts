// What a browser keeps for this page: nothing that matters. It may refuse, and then we remember until the page is closed.

const remembered = new Map<string, string>();

/** What was kept under this name. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name) ?? remembered.get(name) ?? null;
  } catch {
    return remembered.get(name) ?? null;
  }
}

/** Keeps it, if the browser lets us. */
export function keep(name: string, value: string): void {
  remembered.set(name, value);
  try {
    localStorage.setItem(name, value);
  } catch {
    // A private window, or no room.
  }
}

/** Forgets it. */
export function forget(name: string): void {
  remembered.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // Then it was never kept.
  }
}
