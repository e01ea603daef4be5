// Whether a multiplier is in force.

/** What a multiplier is for. */
export type Scope = "site" | "torrent" | "user";

/** In force, to come, or over: its time has passed, or it was ended before it began. */
export function standing(multiplier: { starts_at: number; ends_at?: number | null }, nowS: number): "now" | "later" | "over" {
  const { starts_at, ends_at } = multiplier;
  if (ends_at != null && (ends_at <= nowS || ends_at <= starts_at)) return "over";
  return starts_at > nowS ? "later" : "now";
}
