// Where we are: the part of the address after `#`. `#/users/7?tab=risks` is the path `/users/7` with a query.
import { signal } from "@preact/signals";

/** A place in the dashboard. */
export interface Place {
  path: string;
  query: URLSearchParams;
}

/** What a page is given. */
export interface PageProps {
  /** The named parts of the path. */
  params: Record<string, string>;
  query: URLSearchParams;
}

/** The place that a hash names. Anything can be in an address bar, so anything is taken. */
export function parsePlace(hash: string): Place {
  const text = hash.startsWith("#") ? hash.slice(1) : hash;
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const clean = "/" + path.split("/").filter(Boolean).join("/");
  return { path: clean, query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)) };
}

/** The link to a place: `link("/users/7", { tab: "risks" })`. */
export function link(path: string, query: Record<string, string | number | undefined | null> = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") asked.set(name, String(value));
  }
  const text = asked.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

/** The named parts if the path is of this pattern (`/users/:id`), else null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const actual = given[index] ?? "";
    if (part.startsWith(":")) {
      const value = decoded(actual);
      if (!value) return null;
      params[part.slice(1)] = value;
    } else if (part !== actual) {
      return null;
    }
  }
  return params;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Where we are. */
export const place = signal<Place>(parsePlace(typeof location === "undefined" ? "" : location.hash));

/** Goes to a place. With `replace` the way back does not lead here. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const hash = to.startsWith("#") ? to : `#${to}`;
  if (options.replace) {
    history.replaceState(null, "", hash);
    place.value = parsePlace(hash);
  } else {
    location.hash = hash;
  }
}

/** Changes parts of the query and stays on the page: for search, sorting and tabs. */
export function setQuery(changes: Record<string, string | number | undefined | null>): void {
  const query = Object.fromEntries(place.value.query);
  navigate(link(place.value.path, { ...query, ...changes }), { replace: true });
}

if (typeof window !== "undefined") {
  window.addEventListener("hashchange", () => {
    place.value = parsePlace(location.hash);
  });
}
