// How the list of users is sorted and filtered, as its address says.

/** What it can be sorted by. */
export const SORTS = ["id", "ratio", "uploaded", "downloaded", "seeding", "leeching", "last_announce"] as const;
export type SortKey = (typeof SORTS)[number];

/** States that users can be filtered by; all of them first. */
export const STATES = ["all", "enabled", "disabled", "seeding", "leeching", "online", "hit_and_run", "never_announced"] as const;
export type StateKey = (typeof STATES)[number];

/** The order, by number unless the address says otherwise. */
export function sortingOf(query: URLSearchParams): { by: SortKey; order: "asc" | "desc" } {
  const by = SORTS.find((key) => key === query.get("sort")) ?? "id";
  const order = query.get("order");
  if (order === "asc" || order === "desc") return { by, order };
  return { by, order: by === "id" ? "asc" : "desc" };
}

/** The state. */
export function filterOf(query: URLSearchParams): StateKey {
  return STATES.find((key) => key === query.get("state")) ?? "all";
}
