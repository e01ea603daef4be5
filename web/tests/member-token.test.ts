import { describe, expect, it } from "vitest";
import { AHEAD_S, TokenRenewal } from "../src/pages/member/token-renewal";
import { claimsOf, isExpired, takeToken, type TabStorage } from "../src/pages/member/token";

const jwt = (claims: object) => `e30.${btoa(JSON.stringify(claims)).replace(/=+$/, "")}.sig`;

function keepOf(): TabStorage & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
  };
}

function barOf(hash: string) {
  return {
    hash,
    replaceHash(next: string) {
      this.hash = next;
    },
  };
}

describe("a member's token", () => {
  it("is removed from the address, and the rest stays", () => {
    const bar = barOf("#token=a.b.c&lang=zh");
    expect(takeToken(bar, keepOf())).toBe("a.b.c");
    expect(bar.hash).toBe("lang=zh");
  });

  it("survives a reload", () => {
    const keep = keepOf();
    takeToken(barOf("#token=a.b.c"), keep);
    expect(takeToken(barOf(""), keep)).toBe("a.b.c");
    expect(takeToken(barOf(""), keepOf())).toBeNull();
  });

  it("works without storage", () => {
    const refusing: TabStorage = {
      getItem: () => {
        throw new Error("denied");
      },
      setItem: () => {
        throw new Error("denied");
      },
    };
    expect(takeToken(barOf("#token=a.b.c"), refusing)).toBe("a.b.c");
    expect(takeToken(barOf(""), refusing)).toBeNull();
  });

  it("has user and expiry", () => {
    expect(claimsOf(jwt({ sub: "7", exp: 100 }))).toEqual({ sub: "7", exp: 100 });
    expect(claimsOf(jwt({ sub: "7" }))).toEqual({ sub: "7", exp: null });
    expect(isExpired({ sub: "7", exp: 100 }, 100)).toBe(true);
    expect(isExpired({ sub: "7", exp: null }, 100)).toBe(false);
  });

  it("is null for other texts", () => {
    for (const text of ["", "a", "a.b", "a.!!.c", jwt({ exp: 1 }), jwt({ sub: 7 }), "a.b.c.d"]) {
      expect(claimsOf(text)).toBeNull();
    }
  });
});

describe("a new token", () => {
  const asking = () => {
    const asked = { times: 0 };
    return { asked, renewal: new TokenRenewal(() => void (asked.times += 1)) };
  };
  const claims = { sub: "7", exp: 1000 };

  it("is requested once before the expiry", () => {
    const { asked, renewal } = asking();
    renewal.check("a", claims, 1000 - AHEAD_S - 1);
    expect(asked.times).toBe(0);
    // Timers of background tabs may skip the exact second and the expiry.
    renewal.check("a", claims, 1000 - AHEAD_S + 7);
    renewal.check("a", claims, 1001);
    expect(asked.times).toBe(1);
    renewal.check("b", { sub: "7", exp: 1500 }, 1100);
    expect(asked.times).toBe(1);
    renewal.check("b", { sub: "7", exp: 1500 }, 1450);
    expect(asked.times).toBe(2);
  });

  it("is requested again when the tab becomes visible", () => {
    const { asked, renewal } = asking();
    renewal.check("a", claims, 950);
    renewal.checkAgain("a", claims, 2000);
    expect(asked.times).toBe(2);
  });

  it("is not requested for a token without expiry", () => {
    const { asked, renewal } = asking();
    renewal.checkAgain("a", { sub: "7", exp: null }, 1e9);
    renewal.checkAgain(null, null, 1e9);
    expect(asked.times).toBe(0);
  });
});
