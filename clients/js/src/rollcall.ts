/**
 * Rollcall's presence for a page or a program: a thin layer over the published Centrifuge SDK.
 *
 * It keeps friends as a live map, says whether somebody looks, and comes back by itself after a lost connection: one
 * second, then twice as long each time, up to twenty, with jitter (the SDK's). It never gives up while the server does not
 * say so; after ten tries in vain the state says that it is stuck, so that the page can tell its user.
 *
 * What it deliberately does not do: sign tokens (that is the site's own back end), keep messages, or ping: the server
 * pings, and the SDK answers.
 */

import { Centrifuge } from "centrifuge";
import { Wish, type Declaration } from "./declaration.js";
import { deviceName, isDeviceName } from "./device.js";
import { Live, type LiveMap } from "./live.js";
import { PageWatch, presentPage, type Page } from "./page.js";
import { People } from "./people.js";
import { Room, type RoomOptions } from "./room.js";
import { typingFields, TypingThrottle, Typists, type TypingNote, type TypingTarget } from "./typing.js";
import {
  readFeedMessage,
  type AppState,
  type DeclaredStatus,
  type OwnDevice,
  type Platform,
  type Privacy,
  type User,
} from "./words.js";

/** How it stands with the connection. */
export interface ConnectionState {
  readonly kind: "connecting" | "connected" | "disconnected";
  /** Why, by the code and words of the server or the SDK; none at the very first. */
  readonly why?: { readonly code: number; readonly reason: string };
  /** Tries since there was a connection. */
  readonly tries: number;
  /** Ten tries were in vain: worth telling the user. It goes on trying. */
  readonly isStuck: boolean;
}

/** What a `Rollcall` can be given. */
export interface RollcallOptions {
  /** Fetches a token from the site's own back end: at first, and whenever the last one is about to expire. */
  readonly getToken: () => Promise<string>;
  /** The name of this device; by itself a tab keeps a random one. */
  readonly device?: string;
  /** `web` unless said otherwise. */
  readonly platform?: Platform;
  /** What this session says of itself while it lives, unless `setStatus` says something for the person. */
  readonly status?: DeclaredStatus;
  /** Without input for this long a visible page is `inactive`. Five minutes by itself; 0 turns this off. */
  readonly idleMs?: number;
  /** A WebSocket class for programs that have none. */
  readonly websocket?: unknown;
  /** The page to watch; by itself the one this runs in. `null` watches none: call `setAppState`. */
  readonly page?: Page | null;
  /** The first delay before a reconnect; for tests. */
  readonly minReconnectDelayMs?: number;
}

const IDLE_MS = 5 * 60 * 1000;
const RECONNECT_MS_MIN = 1000;
const RECONNECT_MS_MAX = 20_000;
/** Tries after which the user should be told (P12). */
const TRIES_UNTIL_STUCK = 10;
/** How many users are tracked with one command: it has to fit the server's bound on messages. */
const TRACKED_AT_ONCE = 500;
/** After how long something that the server refused for now is said again. */
const AGAIN_MS = 1000;

/** One connection to a Rollcall server, for one person on one device. */
export class Rollcall {
  /** Friends by id. Kept over a lost connection; the first message of the next one replaces it. */
  readonly friends: LiveMap<string, User>;
  /** Those who are tracked and may be seen, by id. */
  readonly tracked: LiveMap<string, User>;
  /** Oneself, as one's own devices see it: possibly `invisible`. */
  readonly me = new Live<User | null>(null);
  /** How it stands with the connection. */
  readonly state = new Live<ConnectionState>({ kind: "disconnected", tries: 0, isStuck: false });
  /** Who is typing, to the one who looks or in a room. */
  readonly typists: LiveMap<string, TypingNote>;
  /** The name of this device. */
  readonly device: string;
  /** The SDK beneath, for what this layer does not do. */
  readonly centrifuge: Centrifuge;

