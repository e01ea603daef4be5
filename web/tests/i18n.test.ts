import { afterEach, describe, expect, it } from "vitest";
import { language, languageFor, locale, translate, setLanguage, texts } from "../src/i18n";

afterEach(() => setLanguage("en"));

const t = texts({
  en: { users: "Users", found: (n: number) => `${n} found` },
  zh: { users: "用户", found: (n) => `找到 ${n} 个` },
});

describe("texts", () => {
  it("are of the current language", () => {
    expect(t.users).toBe("Users");
    expect(t.found(3)).toBe("3 found");
    setLanguage("zh");
    expect(t.users).toBe("用户");
    expect(t.found(3)).toBe("找到 3 个");
    expect(locale()).toBe("zh-CN");
    expect(language.value).toBe("zh");
  });

  it("return unknown values of the server unchanged", () => {
    const causes = texts({ en: { dropped: "lost" }, zh: { dropped: "断线" } });
    expect(translate(causes, "dropped")).toBe("lost");
    expect(translate(causes, "brand_new")).toBe("brand_new");
  });
});

describe("the initial language", () => {
  it("is the first supported one of the browser", () => {
    expect(languageFor(["zh-TW", "en"])).toBe("zh");
    expect(languageFor(["de-DE", "en-GB", "zh"])).toBe("en");
    expect(languageFor(["de", "ZH-hans-CN"])).toBe("zh");
    expect(languageFor(["de"])).toBe("en");
    expect(languageFor([])).toBe("en");
  });
});
