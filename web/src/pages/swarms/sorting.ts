// By what torrents can be sorted.

/** What they can be sorted by. */
export type SortKey = "seeders" | "leechers" | "snatches" | "size" | "added";

/** All of that. */
export const SORTS: readonly SortKey[] = ["seeders", "leechers", "snatches", "size", "added"];

/** By what the address says that it is sorted. */
export function sortingOf(query: URLSearchParams): { by: SortKey; order: "asc" | "desc" } {
  const by = SORTS.find((key) => key === query.get("sort")) ?? "seeders";
  return { by, order: query.get("order") === "asc" ? "asc" : "desc" };
}
