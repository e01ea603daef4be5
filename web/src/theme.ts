// Light, dark, or as the system has it.
import { effect, signal } from "@preact/signals";
import { keep, kept } from "./storage";

/** What can be chosen. */
export type Theme = "system" | "light" | "dark";

const KEY = "rollcall.theme";
const before = kept(KEY);
const systemIsDark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");
const system = signal(systemIsDark?.matches ?? false);
systemIsDark?.addEventListener("change", (event) => {
  system.value = event.matches;
});

/** What was chosen. */
export const theme = signal<Theme>(before === "light" || before === "dark" ? before : "system");

/** Changes the theme, for this browser and from now on. */
export function setTheme(next: Theme): void {
  theme.value = next;
  keep(KEY, next);
}

/** Whether it is dark now. */
export function isDark(): boolean {
  return theme.value === "system" ? system.value : theme.value === "dark";
}

if (typeof document !== "undefined") {
  effect(() => {
    document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  });
}
