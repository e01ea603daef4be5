// Exact sums of bytes: amounts are decimal strings that may be larger than a double holds.
import type { AccountClient, Stretch } from "../../api/types";

export interface ByteSums {
  readonly uploaded: bigint;
  readonly downloaded: bigint;
}

/** As in the API. */
export interface ByteStrings {
  readonly uploaded: string;
  readonly downloaded: string;
}

/** 0 if missing or not a number. */
export function bytesOf(text: string | null | undefined): bigint {
  return text != null && /^-?[0-9]+$/.test(text) ? BigInt(text) : 0n;
}

export function parseSums(text: ByteStrings): ByteSums {
  return { uploaded: bytesOf(text.uploaded), downloaded: bytesOf(text.downloaded) };
}

export function sumOf(all: readonly ByteSums[]): ByteSums {
  let [uploaded, downloaded] = [0n, 0n];
  for (const one of all) {
    uploaded += one.uploaded;
    downloaded += one.downloaded;
  }
  return { uploaded, downloaded };
}

export function isSame(one: ByteSums, other: ByteSums): boolean {
  return one.uploaded === other.uploaded && one.downloaded === other.downloaded;
}

export function isZero(moved: ByteSums): boolean {
  return moved.uploaded === 0n && moved.downloaded === 0n;
}

/**
 * One part of the bytes of a client.
 *
 * - `settled`: older runs, as a sum
 * - `foreign`: entries of another producer, as a sum
 * - `withheld`: not credited because of the user's rate ceiling, as a negative sum
 * - `bridged`: growth of the counters while no tracker received announces
 * - `restarted`: the counters were reset, or the client had stopped; nothing is credited
 * - `counters`: growth of the counters within a run
 */
export interface Part extends ByteSums {
  readonly kind: "settled" | "foreign" | "withheld" | "bridged" | "restarted" | "counters";
  readonly from: number | null;
  readonly to: number | null;
  readonly stretch: Stretch | null;
  /** Above the rate ceiling, not credited. */
  readonly withheld: ByteSums;
}

const ZERO: ByteSums = { uploaded: 0n, downloaded: 0n };

/** Oldest first. */
export function partsOf(client: AccountClient): Part[] {
  const parts: Part[] = [];
  const only = { from: null, to: null, stretch: null, withheld: ZERO };
  const sums = [["settled", client.settled], ["foreign", client.foreign]] as const;
  for (const [kind, sum] of sums) if (!isZero(parseSums(sum))) parts.push({ ...only, kind, ...parseSums(sum) });
  const withheld = parseSums(client.withheld);
  if (!isZero(withheld)) parts.push({ ...only, kind: "withheld", uploaded: -withheld.uploaded, downloaded: -withheld.downloaded });
  client.stretches.forEach((stretch, place) => {
    const before = client.stretches[place - 1];
    if (before) parts.push(gapOf(before, stretch));
    const beyond = { uploaded: bytesOf(stretch.withheld_uploaded), downloaded: bytesOf(stretch.withheld_downloaded) };
    // The end of merged runs is not a part.
    if (!stretch.is_settled) parts.push({ kind: "counters", from: stretch.first, to: stretch.last, stretch, ...parseSums(stretch), withheld: beyond });
  });
  return parts;
}

function gapOf(before: Stretch, stretch: Stretch): Part {
  const span = { from: before.last, to: stretch.first, stretch: null };
  const over = stretch.bridged;
  if (!over) return { ...span, kind: "restarted", ...ZERO, withheld: ZERO };
  const withheld = { uploaded: bytesOf(over.withheld_uploaded), downloaded: bytesOf(over.withheld_downloaded) };
  return { ...span, kind: "bridged", ...parseSums(over), withheld };
}

/** Null if nothing was downloaded. */
export function ratioOf(uploaded: string | null | undefined, downloaded: string | null | undefined): number | null {
  const [up, down] = [bytesOf(uploaded), bytesOf(downloaded)];
  if (down <= 0n) return null;
  // Integer division: the quotient of two large doubles would be rounded twice.
  return Number((up * 1000n) / down) / 1000;
}

/** Completed share from 0 to 1; null if unknown. */
export function shareOf(left: string | null | undefined, total: string | null | undefined): number | null {
  const size = bytesOf(total);
  if (left == null) return null;
  if (left === "0") return 1;
  if (size <= 0n) return null;
  const there = size - bytesOf(left);
  if (there <= 0n) return 0;
  // Rounded down: incomplete is never shown as 100 %.
  return Number((there * 10_000n) / size) / 10_000;
}

/**
 * Sum of a user's accounts compared with the figures.
 *
 * - `exact`: equal
 * - `unread`: not all accounts were read
 * - `moving`: announces were counted while the accounts were read
 * - `differs`: not equal, although nothing was counted meanwhile
 */
export type Verdict = "exact" | "unread" | "moving" | "differs";

/** `before` and `after` are the figures before and after the accounts were read. */
export function verdictOf(sum: ByteSums, before: ByteSums, after: ByteSums, isComplete: boolean): Verdict {
  if (!isComplete) return "unread";
  if (isSame(sum, before) || isSame(sum, after)) return "exact";
  return isSame(before, after) ? "differs" : "moving";
}
