// What somebody typed into a field, read. Each answers null for what it cannot be; an empty field is the caller's to
// judge. The server judges again: this only spares a round trip.

/** Ports in a row. */
export interface Ports {
  first: number;
  last: number;
}

/** A whole number above 0, up to what a double holds exactly. */
export function readId(text: string): number | null {
  const trimmed = text.trim();
  if (!/^[1-9][0-9]{0,15}$/.test(trimmed)) return null;
  const id = Number(trimmed);
  return Number.isSafeInteger(id) ? id : null;
}

/** A passkey: 8 to 64 hexadecimal digits. */
export function readPasskey(text: string): string | null {
  const trimmed = text.trim().toLowerCase();
  return /^[0-9a-f]{8,64}$/.test(trimmed) ? trimmed : null;
}

/** An infohash: 40 hexadecimal digits. */
export function readInfohash(text: string): string | null {
  const trimmed = text.trim().toLowerCase();
  return /^[0-9a-f]{40}$/.test(trimmed) ? trimmed : null;
}

/** How peer ids begin: printable characters, or `hex:` and pairs of digits. */
export function readPrefix(text: string): string | null {
  return /^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$/.test(text) ? text : null;
}

/** `6881`, or `6881-6889`. */
export function readPorts(text: string): Ports | null {
  const parts = /^\s*(\d{1,5})(?:\s*[-–]\s*(\d{1,5}))?\s*$/.exec(text);
  if (!parts) return null;
  const first = Number(parts[1]);
  const last = parts[2] === undefined ? first : Number(parts[2]);
  return first >= 1 && last <= 65535 && first <= last ? { first, last } : null;
}

/** Ports as they are written. */
export function portsText(ports: Ports): string {
  return ports.first === ports.last ? String(ports.first) : `${ports.first}–${ports.last}`;
}

/** A share in percent, from 0 to 10000. */
export function readPercent(text: string): number | null {
  const trimmed = text.trim();
  if (!/^\d{1,5}$/.test(trimmed)) return null;
  const percent = Number(trimmed);
  return percent <= 10_000 ? percent : null;
}

/** Passkeys, one a line, or the first line that is none. Empty lines and lines that begin with `#` are passed over. */
export function readPasskeys(text: string): { passkeys: string[] } | { badLine: number } {
  const passkeys: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const passkey = readPasskey(trimmed);
    if (passkey === null) return { badLine: index + 1 };
    passkeys.push(passkey);
  }
  return { passkeys };
}

/** What a field for local date and time has, in seconds since 1970. */
export function readMoment(text: string): number | null {
  const ms = new Date(text).getTime();
  return text === "" || Number.isNaN(ms) || ms < 0 ? null : Math.floor(ms / 1000);
}
