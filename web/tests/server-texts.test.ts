import { afterEach, describe, expect, it } from "vitest";
import entry from "../../crates/journal/src/entry.rs?raw";
import admit from "../../crates/ledger/src/admit.rs?raw";
import post from "../../crates/ledger/src/post.rs?raw";
import { language } from "../src/i18n";
import { componentName, deadLetterReason } from "../src/server-texts";

afterEach(() => {
  language.value = "en";
});

describe("texts of the server", () => {
  it("are unchanged in English", () => {
    expect(deadLetterReason("no user has this passkey")).toBe("no user has this passkey");
    expect(componentName("presence_cluster")).toBe("presence cluster");
  });

  it("are translated to Chinese, with their values", () => {
    language.value = "zh";
    expect(deadLetterReason('du: expected a whole number from 0 to 18446744073709551615, found "x"')).toBe("du：应为 0 到 18446744073709551615 的整数，实为“x”");
    expect(deadLetterReason("no torrent has the infohash 00ff")).toBe("没有 infohash 为 00ff 的种子");
    expect(deadLetterReason("passkey: the field is missing")).toBe("passkey：缺少该字段");
    expect(componentName("journal_queue")).toBe("流量日志队列");
  });

  it("are shown unchanged if unknown", () => {
    language.value = "zh";
    expect(deadLetterReason("a reason of a later version")).toBe("a reason of a later version");
    expect(componentName("another")).toBe("another");
  });

  it("are translated for every reason that the server has", () => {
    language.value = "zh";
    const errors = [...entry.matchAll(/#\[error\(\s*"((?:[^"\\]|\\.)*)"/g)].map((match) => match[1] ?? "");
    const reasons = [...(admit + post).matchAll(/"((?:no (?:user|torrent)|ts: )[^"]*)"/g)].map((match) => match[1] ?? "");
    const expected = [...entry.matchAll(/(?:optional|required)\([^()]*, "([^"]+)"\)|: &str = "([^"]+)"/g)].map((match) => match[1] ?? match[2] ?? "");
    expect([errors.length >= 5, reasons.length >= 3, expected.length >= 8], `${errors} ${reasons} ${expected}`).toEqual([true, true, true]);
    const samples = expected.map((text) => `du: expected ${text}, found "x"`);
    for (const reason of [...errors, ...reasons].map((text) => text.replaceAll('\\"', '"').replace(/\{[^}]*\}/g, "x")).concat(samples)) {
      expect(deadLetterReason(reason)).not.toMatch(/expected|does not|there is|no (user|torrent)|than|[a-z]+ [a-z]+ [a-z]+/);
    }
  });
});
