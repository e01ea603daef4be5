// Selected dead letters. An empty selection means all of the lane.

export type Selection = ReadonlySet<string>;

export const NONE: Selection = new Set();

export function toggled(selection: Selection, id: string, isSelected: boolean): Selection {
  const next = new Set(selection);
  if (isSelected) next.add(id);
  else next.delete(id);
  return next;
}

/** Without ids that are no longer listed. */
export function listedOnly(selection: Selection, ids: readonly string[]): Selection {
  const kept = ids.filter((id) => selection.has(id));
  return kept.length === selection.size ? selection : new Set(kept);
}

/** Limit of one request. */
export const IDS_MAX = 1000;

/** Bodies of the requests: all, or the selected ids in groups. */
export function requestsFor(selection: Selection): ({ all: true } | { ids: string[] })[] {
  if (selection.size === 0) return [{ all: true }];
  const ids = [...selection];
  const requests: { ids: string[] }[] = [];
  for (let start = 0; start < ids.length; start += IDS_MAX) requests.push({ ids: ids.slice(start, start + IDS_MAX) });
  return requests;
}
