// Light, dark or system theme.
import { effect, signal } from "@preact/signals";
import { load, save } from "./storage";

export type Theme = "system" | "light" | "dark";

const KEY = "rollcall.theme";
const before = load(KEY);
const systemIsDark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");
const system = signal(systemIsDark?.matches ?? false);
systemIsDark?.addEventListener("change", (event) => {
  system.value = event.matches;
});

export const theme = signal<Theme>(before === "light" || before === "dark" ? before : "system");

/** Stored in this browser. */
export function setTheme(next: Theme): void {
  theme.value = next;
  save(KEY, next);
}

export function isDark(): boolean {
  return theme.value === "system" ? system.value : theme.value === "dark";
}

if (typeof document !== "undefined") {
  effect(() => {
    document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  });
}
