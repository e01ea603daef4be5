/**
 * The name of a device. A browser's tab keeps its own over reloads, so that a reload is the same device coming back. Two
 * tabs are two devices.
 */

const KEY = "rollcall.device";
/** What the server takes: 1 to 64 visible ASCII characters. */
const NAME = /^[\x21-\x7e]{1,64}$/;

/** What is needed of `sessionStorage`. */
export interface StorageLike {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** The name that is kept in `storage`, or a new one where there is none, or where nothing may be kept. */
export function deviceName(storage: StorageLike | null = tabStorage()): string {
  try {
    const kept = storage?.getItem(KEY);
    if (kept != null && NAME.test(kept)) return kept;
  } catch {
    // Storage that may not be read is no storage.
  }
  const made = randomName();
  try {
    storage?.setItem(KEY, made);
  } catch {
    // Full, or forbidden: the name lives as long as the page.
  }
  return made;
}

/** Whether the server would take it. */
export function isDeviceName(name: string): boolean {
  return NAME.test(name);
}

function tabStorage(): StorageLike | null {
  try {
    return (globalThis as { sessionStorage?: StorageLike }).sessionStorage ?? null;
  } catch {
    // Browsers throw where cookies are forbidden.
    return null;
  }
}

function randomName(): string {
  const bytes = new Uint8Array(12);
  if (globalThis.crypto !== undefined) globalThis.crypto.getRandomValues(bytes);
  // Old programs have no such thing. A name is no secret: it only has to differ from one's own other devices.
  else bytes.forEach((_, at) => (bytes[at] = Math.floor(Math.random() * 256)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
