// The API, typed by the server's own description of it.
//
//     const user = await api.get("/api/v1/users/{id}", { path: { id: 7 } });
//     await api.patch("/api/v1/users/{id}", { path: { id: 7 }, body: { enabled: false } });
//
// Whatever is not a success is thrown as a `Problem`; a server that cannot be reached is one with status 0. Who is asking
// is somebody else's business: the session, or the member's page, says so once with `identify`.
import type { AllPaths } from "./types";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** What went wrong, as the server says it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly retryAfterS: number | null = null,
  ) {
    super(detail);
    this.name = "Problem";
  }

  /** Whether the server could not be reached at all, or something before it could not. */
  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
}

/** Whatever was thrown, as a Problem. */
export function asProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  return new Problem(0, "unexpected", thrown instanceof Error ? thrown.message : String(thrown));
}

type PathsWith<M extends Method> = {
  [P in keyof AllPaths]: AllPaths[P] extends { [K in M]: { responses: unknown } } ? P : never;
}[keyof AllPaths];

type Operation<P extends keyof AllPaths, M extends Method> = M extends keyof AllPaths[P] ? AllPaths[P][M] : never;

type Parameters<O, Where extends string> = O extends { parameters: infer Q }
  ? Where extends keyof Q
    ? Exclude<Q[Where], undefined>
    : never
  : never;

type Content<R> = R extends { content: { "application/json": infer T } } ? T : undefined;

/** What a successful answer says. */
export type Answer<P extends keyof AllPaths, M extends Method> =
  Operation<P, M> extends { responses: infer R } ? Content<R[keyof R & (200 | 201 | 202 | 204)]> : never;

type Body<O> = O extends { requestBody?: infer B }
  ? Exclude<B, undefined> extends { content: { "application/json": infer T } }
    ? T
    : never
  : never;

type Given<K extends string, T> = [T] extends [never]
  ? unknown
  : object extends T
    ? { [Key in K]?: T }
    : { [Key in K]: T };

type Options<O> = Given<"path", Parameters<O, "path">> &
  Given<"query", Parameters<O, "query">> &
  Given<"body", Body<O>> & { signal?: AbortSignal };

// Options may be left out where nothing in them is needed.
type Rest<O> = object extends Options<O> ? [options?: Options<O>] : [options: Options<O>];

interface Untyped {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
  /** A 401 is about what was sent, and says nothing of who is asking. */
  isAboutBody?: boolean;
}

interface Identity {
  /** What to add to a request. */
  headers(method: string): Record<string, string>;
  /** The server no longer knows who is asking. */
  onUnauthorized(): void;
}

let identity: Identity = { headers: () => ({}), onUnauthorized: () => {} };

/** Says who is asking from now on. */
export function identify(who: Identity): void {
  identity = who;
}

/** The address of a request: the parts of the path filled in, and of the query what there is. */
export function addressOf(template: string, options: Untyped = {}): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(options.path?.[name] ?? "")));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// Longer than the server takes for anything; shorter than somebody waits.
const ANSWER_MS_MAX = 20_000;

/** One request, not typed. For what the description does not describe. */
export async function request(method: string, template: string, options: Untyped = {}): Promise<unknown> {
  const headers: Record<string, string> = { accept: "application/json", ...identity.headers(method) };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const given = new AbortController();
  const timer = setTimeout(() => given.abort(), ANSWER_MS_MAX);
  const stop = () => given.abort();
  options.signal?.addEventListener("abort", stop);
  try {
    const response = await fetch(addressOf(template, options), {
      method,
      headers,
      signal: given.signal,
      credentials: "same-origin",
      cache: "no-store",
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    return await read(response, options.isAboutBody ?? false);
  } catch (thrown) {
    if (thrown instanceof Problem) throw thrown;
    throw new Problem(0, options.signal?.aborted ? "aborted" : "unreachable", "the server does not answer");
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", stop);
  }
}

async function read(response: Response, isAboutBody: boolean): Promise<unknown> {
  const text = await response.text();
  const said = parse(text);
  if (response.ok) return said;
  if (response.status === 401 && !isAboutBody) identity.onUnauthorized();
  const problem = (typeof said === "object" && said !== null ? said : {}) as { code?: unknown; detail?: unknown };
  throw new Problem(
    response.status,
    typeof problem.code === "string" ? problem.code : `http_${response.status}`,
    typeof problem.detail === "string" ? problem.detail : text.slice(0, 200) || response.statusText,
    Number(response.headers.get("retry-after")) || null,
  );
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function verb<M extends Method>(method: M) {
  return async <P extends PathsWith<M>>(path: P, ...[options]: Rest<Operation<P, M>>): Promise<Answer<P, M>> =>
    (await request(method.toUpperCase(), path as string, options as Untyped | undefined)) as Answer<P, M>;
}

/** The API. */
export const api = {
  get: verb("get"),
  post: verb("post"),
  put: verb("put"),
  patch: verb("patch"),
  del: verb("delete"),
};
