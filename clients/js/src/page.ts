/**
 * App state of a page: `background` if hidden, `inactive` if visible without input for a while, else `foreground`. Also
 * reports when the page is closed, so that the connection can be closed first.
 */

import type { AppState } from "./protocol.js";

/** The part of `window` that is used. */
export interface WindowLike {
  addEventListener(type: string, listener: (event: Event) => void, options?: AddEventListenerOptions): void;
  removeEventListener(type: string, listener: (event: Event) => void, options?: EventListenerOptions): void;
}

/** The part of `document` that is used. */
export interface DocumentLike extends WindowLike {
  readonly visibilityState: string;
}

export interface Page {
  readonly window: WindowLike;
  readonly document: DocumentLike;
}

export interface PageEvents {
  onState(state: AppState): void;
  /** The page is being hidden or closed. */
  onClose(): void;
  /** Restored from the back-forward cache. */
  onRestore(): void;
}

const INPUTS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart", "scroll"];

/** Null outside of a browser. */
export function currentPage(): Page | null {
  const { window, document } = globalThis as Partial<Page>;
  return window !== undefined && document !== undefined ? { window, document } : null;
}

/** Observes from construction until `stop`. */
export class PageObserver {
  readonly #page: Page;
  readonly #idleMs: number;
  readonly #events: PageEvents;
  #state: AppState;
  #lastInputAt: number;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(page: Page, idleMs: number, events: PageEvents) {
    this.#page = page;
    this.#idleMs = idleMs;
    this.#events = events;
    this.#lastInputAt = Date.now();
    this.#state = this.#isHidden() ? "background" : "foreground";
    page.document.addEventListener("visibilitychange", this.#onVisibility);
    page.window.addEventListener("pagehide", this.#onPageHide);
    page.window.addEventListener("pageshow", this.#onPageShow);
    for (const input of INPUTS) {
      page.window.addEventListener(input, this.#onInput, { capture: true, passive: true });
    }
    this.#waitForIdle();
  }

  get state(): AppState {
    return this.#state;
  }

  stop(): void {
    this.#page.document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#page.window.removeEventListener("pagehide", this.#onPageHide);
    this.#page.window.removeEventListener("pageshow", this.#onPageShow);
    for (const input of INPUTS) {
      this.#page.window.removeEventListener(input, this.#onInput, { capture: true });
    }
    this.#clearTimer();
  }

  #isHidden(): boolean {
    return this.#page.document.visibilityState === "hidden";
  }

  readonly #onVisibility = (): void => {
    if (this.#isHidden()) {
      this.#clearTimer();
      this.#setState("background");
    } else {
      this.#onInput();
    }
  };

  /** Called on each mouse move: must be cheap. */
  readonly #onInput = (): void => {
    this.#lastInputAt = Date.now();
    if (this.#state === "foreground" || this.#isHidden()) return;
    this.#setState("foreground");
    this.#waitForIdle();
  };

  readonly #onPageHide = (): void => this.#events.onClose();

  readonly #onPageShow = (event: Event): void => {
    if ((event as PageTransitionEvent).persisted === true) this.#events.onRestore();
  };

  /** One timer that checks the time of the last input, instead of a new one per input. */
  #waitForIdle(): void {
    this.#clearTimer();
    if (this.#isHidden() || this.#idleMs <= 0) return;
    const left = this.#lastInputAt + this.#idleMs - Date.now();
    if (left <= 0) {
      this.#setState("inactive");
      return;
    }
    this.#timer = setTimeout(() => this.#waitForIdle(), left);
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #setState(state: AppState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#events.onState(state);
  }
}
