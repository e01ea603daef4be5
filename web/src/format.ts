// Numbers, sizes and times in the current language, each with an exact form.
//
// Bytes are decimal strings that may exceed a double: exact forms do not convert them.
import { locale } from "./i18n";

const formatters = new Map<string, unknown>();

// Creating an Intl formatter is slow; using one is not.
function once<T>(name: string, make: (tag: string) => T): T {
  const tag = locale();
  const key = `${tag} ${name}`;
  let known = formatters.get(key) as T | undefined;
  if (known === undefined) {
    known = make(tag);
    formatters.set(key, known);
  }
  return known;
}

/** May be too large for a double. */
export type Whole = string | number | bigint;

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"];

/** Placeholder for a missing value. */
export const NOTHING = "–";

function decimal(value: number, digits: number): string {
  return once(`decimal${digits}`, (tag) => new Intl.NumberFormat(tag, { maximumFractionDigits: digits, minimumFractionDigits: digits })).format(value);
}

/** `1.46 GiB`: three significant digits. */
export function bytes(value: Whole | null | undefined): string {
  const amount = number(value);
  if (amount === null) return NOTHING;
  let scaled = Math.abs(amount);
  let unit = 0;
  // 1023.5 would be shown as 1,024: use the next unit.
  while (scaled >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  const digits = unit === 0 ? (Number.isInteger(scaled) ? 0 : 1) : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return `${amount < 0 ? "−" : ""}${decimal(scaled, digits)} ${BYTE_UNITS[unit]}`;
}

/** `1,567,890,123 B`, to the last byte. */
export function bytesExact(value: Whole | null | undefined): string {
  return value === null || value === undefined ? NOTHING : `${countExact(value)} B`;
}

/** `12.3 MiB/s`. */
export function byteRate(perSecond: number | null | undefined): string {
  return perSecond === null || perSecond === undefined ? NOTHING : `${bytes(Math.round(perSecond))}/s`;
}

/** `12,345`, and `1.23M` from a million on. */
export function count(value: Whole | null | undefined): string {
  const amount = number(value);
  if (amount === null) return NOTHING;
  if (Math.abs(amount) < 1_000_000) return countExact(value as Whole);
  return once("compact", (tag) => new Intl.NumberFormat(tag, { notation: "compact", maximumSignificantDigits: 3 })).format(amount);
}

/** `12,345,678`, to the last digit. */
export function countExact(value: Whole | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  const whole = once("whole", (tag) => new Intl.NumberFormat(tag, { maximumFractionDigits: 3 }));
  if (typeof value !== "string") return whole.format(value);
  return /^-?\d{1,60}$/.test(value) ? whole.format(BigInt(value)) : value;
}

/** `0.4/s`, `87/s`, `1,204/s`. */
export function rate(perSecond: number | null | undefined): string {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return NOTHING;
  return rateWith(perSecond, perSecond !== 0 && Math.abs(perSecond) < 10 ? 1 : 0);
}

/** With this many decimals. */
export function rateWith(perSecond: number, digits: number): string {
  return `${decimal(perSecond, digits)}/s`;
}

/** `1 torrent`, `1,204 torrents`: for English. Chinese has no plural. */
export function counted(value: Whole, one: string, many = `${one}s`): string {
  return `${count(value)} ${number(value) === 1 ? one : many}`;
}

/** `2.41`. */
export function ratio(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  return Number.isFinite(value) ? decimal(value, 2) : "∞";
}

/** `42 %`, of a share from 0 to 1. */
export function percent(share: number | null | undefined, digits = 0): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NOTHING;
  return once(`percent${digits}`, (tag) => new Intl.NumberFormat(tag, { style: "percent", maximumFractionDigits: digits })).format(share);
}

/** `850 ms`, `2.4 s`. */
export function millis(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return NOTHING;
  return ms < 1000 ? `${decimal(ms, ms < 10 && ms > 0 ? 1 : 0)} ms` : `${decimal(ms / 1000, ms < 10_000 ? 1 : 0)} s`;
}

const SPANS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** `3 minutes ago`, `in 2 days`. */
export function relative(at: number, now: number): string {
  const away = at - now;
  if (Math.abs(away) < 2) return once("now", (tag) => new Intl.RelativeTimeFormat(tag, { numeric: "auto" })).format(0, "second");
  for (const [unit, length] of SPANS) {
    if (Math.abs(away) >= length) {
      const whole = Math.trunc(away / length);
      return once("relative", (tag) => new Intl.RelativeTimeFormat(tag, { numeric: "always", style: "short" })).format(whole, unit);
    }
  }
  return NOTHING;
}

/** Full date and time in local time. */
export function absolute(at: number): string {
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return NOTHING;
  return once("absolute", (tag) => new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeStyle: "long" })).format(date);
}

/** `14:05:09`. */
export function clockTime(atMs: number): string {
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return NOTHING;
  return once("clock", (tag) => new Intl.DateTimeFormat(tag, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false })).format(date);
}

/** `11/16, 14:05`. */
export function dayTime(atMs: number): string {
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return NOTHING;
  const make = (tag: string) => new Intl.DateTimeFormat(tag, { month: "numeric", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
  return once("dayTime", make).format(date);
}

const PARTS_EN = [" d", " h", " min", " s"];
const PARTS_ZH = ["天", "小时", "分钟", "秒"];

/** `3 d 4 h`, `12 min 5 s`: the two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NOTHING;
  const isChinese = locale() === "zh-CN";
  const names = isChinese ? PARTS_ZH : PARTS_EN;
  if (seconds >= 0.05 && seconds < 10 && !Number.isInteger(seconds)) return `${decimal(seconds, 1)}${names[3]}`;
  let rest = Math.max(0, Math.round(seconds));
  const lengths = [86_400, 3600, 60, 1];
  const parts: string[] = [];
  for (const [index, length] of lengths.entries()) {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    if (whole > 0) parts.push(`${whole}${names[index]}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(" ") : `0${names[3]}`;
}

/** Nearest double; null if missing or not a number. */
export function number(value: Whole | null | undefined): number | null {
  if (value === null || value === undefined || value === "") return null;
  const amount = Number(value);
  return Number.isNaN(amount) ? null : amount;
}
