// Short messages at the edge of the page: success or failure of an action.
import { signal } from "@preact/signals";
import { asProblem } from "../api/client";
import type { Tone } from "./badge";
import { words } from "./texts";

interface Toast {
  id: number;
  text: string;
  tone: Tone;
}

const shown = signal<readonly Toast[]>([]);
const SHOWN_MAX = 4;
let nextId = 1;

/** Errors stay longer. */
export function toast(text: string, tone: Tone = "ok"): void {
  const id = nextId++;
  shown.value = [...shown.value, { id, text, tone }].slice(-SHOWN_MAX);
  setTimeout(() => dismiss(id), tone === "bad" ? 12_000 : 5000);
}

export function toastProblem(thrown: unknown): void {
  const problem = asProblem(thrown);
  toast(problem.isUnreachable ? words.unreachable : problem.detail || words.failed, "bad");
}

/** Runs `work` and shows the outcome. Returns whether it succeeded. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
  } catch (thrown) {
    toastProblem(thrown);
    return false;
  }
  if (done) toast(done);
  return true;
}

function dismiss(id: number): void {
  shown.value = shown.value.filter((one) => one.id !== id);
}

/** Renders the messages; once per page. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((one) => (
        <div key={one.id} class={`toast tone-${one.tone}`}>
          <span>{one.text}</span>
          <button type="button" class="toast-close" aria-label={words.dismiss} onClick={() => dismiss(one.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
