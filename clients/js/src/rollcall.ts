/**
 * Presence for a page or a program: a thin layer over the published Centrifuge SDK.
 *
 * Friends are a live map, the app state follows the page, and lost connections are reopened with the SDK's backoff: one to
 * twenty seconds, with jitter. It stops only if the server says so; after ten failed attempts the state is stuck, so that the
 * page can inform its user.
 *
 * Deliberately absent: signing tokens (the site's back end does), storing messages, pings (the server pings, the SDK answers).
 */

import { Centrifuge } from "centrifuge";
import { deviceName, isDeviceName } from "./device.js";
import { Live, type LiveMap } from "./live.js";
import { currentPage, PageObserver, type Page } from "./page.js";
import { PendingStatus, type StatusRequest } from "./pending-status.js";
import { Room, type RoomOptions } from "./room.js";
import {
  readFeedMessage,
  type AppState,
  type DeclaredStatus,
  type OwnDevice,
  type Platform,
  type Privacy,
  type User,
} from "./protocol.js";
import { typingFields, TypingThrottle, Typists, type TypingNote, type TypingTarget } from "./typing.js";
import { UserStore } from "./user-store.js";

export interface ConnectionState {
  readonly kind: "connecting" | "connected" | "disconnected";
  /** Code and reason of the server or the SDK; absent at first. */
  readonly why?: { readonly code: number; readonly reason: string };
  /** Attempts since the last connection. */
  readonly tries: number;
  /** More than ten attempts failed. It continues to retry. */
  readonly isStuck: boolean;
}

export interface RollcallOptions {
  /** Fetches a token from the site's back end, at first and before the last one expires. */
  readonly getToken: () => Promise<string>;
  /** Device name; default: a random one per tab. */
  readonly device?: string;
  /** Default: `web`. */
  readonly platform?: Platform;
  /** Status of this session, unless the user has set one with `setStatus`. */
  readonly status?: DeclaredStatus;
  /** A visible page without input for this long is `inactive`. Default: five minutes; 0: never. */
  readonly idleMs?: number;
  /** WebSocket class for runtimes without one. */
  readonly websocket?: unknown;
  /** Page to observe; default: the current one. `null`: none, call `setAppState`. */
  readonly page?: Page | null;
  /** First reconnect delay, for tests. */
  readonly minReconnectDelayMs?: number;
}

const IDLE_MS = 5 * 60 * 1000;
const RECONNECT_MS_MIN = 1000;
const RECONNECT_MS_MAX = 20_000;
/** Attempts after which the state is stuck (P12). */
const TRIES_UNTIL_STUCK = 10;
/** Users per `track` command: limited by the server's message size. */
const TRACKED_PER_COMMAND = 500;
/** Retry delay after a temporary error. */
const RETRY_MS = 1000;

/** One connection of one user on one device. */
export class Rollcall {
  /** By id. Kept while disconnected; replaced by the next snapshot. */
  readonly friends: LiveMap<string, User>;
  /** Visible tracked users by id. */
  readonly tracked: LiveMap<string, User>;
  /** The connected user, as seen by their own devices: possibly `invisible`. */
  readonly me = new Live<User | null>(null);
  readonly state = new Live<ConnectionState>({ kind: "disconnected", tries: 0, isStuck: false });
  /** Users who type to the connected user or in a room. */
  readonly typists: LiveMap<string, TypingNote>;
  readonly device: string;
  /** The SDK client. */
  readonly centrifuge: Centrifuge;

  readonly #options: RollcallOptions;
  readonly #store = new UserStore((user) => this.me.set(user));
  readonly #typists = new Typists();
  readonly #typing = new TypingThrottle();
  readonly #pendingStatus = new PendingStatus();
  readonly #page: Page | null;
  #observer: PageObserver | null = null;
  #appState: AppState = "foreground";
  /** Last app state sent on this connection. */
  #sentAppState: AppState | null = null;
  /** Sent at connect, until `setStatus` or `clearStatus`. */
  #sessionStatus: DeclaredStatus | undefined;
  #tries = 0;
  #isFrozen = false;
  /** Number of the connection: work of an earlier one is abandoned. */
  #connections = 0;

