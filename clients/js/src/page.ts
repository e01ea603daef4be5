/**
 * Whether somebody looks at the page. Hidden is `background`; visible without any input for a while is `inactive`;
 * otherwise `foreground`. A page that goes away is told apart, so that it can say goodbye.
 *
 * The page comes in as an argument: in a program without one the state is what the program says it is.
 */

import type { AppState } from "./words.js";

/** What is needed of `window`. */
export interface WindowLike {
  addEventListener(type: string, listener: (event: Event) => void, options?: AddEventListenerOptions): void;
  removeEventListener(type: string, listener: (event: Event) => void, options?: EventListenerOptions): void;
}

/** What is needed of `document`. */
export interface DocumentLike extends WindowLike {
  readonly visibilityState: string;
}

/** A page. */
export interface Page {
  readonly window: WindowLike;
  readonly document: DocumentLike;
}

/** What is told of a page. */
export interface PageEvents {
  /** Somebody looks, or no longer does. */
  onState(state: AppState): void;
  /** It is about to go: last chance for a goodbye. */
  onGoodbye(): void;
  /** It came back after all, from the browser's memory. */
  onReturn(): void;
}

const INPUTS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart", "scroll"];

/** The page this runs in, if it runs in one. */
export function presentPage(): Page | null {
  const { window, document } = globalThis as Partial<Page>;
  return window !== undefined && document !== undefined ? { window, document } : null;
}

/** Watches a page from the moment it is made until `stop`. */
export class PageWatch {
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

  /** What the page is now. */
  get state(): AppState {
    return this.#state;
  }

  /** Lets go of the page. */
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
      this.#become("background");
    } else {
      this.#onInput();
    }
  };

  /** Cheap, for it is called at each movement of the mouse. */
  readonly #onInput = (): void => {
    this.#lastInputAt = Date.now();
    if (this.#state === "foreground" || this.#isHidden()) return;
    this.#become("foreground");
    this.#waitForIdle();
  };

  readonly #onPageHide = (): void => this.#events.onGoodbye();

  readonly #onPageShow = (event: Event): void => {
    if ((event as PageTransitionEvent).persisted === true) this.#events.onReturn();
  };

  /** One timer that looks when the last input was, instead of one that is set anew at each. */
  #waitForIdle(): void {
    this.#clearTimer();
    if (this.#isHidden() || this.#idleMs <= 0) return;
    const left = this.#lastInputAt + this.#idleMs - Date.now();
    if (left <= 0) {
      this.#become("inactive");
      return;
    }
    this.#timer = setTimeout(() => this.#waitForIdle(), left);
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #become(state: AppState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#events.onState(state);
  }
}
