import { describe, expect, it } from "vitest";
import { periodsOf, totalsOf, type HistoryEvent } from "../src/pages/users/presence-periods";

const span = { from_ms: 1000, to_ms: 2000 };
const statuses = (newestFirst: HistoryEvent[], isWhole = true) =>
  periodsOf(newestFirst, span, isWhole).map(({ from_ms, to_ms, status }) => [from_ms, to_ms, status]);

describe("presence periods", () => {
  it("are offline without events, or unknown if the history is incomplete", () => {
    expect(statuses([])).toEqual([[1000, 2000, "offline"]]);
    expect(statuses([], false)).toEqual([[1000, 2000, "unknown"]]);
  });

  it("follow the transitions", () => {
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

  it("keep the status of a transition beside an arrival", () => {
    const happenings = [
      { at_ms: 1200, event: "arrived" },
      { at_ms: 1200, event: "transition", from: "offline", to: "busy" },
    ];
    expect(statuses(happenings)).toEqual([[1000, 1200, "offline"], [1200, 2000, "busy"]]);
  });

  it("are clipped to the span", () => {
    const happenings = [
      { at_ms: 5000, event: "left" },
      { at_ms: 10, event: "transition", from: "offline", to: "online" },
    ];
    expect(statuses(happenings)).toEqual([[1000, 2000, "online"]]);
  });

  it("are unknown before a departure", () => {
    expect(statuses([{ at_ms: 1500, event: "left" }], false)).toEqual([
      [1000, 1500, "unknown"],
      [1500, 2000, "offline"],
    ]);
  });

  it("add up to the span", () => {
    const happenings = [
      { at_ms: 1700, event: "transition", from: "away", to: "online" },
      { at_ms: 1400, event: "transition", from: "online", to: "away" },
    ];
    const totals = totalsOf(periodsOf(happenings, span, true));
    expect(Object.fromEntries(totals)).toEqual({ online: 700, away: 300 });
  });
});
