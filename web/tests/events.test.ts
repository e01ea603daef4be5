import { describe, expect, it } from "vitest";
import type { RecentEvent } from "../src/api/types";
import { mergeEvents } from "../src/events";

const event = (at_ms: number, user = 1): RecentEvent => ({ at_ms, user, event: "joined", from: "offline", to: "online", cause: "connected" });
const times = (events: readonly RecentEvent[]) => events.map((one) => one.at_ms);

describe("mergeEvents", () => {
  it("returns one list, newest first, without duplicates", () => {
    const { items, isComplete } = mergeEvents([event(3), event(1)], [event(4), event(2), event(1)], { limit: 3, max: 10 });
    expect(times(items)).toEqual([4, 3, 2, 1]);
    expect(isComplete).toBe(true);
  });

  it("returns the same list if nothing is new", () => {
    const known = [event(3), event(1)];
    expect(mergeEvents(known, [event(3)], { limit: 5, max: 10 }).items).toBe(known);
  });

  it("drops the oldest beyond the maximum", () => {
    expect(times(mergeEvents([event(3), event(2)], [event(5), event(4)], { limit: 5, max: 3 }).items)).toEqual([5, 4, 3]);
  });

  it("reports a gap if a full answer contains no known event", () => {
    expect(mergeEvents([event(1)], [event(9), event(8)], { limit: 2, max: 10 }).isComplete).toBe(false);
    expect(mergeEvents([event(1)], [event(9)], { limit: 2, max: 10 }).isComplete).toBe(true);
    expect(mergeEvents([], [event(9), event(8)], { limit: 2, max: 10 }).isComplete).toBe(true);
  });
});
