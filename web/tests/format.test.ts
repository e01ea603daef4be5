import { afterEach, describe, expect, it } from "vitest";
import * as format from "../src/format";
import { setLanguage } from "../src/i18n";

afterEach(() => setLanguage("en"));

describe("bytes", () => {
  it("has three significant digits", () => {
    expect(format.bytes(0)).toBe("0 B");
    expect(format.bytes("1023")).toBe("1,023 B");
    expect(format.bytes(1024)).toBe("1.00 KiB");
    expect(format.bytes("1567890123")).toBe("1.46 GiB");
    expect(format.bytes(10 * 1024 * 1024)).toBe("10.0 MiB");
    expect(format.bytes(250 * 1024 ** 3)).toBe("250 GiB");
  });

  it("never writes 1,024 of a unit", () => {
    expect(format.bytes(1024 * 1024 - 1)).toBe("1.00 MiB");
  });

  it("is exact beyond the precision of a double", () => {
    expect(format.bytesExact("18446744073709551615")).toBe("18,446,744,073,709,551,615 B");
  });

  it("has a placeholder for missing values", () => {
    expect(format.bytes(null)).toBe(format.NOTHING);
    expect(format.bytes("what")).toBe(format.NOTHING);
    expect(format.bytesExact(undefined)).toBe(format.NOTHING);
  });

  it("supports negative values", () => {
    expect(format.bytes("-2048")).toBe("−2.00 KiB");
  });
});

describe("counts and rates", () => {
  it("has all digits below a million, and three above", () => {
    expect(format.count(999_999)).toBe("999,999");
    expect(format.count("12345678")).toBe("12.3M");
    expect(format.countExact("12345678")).toBe("12,345,678");
  });

  it("follows the language", () => {
    setLanguage("zh");
    expect(format.count(12_345_678)).toBe("1230万");
    expect(format.duration(3700)).toBe("1小时 1分钟");
  });

  it("has a decimal only for small rates", () => {
    expect(format.rate(0)).toBe("0/s");
    expect(format.rate(0.44)).toBe("0.4/s");
    expect(format.rate(1204.4)).toBe("1,204/s");
    expect(format.rate(Number.NaN)).toBe(format.NOTHING);
  });

  it("has a ratio without download", () => {
    expect(format.ratio(2.414)).toBe("2.41");
    expect(format.ratio(Number.POSITIVE_INFINITY)).toBe("∞");
    expect(format.ratio(null)).toBe(format.NOTHING);
  });
});

describe("times", () => {
  it("are relative, in one unit", () => {
    expect(format.relative(1000, 1000)).toBe("now");
    expect(format.relative(1000, 1045)).toBe("45 sec. ago");
    expect(format.relative(1000, 1000 + 3 * 3600 + 5)).toBe("3 hr. ago");
    expect(format.relative(1000 + 86_400 * 2, 1000)).toBe("in 2 days");
  });

  it("are durations in two units", () => {
    expect(format.duration(0)).toBe("0 s");
    expect(format.duration(0.01)).toBe("0 s");
    expect(format.duration(2.44)).toBe("2.4 s");
    expect(format.duration(65)).toBe("1 min 5 s");
    expect(format.duration(3600)).toBe("1 h");
    expect(format.duration(93_784)).toBe("1 d 2 h");
  });

  it("accept impossible dates", () => {
    expect(format.absolute(1e18)).toBe(format.NOTHING);
    expect(format.clockTime(Number.NaN)).toBe(format.NOTHING);
  });
});
