import { describe, expect, it } from "vitest";
import type { PresenceOccurrence } from "../src/api/types";
import { merged } from "../src/events";

const event = (at_ms: number, user = 1): PresenceOccurrence => ({ at_ms, user, event: "joined", from: "offline", to: "online", cause: "connected" });

describe("events from the feed and from asking", () => {
  it("become one list, newest first, nothing twice", () => {
    const known = [event(3), event(1)];
    expect(merged(known, [event(1), event(2), event(4)], 10).map((one) => one.at_ms)).toEqual([4, 3, 2, 1]);
  });

  it("stay the same list when nothing is new", () => {
    const known = [event(3), event(1)];
    expect(merged(known, [event(3)], 10)).toBe(known);
  });

  it("are at most so many, and the oldest go", () => {
    expect(merged([event(3), event(2)], [event(5), event(4)], 3).map((one) => one.at_ms)).toEqual([5, 4, 3]);
  });
});
