// Preferences in localStorage. If the browser refuses, they last until the page is closed.

const remembered = new Map<string, string>();

export function load(name: string): string | null {
  try {
    return localStorage.getItem(name) ?? remembered.get(name) ?? null;
  } catch {
    return remembered.get(name) ?? null;
  }
}

export function save(name: string, value: string): void {
  remembered.set(name, value);
  try {
    localStorage.setItem(name, value);
  } catch {
    // Private window, or quota exceeded.
  }
}

export function remove(name: string): void {
  remembered.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // Nothing was stored.
  }
}
