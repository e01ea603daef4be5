import { describe, expect, it } from "vitest";
import { detailsOf, hrefOf, isTime, kindOf } from "../src/pages/audit/record";
import { multiplierState } from "../src/pages/access/multiplier-state";
import { listedOnly, NONE, requestsFor, toggled } from "../src/pages/pipeline/selection";
import { newSince, ofKind } from "../src/pages/presence/event-filter";
import type { RecentEvent } from "../src/api/types";

describe("selecting dead letters", () => {
  it("means all if none is selected, otherwise exactly those", () => {
    expect(requestsFor(NONE)).toEqual([{ all: true }]);
    expect(requestsFor(new Set(["1-0", "2-0"]))).toEqual([{ ids: ["1-0", "2-0"] }]);
  });

  it("splits requests at the limit of the server", () => {
    const many = new Set(Array.from({ length: 2001 }, (_, index) => `${index}-0`));
    const sizes = requestsFor(many).map((request) => ("ids" in request ? request.ids.length : 0));
    expect(sizes).toEqual([1000, 1000, 1]);
  });

  it("drops ids that are no longer listed", () => {
    const selection = toggled(toggled(NONE, "a", true), "b", true);
    expect([...listedOnly(selection, ["b", "c"])]).toEqual(["b"]);
    expect(listedOnly(selection, ["a", "b", "c"])).toBe(selection);
    expect([...toggled(selection, "a", false)]).toEqual(["b"]);
  });
});

const recent = (at_ms: number, event: RecentEvent["event"]): RecentEvent => ({ at_ms, user: 7, event, from: "offline", to: "online", cause: "" });

describe("recent presence events", () => {
  const events = [recent(3, "status"), recent(2, "left"), recent(1, "joined")];

  it("are filtered by kind, up to the maximum", () => {
    expect(ofKind(events, "all", 2).map((event) => event.at_ms)).toEqual([3, 2]);
    expect(ofKind(events, "joins", 9).map((event) => event.at_ms)).toEqual([2, 1]);
    expect(ofKind(events, "status", 9).map((event) => event.at_ms)).toEqual([3]);
  });

  it("are counted while the list is paused", () => {
    expect(newSince(events, events.slice(1))).toBe(1);
    expect(newSince(events, events)).toBe(0);
  });
});

describe("a record of the audit trail", () => {
  it("has flat details", () => {
    const details = { name: "x", terms: { note: "", ends_at: null, upload_percent: 200 }, passkeys: ["a", "b"] };
    expect(detailsOf(details)).toEqual([
      ["name", "x"],
      ["terms.note", ""],
      ["terms.ends_at", ""],
      ["terms.upload_percent", "200"],
      ["passkeys", "a, b"],
    ]);
    expect(detailsOf(null)).toEqual([]);
  });

  it("has times, kinds and links to its subjects", () => {
    expect(isTime("terms.ends_at", "1794900000")).toBe(true);
    expect(isTime("count", "1794900000")).toBe(false);
    expect([kindOf("user.add"), kindOf("user."), kindOf("")]).toEqual(["user", "user", ""]);
    expect(hrefOf("user", "7")).toBe("#/users/7");
    expect(hrefOf("user", "7/../x")).toBeNull();
    expect(hrefOf("port", "6881")).toBeNull();
  });
});

describe("a multiplier", () => {
  it("is active from its start to its end", () => {
    expect(multiplierState({ starts_at: 10, ends_at: 20 }, 9)).toBe("scheduled");
    expect(multiplierState({ starts_at: 10, ends_at: 20 }, 10)).toBe("active");
    expect(multiplierState({ starts_at: 10, ends_at: 20 }, 20)).toBe("ended");
    expect(multiplierState({ starts_at: 10, ends_at: null }, 9_999_999_999)).toBe("active");
    expect(multiplierState({ starts_at: 10, ends_at: 10 }, 5), "ended before its start").toBe("ended");
  });
});
