// The current route: the part of the address after `#`. `#/users/7?tab=risks` is the path `/users/7` with a query.
import { signal } from "@preact/signals";

export interface Route {
  path: string;
  query: URLSearchParams;
}

export interface PageProps {
  /** Named parts of the path. */
  params: Record<string, string>;
  query: URLSearchParams;
}

/** Accepts any text: users can edit the address. */
export function parseRoute(hash: string): Route {
  const text = hash.startsWith("#") ? hash.slice(1) : hash;
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const clean = "/" + path.split("/").filter(Boolean).join("/");
  return { path: clean, query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)) };
}

/** `link("/users/7", { tab: "risks" })`. */
export function link(path: string, query: Record<string, string | number | undefined | null> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

/** Named parts if the path matches the pattern (`/users/:id`), else null. */
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

export const route = signal<Route>(parseRoute(typeof location === "undefined" ? "" : location.hash));

/** With `replace` no history entry is added. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const hash = to.startsWith("#") ? to : `#${to}`;
  if (options.replace) {
    history.replaceState(null, "", hash);
    route.value = parseRoute(hash);
  } else {
    location.hash = hash;
  }
}

/** Changes parts of the query, for search, sorting and tabs. */
export function setQuery(changes: Record<string, string | number | undefined | null>): void {
  const query = Object.fromEntries(route.value.query);
  navigate(link(route.value.path, { ...query, ...changes }), { replace: true });
}

if (typeof window !== "undefined") {
  window.addEventListener("hashchange", () => {
    route.value = parseRoute(location.hash);
  });
}
