import { describe, expect, it } from "vitest";
import { bytesOf, ratioOf, shareOf, sumsOf, verdictOf } from "../src/pages/users/sums";

describe("sums", () => {
  it("are exact above what a floating-point number holds", () => {
    const entry = { uploaded_delta: "9007199254740993", downloaded_delta: "1" };
    const sums = sumsOf([entry, entry]);
    expect(sums.uploaded).toBe(18014398509481986n);
    expect(sums.downloaded).toBe(2n);
  });

  it("say nothing of credit as soon as one entry does not", () => {
    const told = { uploaded_delta: "1", downloaded_delta: "1", credited_uploaded: "2", credited_downloaded: "0" };
    expect(sumsOf([told]).credited_uploaded).toBe(2n);
    expect(sumsOf([told, { ...told, credited_uploaded: null }]).credited_uploaded).toBeNull();
    expect(sumsOf([told, { ...told, credited_uploaded: null }]).credited_downloaded).toBe(0n);
  });

  it("take nonsense for nothing", () => {
    expect(bytesOf("12px")).toBe(0n);
    expect(bytesOf(null)).toBe(0n);
  });
});

describe("a ratio", () => {
  it("is none where nothing was downloaded", () => {
    expect(ratioOf("100", "0")).toBeNull();
    expect(ratioOf("3", "2")).toBe(1.5);
    expect(ratioOf("36893488147419103232", "18446744073709551616")).toBe(2);
  });
});

describe("a share", () => {
  it("is whole only when nothing is left", () => {
    expect(shareOf("0", "0")).toBe(1);
    expect(shareOf("1", "1000000000")).toBe(0.9999);
    expect(shareOf("50", "100")).toBe(0.5);
    expect(shareOf("500", "100")).toBe(0);
    expect(shareOf(null, "100")).toBeNull();
    expect(shareOf("5", "0")).toBeNull();
  });
});

describe("a verdict", () => {
  const looked = { isComplete: true, since: 100, firstSeen: 200 };
  it("is exact only when everything was looked at", () => {
    expect(verdictOf(5n, 5n, looked)).toBe("exact");
    expect(verdictOf(5n, 5n, { ...looked, isComplete: false })).toBe("unread");
  });
  it("says that the beginning is gone, where it is", () => {
    expect(verdictOf(5n, 9n, { ...looked, firstSeen: 50 })).toBe("gone");
    expect(verdictOf(0n, 9n, { ...looked, since: null })).toBe("gone");
    expect(verdictOf(5n, 9n, looked)).toBe("differs");
  });
  it("lets rounding pass, and what cannot be told", () => {
    expect(verdictOf(5n, 6n, looked, 1n)).toBe("exact");
    expect(verdictOf(5n, 7n, looked, 1n)).toBe("differs");
    expect(verdictOf(null, 7n, looked)).toBe("exact");
  });
});
