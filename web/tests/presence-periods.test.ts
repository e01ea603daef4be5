import { describe, expect, it } from "vitest";
import { periodsOf, totalsOf, type HistoryEvent } from "../src/pages/users/presence-periods";

const span = { from_ms: 1000, to_ms: 2000 };
const statuses = (newestFirst: HistoryEvent[], isWhole = true) =>
  periodsOf(newestFirst, span, isWhole).map(({ from_ms, to_ms, status }) => [from_ms, to_ms, status]);

describe("a timeline", () => {
  it("without a history is offline, or unknown where there is more of it", () => {
    expect(statuses([])).toEqual([[1000, 2000, "offline"]]);
    expect(statuses([], false)).toEqual([[1000, 2000, "unknown"]]);
  });

  it("goes from one transition to the next", () => {
    const happenings = [
      { at_ms: 1900, event: "left" },
      { at_ms: 1500, event: "transition", from: "online", to: "away" },
      { at_ms: 1200, event: "transition", from: "offline", to: "online" },
      { at_ms: 1200, event: "arrived" },
    ];
    expect(statuses(happenings)).toEqual([
      [1000, 1200, "offline"],
      [1200, 1500, "online"],
      [1500, 1900, "away"],
      [1900, 2000, "offline"],
    ]);
  });

  it("an arrival does not undo the status that came beside it", () => {
    const happenings = [
      { at_ms: 1200, event: "arrived" },
      { at_ms: 1200, event: "transition", from: "offline", to: "busy" },
    ];
    expect(statuses(happenings)).toEqual([[1000, 1200, "offline"], [1200, 2000, "busy"]]);
  });

  it("knows what was before the span began, and leaves out what is after it", () => {
    const happenings = [
      { at_ms: 5000, event: "left" },
      { at_ms: 10, event: "transition", from: "offline", to: "online" },
    ];
    expect(statuses(happenings)).toEqual([[1000, 2000, "online"]]);
  });

  it("says that it does not know what was before somebody left", () => {
    expect(statuses([{ at_ms: 1500, event: "left" }], false)).toEqual([
      [1000, 1500, "unknown"],
      [1500, 2000, "offline"],
    ]);
  });

  it("adds up to the span", () => {
    const happenings = [
      { at_ms: 1700, event: "transition", from: "away", to: "online" },
      { at_ms: 1400, event: "transition", from: "online", to: "away" },
    ];
    const totals = totalsOf(periodsOf(happenings, span, true));
    expect(Object.fromEntries(totals)).toEqual({ online: 700, away: 300 });
  });
});
