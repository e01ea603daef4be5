import { describe, expect, it } from "vitest";
import type { AccountClient, Stretch } from "../src/api/types";
import { bytesOf, isZero, parseSums, partsOf, ratioOf, shareOf, sumOf, verdictOf } from "../src/pages/users/sums";

describe("sums", () => {
  it("are exact beyond the precision of a double", () => {
    const moved = parseSums({ uploaded: "9007199254740993", downloaded: "-1" });
    expect(sumOf([moved, moved])).toEqual({ uploaded: 18014398509481986n, downloaded: -2n });
    expect(isZero(sumOf([]))).toBe(true);
  });

  it("treat invalid texts as 0", () => {
    expect(bytesOf("12px")).toBe(0n);
    expect(bytesOf(null)).toBe(0n);
  });
});

describe("a ratio", () => {
  it("is null without download", () => {
    expect(ratioOf("100", "0")).toBeNull();
    expect(ratioOf("3", "2")).toBe(1.5);
    expect(ratioOf("36893488147419103232", "18446744073709551616")).toBe(2);
  });
});

describe("a share", () => {
  it("is 1 only if nothing is left", () => {
    expect(shareOf("0", "0")).toBe(1);
    expect(shareOf("1", "1000000000")).toBe(0.9999);
    expect(shareOf("50", "100")).toBe(0.5);
    expect(shareOf("500", "100")).toBe(0);
    expect(shareOf(null, "100")).toBeNull();
    expect(shareOf("5", "0")).toBeNull();
  });
});

describe("the parts of a client", () => {
  const nothing = { uploaded: "0", downloaded: "0" };
  const stretch: Stretch = {
    first: 100, last: 200, uploaded_low: "5", uploaded_high: "18014398509481990", downloaded_low: "0", downloaded_high: "7",
    nodes: 1, is_settled: false, bridged: null,
    uploaded: "18014398509481985", downloaded: "7", withheld_uploaded: "0", withheld_downloaded: "0",
  };
  const client = (more: Partial<AccountClient>): AccountClient => ({
    id: "0123456789abcdef", state: "seeding", last_seen: 200, total: nothing, settled: nothing, foreign: nothing, withheld: nothing, stretches: [], ...more,
  });

  it("are runs and bridged gaps", () => {
    const bridged = { uploaded: "10", downloaded: "0", withheld_uploaded: "3", withheld_downloaded: "0" };
    const later = { ...stretch, first: 300, last: 400, uploaded_low: "18014398509482003", uploaded_high: "18014398509482004", downloaded_low: "7", uploaded: "1", downloaded: "0", bridged };
    const parts = partsOf(client({ stretches: [stretch, later] }));
    expect(parts.map((part) => [part.kind, part.from, part.to, part.uploaded])).toEqual([
      ["counters", 100, 200, 18014398509481985n],
      ["bridged", 200, 300, 10n],
      ["counters", 300, 400, 1n],
    ]);
    expect(parts[1]?.withheld.uploaded).toBe(3n);
    expect(sumOf(parts)).toEqual({ uploaded: 18014398509481996n, downloaded: 7n });
  });

  it("mark a restart, with no bytes", () => {
    const parts = partsOf(client({ stretches: [stretch, { ...stretch, first: 300, last: 400 }] }));
    expect(parts.map((part) => part.kind)).toEqual(["counters", "restarted", "counters"]);
    expect(isZero(parts[1] ?? { uploaded: 1n, downloaded: 1n })).toBe(true);
  });

  it("include merged runs as a sum", () => {
    const end = { ...stretch, uploaded_low: stretch.uploaded_high, downloaded_low: stretch.downloaded_high, is_settled: true };
    const sums = { settled: { uploaded: "40", downloaded: "0" }, foreign: { uploaded: "0", downloaded: "2" } };
    const parts = partsOf(client({ ...sums, stretches: [end] }));
    expect(parts.map((part) => [part.kind, part.uploaded, part.downloaded])).toEqual([["settled", 40n, 0n], ["foreign", 0n, 2n]]);
  });
});

describe("the comparison", () => {
  const moved = (uploaded: bigint) => ({ uploaded, downloaded: 1n });
  it("is exact if the sum equals the figures before or after", () => {
    expect(verdictOf(moved(5n), moved(5n), moved(5n), true)).toBe("exact");
    expect(verdictOf(moved(5n), moved(4n), moved(5n), true)).toBe("exact");
    expect(verdictOf(moved(5n), moved(5n), moved(5n), false)).toBe("unread");
  });
  it("reports no difference while announces are counted", () => {
    expect(verdictOf(moved(5n), moved(4n), moved(6n), true)).toBe("moving");
    expect(verdictOf(moved(5n), moved(6n), moved(6n), true)).toBe("differs");
  });
});
