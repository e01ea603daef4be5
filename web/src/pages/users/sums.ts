/**
 * Sums of bytes, exact to the byte: amounts are decimal texts that may be larger than a floating-point number holds.
 */
import type { AccountClient, Stretch } from "../../api/types";

/** Bytes both ways. */
export interface Moved {
  readonly uploaded: bigint;
  readonly downloaded: bigint;
}

/** The same as the API writes it. */
export interface MovedText {
  readonly uploaded: string;
  readonly downloaded: string;
}

/** A decimal text as a number; nothing, and what is no number, is 0. */
export function bytesOf(text: string | null | undefined): bigint {
  return text != null && /^-?[0-9]+$/.test(text) ? BigInt(text) : 0n;
}

/** Amounts as numbers. */
export function movedOf(text: MovedText): Moved {
  return { uploaded: bytesOf(text.uploaded), downloaded: bytesOf(text.downloaded) };
}

/** Adds amounts up. */
export function sumOf(all: readonly Moved[]): Moved {
  let [uploaded, downloaded] = [0n, 0n];
  for (const one of all) {
    uploaded += one.uploaded;
    downloaded += one.downloaded;
  }
  return { uploaded, downloaded };
}

/** Whether two amounts are the same, to the byte. */
export function isSame(one: Moved, other: Moved): boolean {
  return one.uploaded === other.uploaded && one.downloaded === other.downloaded;
}

/** Whether it is nothing. */
export function isNothing(moved: Moved): boolean {
  return moved.uploaded === 0n && moved.downloaded === 0n;
}

/**
 * One part of what a client brought.
 *
 * - `settled`: stretches that were put away, as a sum
 * - `foreign`: what another producer wrote, as a sum
 * - `withheld`: what was not credited, because the user's clients together claimed too much, as a sum below zero
 * - `bridged`: what its counters grew by while no tracker watched
 * - `anew`: its counters went back, or it had stopped: what it moved meanwhile does not count
 * - `counters`: how far its counters went while a tracker watched
 */
export interface Part extends Moved {
  readonly kind: "settled" | "foreign" | "withheld" | "bridged" | "anew" | "counters";
  readonly from: number | null;
  readonly to: number | null;
  readonly stretch: Stretch | null;
  /** What the ceiling did not allow. */
  readonly withheld: Moved;
}

const NOTHING: Moved = { uploaded: 0n, downloaded: 0n };

/** Everything that a client brought, the oldest first. */
export function partsOf(client: AccountClient): Part[] {
  const parts: Part[] = [];
  const only = { from: null, to: null, stretch: null, withheld: NOTHING };
  const sums = [["settled", client.settled], ["foreign", client.foreign]] as const;
  for (const [kind, sum] of sums) if (!isNothing(movedOf(sum))) parts.push({ ...only, kind, ...movedOf(sum) });
  const withheld = movedOf(client.withheld);
  if (!isNothing(withheld)) parts.push({ ...only, kind: "withheld", uploaded: -withheld.uploaded, downloaded: -withheld.downloaded });
  client.stretches.forEach((stretch, place) => {
    const before = client.stretches[place - 1];
    if (before) parts.push(gapOf(before, stretch));
    const beyond = { uploaded: bytesOf(stretch.withheld_uploaded), downloaded: bytesOf(stretch.withheld_downloaded) };
    // The end of what was put away is no part of its own.
    if (!stretch.is_settled) parts.push({ kind: "counters", from: stretch.first, to: stretch.last, stretch, ...movedOf(stretch), withheld: beyond });
  });
  return parts;
}

function gapOf(before: Stretch, stretch: Stretch): Part {
  const span = { from: before.last, to: stretch.first, stretch: null };
  const over = stretch.bridged;
  if (!over) return { ...span, kind: "anew", ...NOTHING, withheld: NOTHING };
  const withheld = { uploaded: bytesOf(over.withheld_uploaded), downloaded: bytesOf(over.withheld_downloaded) };
  return { ...span, kind: "bridged", ...movedOf(over), withheld };
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
 * How a user's accounts compare with their figures.
 *
 * - `exact`: to the byte
 * - `unread`: there are accounts that were not added up
 * - `moving`: announces were counted while the accounts were being read
 * - `differs`: nothing moved, and it is not the figure
 */
export type Verdict = "exact" | "unread" | "moving" | "differs";

/** Compares a sum of accounts with the figures as they were before they were read, and after. */
export function verdictOf(sum: Moved, before: Moved, after: Moved, isComplete: boolean): Verdict {
  if (!isComplete) return "unread";
  if (isSame(sum, before) || isSame(sum, after)) return "exact";
  return isSame(before, after) ? "differs" : "moving";
}
