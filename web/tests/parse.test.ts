import { describe, expect, it } from "vitest";
import { portsText, parseId, parseInfohash, parsePasskey, parsePasskeys, parsePercent, parsePorts, parsePrefix } from "../src/pages/access/parse";

describe("form fields of the access page", () => {
  it("accept ids that a double holds", () => {
    expect(parseId(" 42 ")).toBe(42);
    for (const bad of ["", "0", "-1", "1.5", "7a", "9007199254740993", "99999999999999999999"]) expect(parseId(bad)).toBeNull();
  });

  it("accept passkeys and infohashes in upper and lower case", () => {
    expect(parsePasskey("ABCDEF01")).toBe("abcdef01");
    expect(parsePasskey("abc")).toBeNull();
    expect(parsePasskey("g".repeat(32))).toBeNull();
    expect(parseInfohash("A".repeat(40))).toBe("a".repeat(40));
    expect(parseInfohash("a".repeat(39))).toBeNull();
  });

  it("accept a port or an ascending range", () => {
    expect(parsePorts("6881")).toEqual({ first: 6881, last: 6881 });
    expect(parsePorts(" 6881 - 6889 ")).toEqual({ first: 6881, last: 6889 });
    for (const bad of ["", "0", "65536", "9-8", "a", "1-", "1-2-3"]) expect(parsePorts(bad)).toBeNull();
    expect(portsText({ first: 1, last: 2 })).toBe("1–2");
    expect(portsText({ first: 5, last: 5 })).toBe("5");
  });

  it("accept the prefixes of the server", () => {
    expect(parsePrefix("-TR3")).toBe("-TR3");
    expect(parsePrefix("hex:00ff")).toBe("hex:00ff");
    for (const bad of ["", "hex:0", "hex:zz", "x".repeat(21), "é"]) expect(parsePrefix(bad)).toBeNull();
  });

  it("accept percentages up to 10000", () => {
    expect(parsePercent("0")).toBe(0);
    expect(parsePercent("10000")).toBe(10_000);
    for (const bad of ["", "-1", "10001", "1.5"]) expect(parsePercent(bad)).toBeNull();
  });

  it("accept a list of passkeys, or return the invalid line", () => {
    expect(parsePasskeys("# ours\nABCDEF01\r\n\n 12345678 \n")).toEqual({ passkeys: ["abcdef01", "12345678"] });
    expect(parsePasskeys("abcdef01\nwhat\n")).toEqual({ badLine: 2 });
    expect(parsePasskeys("")).toEqual({ passkeys: [] });
  });
});
