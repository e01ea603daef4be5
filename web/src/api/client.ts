// The API, typed by openapi.json.
//
//     const user = await api.get("/api/v1/users/{id}", { path: { id: 7 } });
//     await api.patch("/api/v1/users/{id}", { path: { id: 7 }, body: { enabled: false } });
//
// Whatever is not a success is thrown as a `Problem`; an unreachable server is one with status 0. The session, or the
// member's page, sets the headers that identify the caller with `identify`.
//
// Answers with an entity tag are kept: a GET that is repeated sends `If-None-Match`, and on 304 returns the same object.
import type { AllPaths } from "./types";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** An error, as the server describes it. */
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

  /** The server, or a proxy in front of it, does not answer. */
  get isUnreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
}

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

/** The body of a successful answer. */
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

// Options are optional where none of them is required.
type Rest<O> = object extends Options<O> ? [options?: Options<O>] : [options: Options<O>];

interface Untyped {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
  /** A 401 concerns the credentials in the body, not those of the session. */
  isSignIn?: boolean;
}

interface Identity {
  /** Headers to add to a request. */
  headers(method: string): Record<string, string>;
  /** The server refused the session or token. */
  onUnauthorized(): void;
}

let identity: Identity = { headers: () => ({}), onUnauthorized: () => {} };

/** Sets the caller of all further requests. */
export function identify(caller: Identity): void {
  identity = caller;
}

const ANSWERS_MAX = 32;
const answers = new Map<string, { tag: string; body: unknown }>();

/** Drops the kept answers, as at sign-out. */
export function forgetAnswers(): void {
  answers.clear();
}

function keepAnswer(address: string, tag: string, body: unknown): void {
  // Map keeps the order of insertion: the first key is the one not used for longest.
  answers.delete(address);
  answers.set(address, { tag, body });
  const oldest = answers.keys().next();
  if (answers.size > ANSWERS_MAX && !oldest.done) answers.delete(oldest.value);
}

/** The address of a request, without empty parts of the query. */
export function addressOf(template: string, options: Untyped = {}): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(options.path?.[name] ?? "")));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// Longer than the server's own time limit of a request.
const ANSWER_MS_MAX = 20_000;

/** An untyped request, for routes outside of openapi.json. */
export async function request(method: string, template: string, options: Untyped = {}): Promise<unknown> {
  const address = addressOf(template, options);
  const headers: Record<string, string> = { accept: "application/json", ...identity.headers(method) };
  const kept = method === "GET" ? answers.get(address) : undefined;
  if (kept) headers["if-none-match"] = kept.tag;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const given = new AbortController();
  const timer = setTimeout(() => given.abort(), ANSWER_MS_MAX);
  const stop = () => given.abort();
  options.signal?.addEventListener("abort", stop);
  try {
    const response = await fetch(address, {
      method,
      headers,
      signal: given.signal,
      credentials: "same-origin",
      cache: "no-store",
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    if (kept && response.status === 304) {
      keepAnswer(address, kept.tag, kept.body);
      return kept.body;
    }
    const body = await read(response, options.isSignIn ?? false);
    const tag = response.headers.get("etag");
    if (method === "GET" && tag) keepAnswer(address, tag, body);
    return body;
  } catch (thrown) {
    if (thrown instanceof Problem) throw thrown;
    throw new Problem(0, options.signal?.aborted ? "aborted" : "unreachable", "the server does not answer");
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", stop);
  }
}

async function read(response: Response, isSignIn: boolean): Promise<unknown> {
  const text = await response.text();
  const body = parse(text);
  if (response.ok) return body;
  if (response.status === 401 && !isSignIn) identity.onUnauthorized();
  const problem = (typeof body === "object" && body !== null ? body : {}) as { code?: unknown; detail?: unknown };
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

export const api = {
  get: verb("get"),
  post: verb("post"),
  put: verb("put"),
  patch: verb("patch"),
  del: verb("delete"),
};
