import { afterEach, describe, expect, it } from "vitest";
import { language } from "../src/i18n";
import { componentName, deadLetterReason } from "../src/server-texts";

afterEach(() => {
  language.value = "en";
});

describe("texts of the server", () => {
  it("are unchanged in English", () => {
    expect(deadLetterReason("no user has this passkey")).toBe("no user has this passkey");
    expect(componentName("register")).toBe("presence cluster");
  });

  it("are translated to Chinese, with their values", () => {
    language.value = "zh";
    expect(deadLetterReason('du: expected a whole number from 0 to 18446744073709551615, found "x"')).toBe("du：应为0 到 18446744073709551615 的整数，实为“x”");
    expect(deadLetterReason("no torrent has the infohash 00ff")).toBe("没有 infohash 为 00ff 的种子");
    expect(deadLetterReason("passkey: the field is missing")).toBe("passkey：缺少该字段");
    expect(componentName("journal_queue")).toBe("流量日志队列");
  });

  it("are shown unchanged if unknown", () => {
    language.value = "zh";
    expect(deadLetterReason("a reason of a later version")).toBe("a reason of a later version");
    expect(componentName("another")).toBe("another");
  });
});
