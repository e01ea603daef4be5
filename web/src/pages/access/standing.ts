// Whether a multiplier is in force.

/** What a multiplier is for. */
export type Scope = "site" | "torrent" | "user";

/** In force, to come, or over. */
export function standing(multiplier: { starts_at: number; ends_at?: number | null }, nowS: number): "now" | "later" | "over" {
  if (multiplier.ends_at !== null && multiplier.ends_at !== undefined && multiplier.ends_at <= nowS) return "over";
  return multiplier.starts_at > nowS ? "later" : "now";
}
