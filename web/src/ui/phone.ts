// Phone width, at which table rows become cards (styles/table.css).
import { signal } from "@preact/signals";

export const isPhone = signal(false);

if (typeof matchMedia !== "undefined") {
  const narrow = matchMedia("(max-width: 640px)");
  isPhone.value = narrow.matches;
  narrow.addEventListener("change", () => {
    isPhone.value = narrow.matches;
  });
}
