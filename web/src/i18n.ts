// Two languages, and the compiler as the one who checks that neither lacks a word.
//
//     const t = texts({
//       en: { title: "Users", found: (n: number) => `${n} found` },
//       zh: { title: "用户", found: (n) => `找到 ${n} 个` },
//     });
//     <h1>{t.title}</h1>
//
// A text is looked up when it is shown, and looking reads a signal: when the language changes, what shows a text renders
// again. So never keep a text in a constant outside of a component.
import { effect, signal } from "@preact/signals";
import { keep, kept } from "./storage";

/** The languages there are. */
export type Language = "en" | "zh";

const KEY = "rollcall.language";

/** The language that fits best what a browser asks for. */
export function languageFor(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const name = tag.toLowerCase().split("-")[0];
    if (name === "zh" || name === "en") return name;
  }
  return "en";
}

function chosen(): Language {
  const before = kept(KEY);
  if (before === "en" || before === "zh") return before;
  return languageFor(typeof navigator === "undefined" ? [] : (navigator.languages ?? [navigator.language]));
}

/** The language in use. */
export const language = signal<Language>(chosen());

/** Changes the language, for this browser and from now on. */
export function setLanguage(next: Language): void {
  language.value = next;
  keep(KEY, next);
}

/** The language in use, as Intl and HTML know it. */
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

/** A set of texts in both languages; what comes out speaks the one in use. */
export function texts<T extends Record<string, Text>>(both: { en: T; zh: NoInfer<Texts<T>> }): Texts<T> {
  return new Proxy({} as Texts<T>, {
    get: (_, key) => (both[language.value] as Record<PropertyKey, unknown>)[key],
    has: (_, key) => key in both.en,
  });
}

/** The text for a word that the server chose, or the word itself where it is a new one. */
export function say<T extends Record<string, string>>(t: T, word: string): string {
  return word in t ? (t[word] as string) : word;
}
