import { describe, expect, it } from "vitest";
import { detailsOf, hrefOf, isTime, kindOf } from "../src/pages/audit/record";
import { multiplierState } from "../src/pages/access/multiplier-state";
import { NONE, requestsFor, stillThere, toggled } from "../src/pages/pipeline/choice";
import { newSince, ofKind } from "../src/pages/presence/events";
import type { RecentEvent } from "../src/api/types";

describe("choosing letters", () => {
  it("means all when nothing is chosen, and otherwise exactly those", () => {
    expect(requestsFor(NONE)).toEqual([{ all: true }]);
    expect(requestsFor(new Set(["1-0", "2-0"]))).toEqual([{ ids: ["1-0", "2-0"] }]);
  });

  it("asks for no more at once than the server takes", () => {
    const many = new Set(Array.from({ length: 2001 }, (_, index) => `${index}-0`));
    const sizes = requestsFor(many).map((request) => ("ids" in request ? request.ids.length : 0));
    expect(sizes).toEqual([1000, 1000, 1]);
  });

  it("forgets what is not there any more", () => {
    const choice = toggled(toggled(NONE, "a", true), "b", true);
    expect([...stillThere(choice, ["b", "c"])]).toEqual(["b"]);
    expect(stillThere(choice, ["a", "b", "c"])).toBe(choice);
    expect([...toggled(choice, "a", false)]).toEqual(["b"]);
  });
});

const happened = (at_ms: number, event: RecentEvent["event"]): RecentEvent => ({ at_ms, user: 7, event, from: "offline", to: "online", cause: "" });

describe("what happens to people", () => {
  const events = [happened(3, "status"), happened(2, "left"), happened(1, "joined")];

  it("is shown by kind, and not more than asked for", () => {
    expect(ofKind(events, "all", 2).map((event) => event.at_ms)).toEqual([3, 2]);
    expect(ofKind(events, "comings", 9).map((event) => event.at_ms)).toEqual([2, 1]);
    expect(ofKind(events, "status", 9).map((event) => event.at_ms)).toEqual([3]);
  });

  it("is counted while the list stands still", () => {
    expect(newSince(events, events.slice(1))).toBe(1);
    expect(newSince(events, events)).toBe(0);
  });
});

describe("a record of the audit trail", () => {
  it("has its details named and written out", () => {
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

  it("knows moments, kinds and the pages of its subjects", () => {
    expect(isTime("terms.ends_at", "1794900000")).toBe(true);
    expect(isTime("count", "1794900000")).toBe(false);
    expect([kindOf("user.add"), kindOf("user."), kindOf("")]).toEqual(["user", "user", ""]);
    expect(hrefOf("user", "7")).toBe("#/users/7");
    expect(hrefOf("user", "7/../x")).toBeNull();
    expect(hrefOf("port", "6881")).toBeNull();
  });
});

describe("a multiplier", () => {
  it("is in force from its start up to its end", () => {
    expect(standing({ starts_at: 10, ends_at: 20 }, 9)).toBe("later");
    expect(standing({ starts_at: 10, ends_at: 20 }, 10)).toBe("now");
    expect(standing({ starts_at: 10, ends_at: 20 }, 20)).toBe("over");
    expect(standing({ starts_at: 10, ends_at: null }, 9_999_999_999)).toBe("now");
    expect(standing({ starts_at: 10, ends_at: 10 }, 5), "ended before it began").toBe("over");
  });
});
