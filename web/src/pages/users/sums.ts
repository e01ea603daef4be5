/**
 * Sums of bytes, exact to the byte: amounts are decimal texts that may be larger than a floating-point number holds.
 */

/** The amounts of one entry of the journal. */
export interface Moved {
  readonly uploaded_delta: string;
  readonly downloaded_delta: string;
  readonly credited_uploaded?: string | null;
  readonly credited_downloaded?: string | null;
}

/** What some entries come to. */
export interface Sums {
  readonly uploaded: bigint;
  readonly downloaded: bigint;
  /** None as soon as it cannot be told of one of them. */
  readonly credited_uploaded: bigint | null;
  readonly credited_downloaded: bigint | null;
}

/** A decimal text as a number; nothing, and what is no number, is 0. */
export function bytesOf(text: string | null | undefined): bigint {
  return text != null && /^-?[0-9]+$/.test(text) ? BigInt(text) : 0n;
}

/** Adds entries up. */
export function sumsOf(entries: readonly Moved[]): Sums {
  let [uploaded, downloaded] = [0n, 0n];
  let credited_uploaded: bigint | null = 0n;
  let credited_downloaded: bigint | null = 0n;
  for (const entry of entries) {
    uploaded += bytesOf(entry.uploaded_delta);
    downloaded += bytesOf(entry.downloaded_delta);
    credited_uploaded = plus(credited_uploaded, entry.credited_uploaded);
    credited_downloaded = plus(credited_downloaded, entry.credited_downloaded);
  }
  return { uploaded, downloaded, credited_uploaded, credited_downloaded };
}

function plus(sum: bigint | null, text: string | null | undefined): bigint | null {
  return sum === null || text == null ? null : sum + bytesOf(text);
}

/** Uploaded for each byte downloaded; none where nothing was downloaded. */
export function ratioOf(uploaded: string | null | undefined, downloaded: string | null | undefined): number | null {
  const [up, down] = [bytesOf(uploaded), bytesOf(downloaded)];
  if (down <= 0n) return null;
  // Thousandths in whole numbers, for the quotient of two large ones would be rounded twice.
  return Number((up * 1000n) / down) / 1000;
}

/** How much of something is there, from 0 to 1; none where either is not known. */
export function shareOf(left: string | null | undefined, total: string | null | undefined): number | null {
  const size = bytesOf(total);
  if (left == null) return null;
  if (left === "0") return 1;
  if (size <= 0n) return null;
  const there = size - bytesOf(left);
  if (there <= 0n) return 0;
  // Rounded down: what is not whole is never shown as whole.
  return Number((there * 10_000n) / size) / 10_000;
}

/**
 * How far what was added up explains a figure.
 *
 * - `exact`: to the byte
 * - `unread`: there are entries that have not been looked at
 * - `gone`: the journal no longer has the beginning
 * - `differs`: everything was looked at, and it is not the figure
 */
export type Verdict = "exact" | "unread" | "gone" | "differs";

/** What was looked at. */
export interface Looked {
  /** Whether the search has reached the oldest entry that the journal still has. */
  readonly isComplete: boolean;
  /** The oldest entry that the journal still has, in unix seconds. */
  readonly since: number | null;
  /** When the account began. */
  readonly firstSeen: number | null;
}

/**
 * Compares a sum with the figure that it is to explain; up to `rounding` is no difference. What cannot be told is not held
 * against anybody.
 */
export function verdictOf(sum: bigint | null, figure: bigint, looked: Looked, rounding = 0n): Verdict {
  if (!looked.isComplete) return "unread";
  const rest = sum === null ? 0n : figure - sum;
  if (-rounding <= rest && rest <= rounding) return "exact";
  const beganBefore =
    looked.since === null || (looked.firstSeen !== null && looked.firstSeen < looked.since);
  return beganBefore ? "gone" : "differs";
}
