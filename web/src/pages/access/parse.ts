// Parsers of form fields. They return null for invalid input; whether a field may be empty is decided by the caller.
// The server validates again: this only saves a round trip.

export interface Ports {
  first: number;
  last: number;
}

/** A whole number above 0 that a double holds exactly. */
export function parseId(text: string): number | null {
  const trimmed = text.trim();
  if (!/^[1-9][0-9]{0,15}$/.test(trimmed)) return null;
  const id = Number(trimmed);
  return Number.isSafeInteger(id) ? id : null;
}

export function parsePasskey(text: string): string | null {
  const trimmed = text.trim().toLowerCase();
  return /^[0-9a-f]{8,64}$/.test(trimmed) ? trimmed : null;
}

export function parseInfohash(text: string): string | null {
  const trimmed = text.trim().toLowerCase();
  return /^[0-9a-f]{40}$/.test(trimmed) ? trimmed : null;
}

/** Prefix of peer ids: printable characters, or `hex:` and pairs of digits. */
export function parsePrefix(text: string): string | null {
  return /^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$/.test(text) ? text : null;
}

/** `6881`, or `6881-6889`. */
export function parsePorts(text: string): Ports | null {
  const parts = /^\s*(\d{1,5})(?:\s*[-–]\s*(\d{1,5}))?\s*$/.exec(text);
  if (!parts) return null;
  const first = Number(parts[1]);
  const last = parts[2] === undefined ? first : Number(parts[2]);
  return first >= 1 && last <= 65535 && first <= last ? { first, last } : null;
}

export function portsText(ports: Ports): string {
  return ports.first === ports.last ? String(ports.first) : `${ports.first}–${ports.last}`;
}

/** From 0 to 10000. */
export function parsePercent(text: string): number | null {
  const trimmed = text.trim();
  if (!/^\d{1,5}$/.test(trimmed)) return null;
  const percent = Number(trimmed);
  return percent <= 10_000 ? percent : null;
}

/** One passkey per line, or the number of the first invalid line. Empty lines and lines that begin with `#` are skipped. */
export function parsePasskeys(text: string): { passkeys: string[] } | { badLine: number } {
  const passkeys: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const passkey = parsePasskey(trimmed);
    if (passkey === null) return { badLine: index + 1 };
    passkeys.push(passkey);
  }
  return { passkeys };
}

/** Value of a `datetime-local` field, in seconds since 1970. */
export function parseTime(text: string): number | null {
  const ms = new Date(text).getTime();
  return text === "" || Number.isNaN(ms) || ms < 0 ? null : Math.floor(ms / 1000);
}
