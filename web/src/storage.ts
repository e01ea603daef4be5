// What a browser keeps for this page: nothing that matters. It may refuse, and then we forget.

/** What was kept under this name. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps it, if the browser lets us. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A private window, or no room. The choice holds until the page is closed.
  }
}