  readonly #options: RollcallOptions;
  readonly #people = new People((user) => this.me.set(user));
  readonly #typists = new Typists();
  readonly #typing = new TypingThrottle();
  readonly #wish = new Wish();
  readonly #page: Page | null;
  #watch: PageWatch | null = null;
  #appState: AppState = "foreground";
  /** What the server was told last on this connection. */
  #toldAppState: AppState | null = null;
  /** What the session says at connect; `setStatus` and `clearStatus` replace it. */
  #sessionStatus: DeclaredStatus | undefined;
  #tries = 0;
  #isFrozen = false;
  /** How many there were: what was begun on one of them is not gone on with on another. */
  #connections = 0;

  /** `url` is the server's, such as `wss://pt.example.com/connection/websocket`. */
  constructor(url: string, options: RollcallOptions) {
    this.#options = options;
    this.device = options.device ?? deviceName();
    if (!isDeviceName(this.device)) {
      throw new RangeError("a device is named by 1 to 64 visible ASCII characters without spaces");
    }
    this.friends = this.#people.friends;
    this.tracked = this.#people.tracked;
    this.typists = this.#typists.notes;
    this.#sessionStatus = options.status;
    this.#page = options.page === undefined ? presentPage() : options.page;
    this.centrifuge = new Centrifuge(url, {
      getToken: () => options.getToken(),
      getData: () => Promise.resolve(this.#connectData()),
      minReconnectDelay: options.minReconnectDelayMs ?? RECONNECT_MS_MIN,
      maxReconnectDelay: RECONNECT_MS_MAX,
      ...(options.websocket === undefined ? {} : { websocket: options.websocket }),
    });
    this.#listen();
  }

  /** Connects, and stays connected until `close`, or until the server says not to come back. */
  connect(): void {
    this.#isFrozen = false;
    this.#startWatch();
    if (this.centrifuge.state === "disconnected") this.centrifuge.connect();
  }

  /** Says goodbye: a close frame goes out first, so friends see at once that this device has gone. */
  close(): void {
    this.#isFrozen = false;
    this.#watch?.stop();
    this.#watch = null;
    this.centrifuge.disconnect();
  }

  /**
   * Declares a status for the person, on all devices, until it is cleared, replaced, or `until` passes (a time, or unix
   * seconds). Asked for without a connection it is said as soon as there is one. Resolves when the server has it.
   */
  setStatus(status: DeclaredStatus, details: { text?: string; until?: Date | number } = {}): Promise<void> {
    const { text, until } = details;
    const untilSeconds = until instanceof Date ? Math.floor(until.getTime() / 1000) : until;
    return this.#declare({
      status,
      ...(text === undefined ? {} : { text }),
      ...(untilSeconds === undefined ? {} : { until: untilSeconds }),
    });
  }

  /** Takes back what was declared: the status follows from the devices again. */
  clearStatus(): Promise<void> {
    return this.#declare(null);
  }

  /** Says whether somebody looks, where no page can tell. */
  setAppState(state: AppState): void {
    this.#appState = state;
    void this.#tellAppState();
  }

  /** Tells a person or a room that one is typing, or no longer. May be called at each keystroke. */
  async typing(target: TypingTarget, on: boolean): Promise<void> {
    if (this.centrifuge.state !== "connected" || !this.#typing.admits(target, on, Date.now())) return;
    await this.rpc("typing", { ...typingFields(target), on });
  }

  /**
   * Watches people who are not friends; those who may be seen appear in `tracked`. Kept over reconnects. What the server
   * refuses, such as too many, is not kept: all of them are tracked, or none.
   */
  async track(users: Iterable<string>): Promise<void> {
    const ids = this.#people.want(users);
    if (this.centrifuge.state !== "connected") return;
    try {
      await this.#track(ids);
    } catch (error) {
      // Without a connection the next one asks for them.
      if (!this.#isConnected() && !isRefusal(error)) return;
      await this.untrack(ids).catch(() => {});
      throw error;
    }
  }

  /** Ends that. */
  async untrack(users: Iterable<string>): Promise<void> {
    const ids = [...new Set(users)];
    this.#people.untrack(ids);
    for (const part of chunks(ids)) {
      if (this.#isConnected()) await this.#untrack(part);
      this.#people.forget(part);
    }
  }

  async #untrack(ids: readonly string[]): Promise<void> {
    try {
      await this.rpc("untrack", { users: ids });
    } catch (error) {
      // What a lost connection tracked, the next one does not.
      if (this.#isConnected()) throw error;
    }
  }

  /** What may be seen of these people now, once. */
  async look(users: Iterable<string>): Promise<User[]> {
    const found: User[] = [];
    for (const part of chunks([...new Set(users)])) {
      const { users: seen } = await this.rpc<{ users?: User[] }>("status.get", { users: part });
      found.push(...(seen ?? []));
    }
    return found;
  }

  /** One's own devices. */
  async devices(): Promise<OwnDevice[]> {
    const { devices } = await this.rpc<{ devices?: OwnDevice[] }>("devices.list", {});
    return devices ?? [];
  }

  /** Signs one of them out: its connections are closed, and it does not come back by itself. */
  async signOut(device: string): Promise<void> {
    await this.rpc("devices.sign_out", { device });
  }

  /** Who may see what of oneself. */
  async privacy(): Promise<Privacy> {
    return this.rpc<Privacy>("privacy.get", {});
  }

  /** Changes that, at once. What is left out stays as it is. */
  async setPrivacy(privacy: Partial<Privacy>): Promise<void> {
    await this.rpc("privacy.set", privacy);
  }

  /** Enters a room. */
  room(name: string, options: RoomOptions = {}): Room {
    return new Room(this.centrifuge, name, options);
  }

  /** Any command of the server. Waits a few seconds for a connection where there is none. */
  async rpc<T = unknown>(method: string, data: unknown): Promise<T> {
    const { data: result } = await this.centrifuge.rpc(method, data);
    return result as T;
  }

  #listen(): void {
    this.centrifuge.on("connecting", ({ code, reason }) => this.#onConnecting(code, reason));
    this.centrifuge.on("connected", () => this.#onConnected());
    this.centrifuge.on("disconnected", ({ code, reason }) => this.#onDisconnected(code, reason));
    this.centrifuge.on("error", ({ type }) => {
      // The site's back end did not give a token: a try in vain, too.
      if (type === "connectToken") this.#countTry();
    });
    this.centrifuge.on("subscribed", ({ channel }) => {
      const match = /^feed:#(.+)$/.exec(channel);
      if (match?.[1] !== undefined) this.#people.setSelf(match[1]);
    });
    this.centrifuge.on("publication", ({ channel, data }) => {
      if (channel.startsWith("feed:#")) this.#onFeed(data);
    });
  }

  #onFeed(data: unknown): void {
    const message = readFeedMessage(data);
    if (message?.type === "snapshot") this.#people.takeSnapshot(message.users, message.more);
    else if (message?.type === "changes") this.#people.takeChanges(message.users, message.removed, message.more);
    else if (message?.type === "typing") this.#typists.take(message.from, message.on, message.room);
  }

  #onConnecting(code: number, reason: string): void {
    this.#tries = 0;
    this.#forgetConnection();
    this.state.set({ kind: "connecting", why: { code, reason }, tries: 0, isStuck: false });
  }

  #onConnected(): void {
    this.#tries = 0;
    this.state.set({ kind: "connected", tries: 0, isStuck: false });
    // Somebody may have looked away while the connection was being made.
    void this.#tellAppState();
    void this.#tellWish();
    void this.#trackAgain([...this.#people.wanted], this.#connections);
  }

  #onDisconnected(code: number, reason: string): void {
    this.#forgetConnection();
    const open = this.#wish.open;
    // A page in the browser's memory comes back, and then says it.
    if (open !== null && !this.#isFrozen) this.#wish.refuse(open.turn, new Error(`disconnected: ${reason}`));
    this.state.set({ kind: "disconnected", why: { code, reason }, tries: this.#tries, isStuck: false });
  }

  #forgetConnection(): void {
    this.#toldAppState = null;
    this.#typing.clear();
    this.#typists.clear();
    this.#connections += 1;
    this.#people.forgetConnection();
  }

  /** Called by the SDK at each try. */
  #connectData(): Record<string, unknown> {
    this.#countTry();
    this.#toldAppState = this.#appState;
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

  #declare(declaration: Declaration | null): Promise<void> {
    const outcome = this.#wish.ask(declaration);
    void this.#tellWish();
    return outcome;
  }

  async #tellWish(): Promise<void> {
    const open = this.#wish.open;
    if (open === null || this.centrifuge.state !== "connected") return;
    const { declaration, turn } = open;
    try {
      await (declaration === null ? this.rpc("status.clear", {}) : this.rpc("status.set", declaration));
      this.#sessionStatus = undefined;
      this.#wish.confirm(turn);
    } catch (error) {
      // Without a connection it is said again with the next one.
      if (isRefusal(error)) this.#wish.refuse(turn, error);
      else if (this.centrifuge.state === "connected") setTimeout(() => void this.#tellWish(), AGAIN_MS);
    }
  }

  async #tellAppState(): Promise<void> {
    const state = this.#appState;
    if (this.centrifuge.state !== "connected" || this.#toldAppState === state) return;
    this.#toldAppState = state;
    try {
      await this.rpc("app.state", { state });
    } catch {
      if (this.centrifuge.state !== "connected") return;
      this.#toldAppState = null;
      setTimeout(() => void this.#tellAppState(), AGAIN_MS);
    }
  }

  async #track(ids: readonly string[]): Promise<void> {
    for (const part of chunks(ids)) {
      const { users } = await this.rpc<{ users?: User[] }>("track", { users: part });
      this.#people.takeTracked(part, users ?? []);
    }
  }

  /**
   * Tracks on a new connection those who were tracked on the last one, some at a time. Who cannot be for now is not shown
   * meanwhile: what is known of them grows old. Who is refused is forgotten, so that the rest is not refused with them.
   */
  async #trackAgain(ids: readonly string[], connection: number): Promise<void> {
    const later: string[] = [];
    for (const part of chunks(ids)) {
      if (connection !== this.#connections) return;
      const wanted = part.filter((id) => this.#people.wanted.has(id));
      try {
        await this.#track(wanted);
      } catch (error) {
        if (connection !== this.#connections) return;
        this.#people.tracked.apply([], wanted);
        if (isRefusal(error)) {
          this.#people.untrack(wanted);
          this.#people.forget(wanted);
        } else later.push(...wanted);
      }
    }
    if (later.length === 0) return;
    setTimeout(() => {
      if (connection === this.#connections) void this.#trackAgain(later, connection);
    }, AGAIN_MS);
  }

  #isConnected(): boolean {
    return this.centrifuge.state === "connected";
  }

  #startWatch(): void {
    if (this.#page === null || this.#watch !== null) return;
    this.#watch = new PageWatch(this.#page, this.#options.idleMs ?? IDLE_MS, {
      onState: (state) => this.setAppState(state),
      onGoodbye: () => this.#goodbye(),
      onReturn: () => this.#isFrozen && this.connect(),
    });
    this.#appState = this.#watch.state;
  }

  #goodbye(): void {
    if (this.centrifuge.state === "disconnected") return;
    this.#isFrozen = true;
    this.centrifuge.disconnect();
  }
}

/** Whether the server has refused for good, as opposed to a lost connection or a server with too much to do. */
function isRefusal(error: unknown): boolean {
  const { code, temporary } = (error ?? {}) as { code?: number; temporary?: boolean };
  return code !== undefined && code > 100 && code !== 111 && temporary !== true;
}

function* chunks(ids: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < ids.length; at += TRACKED_AT_ONCE) yield ids.slice(at, at + TRACKED_AT_ONCE);
}
