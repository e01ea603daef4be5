import { afterEach, describe, expect, it, vi } from "vitest";
import { addressOf, api, forgetAnswers, identify, Problem, request } from "../src/api/client";

afterEach(() => {
  vi.unstubAllGlobals();
  identify({ headers: () => ({}), onUnauthorized: () => {} });
});

function answer(status: number, body: unknown, headers: Record<string, string> = {}) {
  const fetched = vi.fn(async (_address: string, _init: RequestInit) => new Response(body === undefined ? null : JSON.stringify(body), { status, headers }));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

describe("an address", () => {
  it("has its path parameters, and no empty query parameters", () => {
    expect(addressOf("/api/v1/clients/{prefix}", { path: { prefix: "-q/?#" } })).toBe("/api/v1/clients/-q%2F%3F%23");
    expect(addressOf("/api/v1/users", { query: { limit: 5, cursor: undefined, search: "", order: null } })).toBe("/api/v1/users?limit=5");
  });
});

describe("a request", () => {
  it("has the caller's headers, and a JSON body", async () => {
    const fetched = answer(200, {});
    identify({ headers: (method): Record<string, string> => (method === "GET" ? {} : { "x-csrf-token": "c" }), onUnauthorized: () => {} });
    await api.patch("/api/v1/users/{id}", { path: { id: 7 }, body: { enabled: false } });
    const [address, init] = fetched.mock.calls[0] ?? [];
    expect(address).toBe("/api/v1/users/7");
    expect(init?.headers).toMatchObject({ "x-csrf-token": "c", "content-type": "application/json" });
    expect(init?.body).toBe('{"enabled":false}');
  });

  it("fails with the code and detail of the server", async () => {
    answer(429, { code: "too_many", detail: "wait a little" }, { "retry-after": "12" });
    await expect(api.get("/api/v1/users")).rejects.toMatchObject({ status: 429, code: "too_many", detail: "wait a little", retryAfterS: 12 });
  });

  it("calls onUnauthorized on 401", async () => {
    answer(401, { code: "no_session", detail: "sign in" });
    const onUnauthorized = vi.fn();
    identify({ headers: () => ({}), onUnauthorized });
    await expect(api.get("/api/v1/users")).rejects.toBeInstanceOf(Problem);
    expect(onUnauthorized).toHaveBeenCalledOnce();
  });

  it("does not call onUnauthorized when a sign-in fails", async () => {
    answer(401, { code: "unauthorized", detail: "no such key" });
    const onUnauthorized = vi.fn();
    identify({ headers: () => ({}), onUnauthorized });
    await expect(request("POST", "/session", { body: { key: "rck_x" }, isSignIn: true })).rejects.toMatchObject({ status: 401 });
    expect(onUnauthorized).not.toHaveBeenCalled();
  });

  it("is unreachable if the server or a proxy does not answer", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
    await expect(api.get("/api/v1/users")).rejects.toMatchObject({ status: 0, isUnreachable: true });
    answer(502, undefined);
    await expect(api.get("/api/v1/users")).rejects.toMatchObject({ status: 502, isUnreachable: true });
  });
});

describe("a repeated GET", () => {
  afterEach(() => forgetAnswers());

  it("sends the entity tag, and returns the same object on 304", async () => {
    answer(200, { items: [] }, { etag: '"one"' });
    const first = await api.get("/api/v1/users");
    const fetched = vi.fn(async (_address: string, _init: RequestInit) => new Response(null, { status: 304 }));
    vi.stubGlobal("fetch", fetched);
    expect(await api.get("/api/v1/users")).toBe(first);
    expect(fetched.mock.calls[0]?.[1].headers).toMatchObject({ "if-none-match": '"one"' });
    forgetAnswers();
    answer(200, { items: [] });
    expect(await api.get("/api/v1/users")).not.toBe(first);
  });

  it("of another address has its own entity tag", async () => {
    answer(200, { items: [] }, { etag: '"one"' });
    await api.get("/api/v1/users");
    const fetched = answer(200, { items: [] });
    await api.get("/api/v1/users", { query: { limit: 5 } });
    expect(fetched.mock.calls[0]?.[1].headers).not.toHaveProperty("if-none-match");
  });
});
