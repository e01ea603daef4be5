/** Device names. A browser tab keeps its name across reloads, so that a reload is the same device. Two tabs are two devices. */

const KEY = "rollcall.device";
/** 1 to 64 visible ASCII characters. */
const NAME = /^[\x21-\x7e]{1,64}$/;

/** The part of `sessionStorage` that is used. */
export interface StorageLike {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** The stored name, or a new one. */
export function deviceName(storage: StorageLike | null = tabStorage()): string {
  try {
    const kept = storage?.getItem(KEY);
    if (kept != null && NAME.test(kept)) return kept;
  } catch {
    // No access to the storage.
  }
  const made = randomName();
  try {
    storage?.setItem(KEY, made);
  } catch {
    // Full or forbidden: the name lasts as long as the page.
  }
  return made;
}

export function isDeviceName(name: string): boolean {
  return NAME.test(name);
}

function tabStorage(): StorageLike | null {
  try {
    return (globalThis as { sessionStorage?: StorageLike }).sessionStorage ?? null;
  } catch {
    // Browsers throw if cookies are blocked.
    return null;
  }
}

function randomName(): string {
  const bytes = new Uint8Array(12);
  if (globalThis.crypto !== undefined) globalThis.crypto.getRandomValues(bytes);
  // Without crypto: a name is not a secret, it only has to differ from the user's other devices.
  else bytes.forEach((_, at) => (bytes[at] = Math.floor(Math.random() * 256)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
