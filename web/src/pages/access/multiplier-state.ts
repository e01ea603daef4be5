export type Scope = "site" | "torrent" | "user";

/** A multiplier that was ended before its start counts as ended. */
export function multiplierState(multiplier: { starts_at: number; ends_at?: number | null }, nowS: number): "active" | "scheduled" | "ended" {
  const { starts_at, ends_at } = multiplier;
  if (ends_at != null && (ends_at <= nowS || ends_at <= starts_at)) return "ended";
  return starts_at > nowS ? "scheduled" : "active";
}
