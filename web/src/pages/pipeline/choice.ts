// Which letters are chosen. An empty choice means all that are there, as the buttons say.

/** The ids that are chosen. */
export type Choice = ReadonlySet<string>;

/** Nothing by name: all. */
export const NONE: Choice = new Set();

/** With this one in it, or without. */
export function toggled(choice: Choice, id: string, isChosen: boolean): Choice {
  const next = new Set(choice);
  if (isChosen) next.add(id);
  else next.delete(id);
  return next;
}

/** Only those that are still there: others were replayed, dropped, or went through. */
export function stillThere(choice: Choice, ids: readonly string[]): Choice {
  const left = ids.filter((id) => choice.has(id));
  return left.length === choice.size ? choice : new Set(left);
}

/** The most letters that can be named in one request. */
export const NAMED_MAX = 1000;

/** What to ask for: all, or those chosen a request at a time. */
export function requestsFor(choice: Choice): ({ all: true } | { ids: string[] })[] {
  if (choice.size === 0) return [{ all: true }];
  const ids = [...choice];
  const requests: { ids: string[] }[] = [];
  for (let start = 0; start < ids.length; start += NAMED_MAX) requests.push({ ids: ids.slice(start, start + NAMED_MAX) });
  return requests;
}
