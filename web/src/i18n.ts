// Texts in two languages; the compiler checks that both have every key.
//
//     const t = texts({
//       en: { title: "Users", found: (n: number) => `${n} found` },
//       zh: { title: "用户", found: (n) => `找到 ${n} 个` },
//     });
//     <h1>{t.title}</h1>
//
// Reading a text reads the language signal, so components render again when the language changes. Do not keep a text in a
// constant outside of a component.
import { effect, signal } from "@preact/signals";
import { load, save } from "./storage";

export type Language = "en" | "zh";

const KEY = "rollcall.language";

/** First supported language of the browser's list. */
export function languageFor(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const name = tag.toLowerCase().split("-")[0];
    if (name === "zh" || name === "en") return name;
  }
  return "en";
}

function chosen(): Language {
  const before = load(KEY);
  if (before === "en" || before === "zh") return before;
  return languageFor(typeof navigator === "undefined" ? [] : (navigator.languages ?? [navigator.language]));
}

export const language = signal<Language>(chosen());

/** Stored in this browser. */
export function setLanguage(next: Language): void {
  language.value = next;
  save(KEY, next);
}

/** BCP 47 tag of the current language. */
export function locale(): string {
  return language.value === "zh" ? "zh-CN" : "en";
}

if (typeof document !== "undefined") {
  effect(() => {
    document.documentElement.lang = locale();
  });
}

type Text = string | ((...args: never[]) => string);
type Texts<T> = { readonly [K in keyof T]: T[K] extends string ? string : T[K] };

/** Returns the texts of the current language. */
export function texts<T extends Record<string, Text>>(both: { en: T; zh: NoInfer<Texts<T>> }): Texts<T> {
  return new Proxy({} as Texts<T>, {
    get: (_, key) => (both[language.value] as Record<PropertyKey, unknown>)[key],
    has: (_, key) => key in both.en,
  });
}

/** The text for a value of the API; unknown values are returned unchanged. */
export function translate<T extends Record<string, string>>(t: T, word: string): string {
  return word in t ? (t[word] as string) : word;
}
