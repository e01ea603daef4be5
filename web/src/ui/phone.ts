// Whether the window is as narrow as a phone: there, rows of tables become cards (styles/table.css).
import { signal } from "@preact/signals";

/** Whether it is. */
export const isPhone = signal(false);

if (typeof matchMedia !== "undefined") {
  const narrow = matchMedia("(max-width: 640px)");
  isPhone.value = narrow.matches;
  narrow.addEventListener("change", () => {
    isPhone.value = narrow.matches;
  });
}
