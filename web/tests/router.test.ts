import { describe, expect, it } from "vitest";
import { isOfKey, targetRoute } from "../src/pages/sign-in/target";
import { link, match, parseRoute } from "../src/router";

describe("a route", () => {
  it("is path and query after the #", () => {
    const place = parseRoute("#/users/7?tab=risks&x=%26");
    expect(place.path).toBe("/users/7");
    expect(place.query.get("tab")).toBe("risks");
    expect(place.query.get("x")).toBe("&");
  });

  it("is the overview if empty, and ignores extra slashes", () => {
    expect(parseRoute("").path).toBe("/");
    expect(parseRoute("#").path).toBe("/");
    expect(parseRoute("#//swarms//").path).toBe("/swarms");
    expect(parseRoute("#main").path).toBe("/main");
  });

  it("is parsed from its own link", () => {
    const place = parseRoute(link("/swarms", { search: "a&b=c #?", sort: undefined, cursor: null, limit: 5 }));
    expect(place.path).toBe("/swarms");
    expect(Object.fromEntries(place.query)).toEqual({ search: "a&b=c #?", limit: "5" });
  });
});

describe("a pattern", () => {
  it("has named parts", () => {
    expect(match("/users/:id", "/users/7")).toEqual({ id: "7" });
    expect(match("/users/:id", "/users/a%2Fb")).toEqual({ id: "a/b" });
    expect(match("/users", "/users")).toEqual({});
  });

  it("does not match what is longer, shorter, empty or malformed", () => {
    expect(match("/users/:id", "/users")).toBeNull();
    expect(match("/users/:id", "/users/7/8")).toBeNull();
    expect(match("/users/:id", "/users/")).toBeNull();
    expect(match("/users/:id", "/users/%E0%A4%A")).toBeNull();
  });
});

describe("the target after the sign-in", () => {
  it("is a route of the dashboard only", () => {
    expect(targetRoute("/users/7?tab=risks")).toBe("/users/7?tab=risks");
    expect(targetRoute(null)).toBe("/");
    expect(targetRoute("https://evil.example/")).toBe("/");
    expect(targetRoute("//evil.example/")).toBe("/");
    expect(targetRoute("javascript:alert(1)")).toBe("/");
    expect(targetRoute("/sign-in?to=/sign-in")).toBe("/");
  });

  it("recognises the key of the session", () => {
    expect(isOfKey("rck_b857d463_5b588685", "b857d463")).toBe(true);
    expect(isOfKey("rck_b857d464_5b588685", "b857d463")).toBe(false);
    expect(isOfKey("b857d463", "b857d463")).toBe(false);
  });
});
