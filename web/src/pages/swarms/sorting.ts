// Order of the torrent list.

export type SortKey = "seeders" | "leechers" | "snatches" | "size" | "added";

export const SORTS: readonly SortKey[] = ["seeders", "leechers", "snatches", "size", "added"];

/** From the query of the address. */
export function sortingOf(query: URLSearchParams): { by: SortKey; order: "asc" | "desc" } {
  const by = SORTS.find((key) => key === query.get("sort")) ?? "seeders";
  return { by, order: query.get("order") === "asc" ? "asc" : "desc" };
}
