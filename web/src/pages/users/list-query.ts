// Order and filter of the user list, from the query of the address.

export const SORTS = ["id", "ratio", "uploaded", "downloaded", "seeding", "leeching", "last_announce"] as const;
export type SortKey = (typeof SORTS)[number];

export const STATES = ["all", "enabled", "disabled", "seeding", "leeching", "online", "hit_and_run", "never_announced"] as const;
export type StateKey = (typeof STATES)[number];

/** Default: ascending by number. */
export function sortingOf(query: URLSearchParams): { by: SortKey; order: "asc" | "desc" } {
  const by = SORTS.find((key) => key === query.get("sort")) ?? "id";
  const order = query.get("order");
  if (order === "asc" || order === "desc") return { by, order };
  return { by, order: by === "id" ? "asc" : "desc" };
}

export function filterOf(query: URLSearchParams): StateKey {
  return STATES.find((key) => key === query.get("state")) ?? "all";
}