  /** `url`: `wss://pt.example.com/connection/websocket`. */
  constructor(url: string, options: RollcallOptions) {
    this.#options = options;
    this.device = options.device ?? deviceName();
    if (!isDeviceName(this.device)) {
      throw new RangeError("a device is named by 1 to 64 visible ASCII characters without spaces");
    }
    this.friends = this.#store.friends;
    this.tracked = this.#store.tracked;
    this.typists = this.#typists.notes;
    this.#sessionStatus = options.status;
    this.#page = options.page === undefined ? currentPage() : options.page;
    this.centrifuge = new Centrifuge(url, {
      getToken: () => options.getToken(),
      getData: () => Promise.resolve(this.#connectData()),
      minReconnectDelay: options.minReconnectDelayMs ?? RECONNECT_MS_MIN,
      maxReconnectDelay: RECONNECT_MS_MAX,
      ...(options.websocket === undefined ? {} : { websocket: options.websocket }),
    });
    this.#listen();
  }

  /** Reconnects until `close`, or until the server forbids it. */
  connect(): void {
    this.#isFrozen = false;
    this.#startObserver();
    if (this.centrifuge.state === "disconnected") this.centrifuge.connect();
  }

  /** Sends a close frame first, so that friends see the change at once. */
  close(): void {
    this.#isFrozen = false;
    this.#observer?.stop();
    this.#observer = null;
    this.centrifuge.disconnect();
  }

  /**
   * Sets the user's status on all devices, until it is cleared, replaced or `until` (a date, or seconds since 1970). Without a
   * connection it is sent as soon as there is one. Resolves when the server has confirmed it.
   */
  setStatus(status: DeclaredStatus, details: { text?: string; until?: Date | number } = {}): Promise<void> {
    const { text, until } = details;
    const untilSeconds = until instanceof Date ? Math.floor(until.getTime() / 1000) : until;
    return this.#requestStatus({
      status,
      ...(text === undefined ? {} : { text }),
      ...(untilSeconds === undefined ? {} : { until: untilSeconds }),
    });
  }

  /** The status is derived from the devices again. */
  clearStatus(): Promise<void> {
    return this.#requestStatus(null);
  }

  /** For programs without a page. */
  setAppState(state: AppState): void {
    this.#appState = state;
    void this.#sendAppState();
  }

  /** May be called on each keystroke. */
  async typing(target: TypingTarget, on: boolean): Promise<void> {
    if (this.centrifuge.state !== "connected" || !this.#typing.admits(target, on, Date.now())) return;
    await this.rpc("typing", { ...typingFields(target), on });
  }

  /**
   * Adds users who are not friends to `tracked`, if they are visible. Kept across reconnects. If the server refuses, as for
   * too many, none of them is tracked.
   */
  async track(users: Iterable<string>): Promise<void> {
    const ids = this.#store.want(users);
    if (this.centrifuge.state !== "connected") return;
    try {
      await this.#track(ids);
    } catch (error) {
      // The next connection requests them.
      if (!this.#isConnected() && !isRefusal(error)) return;
      await this.untrack(ids).catch(() => {});
      throw error;
    }
  }

  async untrack(users: Iterable<string>): Promise<void> {
    const ids = [...new Set(users)];
    this.#store.untrack(ids);
    for (const part of chunks(ids)) {
      if (this.#isConnected()) await this.#untrack(part);
      this.#store.forget(part);
    }
  }

  async #untrack(ids: readonly string[]): Promise<void> {
    try {
      await this.rpc("untrack", { users: ids });
    } catch (error) {
      // A lost connection tracks nothing.
      if (this.#isConnected()) throw error;
    }
  }

  /** Visible state of these users, once. */
  async look(users: Iterable<string>): Promise<User[]> {
    const found: User[] = [];
    for (const part of chunks([...new Set(users)])) {
      const { users: seen } = await this.rpc<{ users?: User[] }>("status.get", { users: part });
      found.push(...(seen ?? []));
    }
    return found;
  }

  async devices(): Promise<OwnDevice[]> {
    const { devices } = await this.rpc<{ devices?: OwnDevice[] }>("devices.list", {});
    return devices ?? [];
  }

  /** Closes the connections of a device, which does not reconnect automatically. */
  async signOut(device: string): Promise<void> {
    await this.rpc("devices.sign_out", { device });
  }

  async privacy(): Promise<Privacy> {
    return this.rpc<Privacy>("privacy.get", {});
  }

  /** Missing fields are unchanged. */
  async setPrivacy(privacy: Partial<Privacy>): Promise<void> {
    await this.rpc("privacy.set", privacy);
  }

  room(name: string, options: RoomOptions = {}): Room {
    return new Room(this.centrifuge, name, options);
  }

  /** Sends any command. Waits a few seconds for a connection. */
  async rpc<T = unknown>(method: string, data: unknown): Promise<T> {
    const { data: result } = await this.centrifuge.rpc(method, data);
    return result as T;
  }

  #listen(): void {
    this.centrifuge.on("connecting", ({ code, reason }) => this.#onConnecting(code, reason));
    this.centrifuge.on("connected", () => this.#onConnected());
    this.centrifuge.on("disconnected", ({ code, reason }) => this.#onDisconnected(code, reason));
    this.centrifuge.on("error", ({ type }) => {
      // The site's back end returned no token: a failed attempt.
      if (type === "connectToken") this.#countTry();
    });
    this.centrifuge.on("subscribed", ({ channel }) => {
      const match = /^feed:#(.+)$/.exec(channel);
      if (match?.[1] !== undefined) this.#store.setSelf(match[1]);
    });
    this.centrifuge.on("publication", ({ channel, data }) => {
      if (channel.startsWith("feed:#")) this.#onFeed(data);
    });
  }

  #onFeed(data: unknown): void {
    const message = readFeedMessage(data);
    if (message?.type === "snapshot") this.#store.applySnapshot(message.users, message.more);
    else if (message?.type === "changes") this.#store.applyChanges(message.users, message.removed, message.more);
    else if (message?.type === "typing") this.#typists.apply(message.from, message.on, message.room);
  }

  #onConnecting(code: number, reason: string): void {
    this.#tries = 0;
    this.#forgetConnection();
    this.state.set({ kind: "connecting", why: { code, reason }, tries: 0, isStuck: false });
  }

  #onConnected(): void {
    this.#tries = 0;
    this.state.set({ kind: "connected", tries: 0, isStuck: false });
    // The app state may have changed while connecting.
    void this.#sendAppState();
    void this.#sendStatus();
    void this.#trackAgain([...this.#store.wanted], this.#connections);
  }

  #onDisconnected(code: number, reason: string): void {
    this.#forgetConnection();
    const open = this.#pendingStatus.open;
    // A page in the back-forward cache sends it after it is restored.
    if (open !== null && !this.#isFrozen) this.#pendingStatus.refuse(open.number, new Error(`disconnected: ${reason}`));
    this.state.set({ kind: "disconnected", why: { code, reason }, tries: this.#tries, isStuck: false });
  }

  #forgetConnection(): void {
    this.#sentAppState = null;
    this.#typing.clear();
    this.#typists.clear();
    this.#connections += 1;
    this.#store.forgetConnection();
  }

  /** Called by the SDK on each attempt. */
  #connectData(): Record<string, unknown> {
    this.#countTry();
    this.#sentAppState = this.#appState;
    return {
      device: this.device,
      platform: this.#options.platform ?? "web",
      app_state: this.#appState,
      ...(this.#sessionStatus === undefined ? {} : { status: this.#sessionStatus }),
    };
  }

  #countTry(): void {
    this.#tries += 1;
    const { kind, why } = this.state.value;
    if (kind !== "connecting" || this.#tries < 2) return;
    const isStuck = this.#tries > TRIES_UNTIL_STUCK;
    this.state.set({ kind, ...(why === undefined ? {} : { why }), tries: this.#tries, isStuck });
  }

  #requestStatus(request: StatusRequest | null): Promise<void> {
    const outcome = this.#pendingStatus.set(request);
    void this.#sendStatus();
    return outcome;
  }

  async #sendStatus(): Promise<void> {
    const open = this.#pendingStatus.open;
    if (open === null || this.centrifuge.state !== "connected") return;
    const { request, number } = open;
    try {
      await (request === null ? this.rpc("status.clear", {}) : this.rpc("status.set", request));
      this.#sessionStatus = undefined;
      this.#pendingStatus.confirm(number);
    } catch (error) {
      // The next connection sends it again.
      if (isRefusal(error)) this.#pendingStatus.refuse(number, error);
      else if (this.centrifuge.state === "connected") setTimeout(() => void this.#sendStatus(), RETRY_MS);
    }
  }

  async #sendAppState(): Promise<void> {
    const state = this.#appState;
    if (this.centrifuge.state !== "connected" || this.#sentAppState === state) return;
    this.#sentAppState = state;
    try {
      await this.rpc("app.state", { state });
    } catch {
      if (this.centrifuge.state !== "connected") return;
      this.#sentAppState = null;
      setTimeout(() => void this.#sendAppState(), RETRY_MS);
    }
  }

  async #track(ids: readonly string[]): Promise<void> {
    for (const part of chunks(ids)) {
      const { users } = await this.rpc<{ users?: User[] }>("track", { users: part });
      this.#store.applyTracked(part, users ?? []);
    }
  }

  /**
   * Tracks the users of the last connection again, in groups. Groups with a temporary error are hidden until they succeed,
   * because their state is stale. Refused groups are removed.
   */
  async #trackAgain(ids: readonly string[], connection: number): Promise<void> {
    const later: string[] = [];
    for (const part of chunks(ids)) {
      if (connection !== this.#connections) return;
      const wanted = part.filter((id) => this.#store.wanted.has(id));
      try {
        await this.#track(wanted);
      } catch (error) {
        if (connection !== this.#connections) return;
        this.#store.tracked.apply([], wanted);
        if (isRefusal(error)) {
          this.#store.untrack(wanted);
          this.#store.forget(wanted);
        } else later.push(...wanted);
      }
    }
    if (later.length === 0) return;
    setTimeout(() => {
      if (connection === this.#connections) void this.#trackAgain(later, connection);
    }, RETRY_MS);
  }

  #isConnected(): boolean {
    return this.centrifuge.state === "connected";
  }

  #startObserver(): void {
    if (this.#page === null || this.#observer !== null) return;
    this.#observer = new PageObserver(this.#page, this.#options.idleMs ?? IDLE_MS, {
      onState: (state) => this.setAppState(state),
      onClose: () => this.#onPageClose(),
      onRestore: () => this.#isFrozen && this.connect(),
    });
    this.#appState = this.#observer.state;
  }

  #onPageClose(): void {
    if (this.centrifuge.state === "disconnected") return;
    this.#isFrozen = true;
    this.centrifuge.disconnect();
  }
}

/** A permanent error, as opposed to a lost connection or a busy server. */
function isRefusal(error: unknown): boolean {
  const { code, temporary } = (error ?? {}) as { code?: number; temporary?: boolean };
  return code !== undefined && code > 100 && code !== 111 && temporary !== true;
}

function* chunks(ids: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < ids.length; at += TRACKED_PER_COMMAND) yield ids.slice(at, at + TRACKED_PER_COMMAND);
}
