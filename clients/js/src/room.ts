/**
 * A room with its members as a live map. They are fetched on entering, then updated by joins and leaves. After a reconnect the
 * room is entered and fetched again.
 */

import type { Centrifuge, ClientInfo, Subscription } from "centrifuge";
import { Live, LiveMap, Signal } from "./live.js";

/** A connection in a room. A user with two devices has two. */
export interface Member {
  readonly client: string;
  readonly user: string;
}

/** `error`: why the room was left, unless by `leave`. */
export interface RoomState {
  readonly kind: "entering" | "inside" | "outside";
  readonly error?: { readonly code: number; readonly reason: string };
}

export interface RoomOptions {
  /** For servers that require room tokens: fetches one for the channel. */
  readonly getToken?: (channel: string) => Promise<string>;
}

export class Room {
  readonly name: string;
  /** By connection. */
  readonly members = new LiveMap<string, Member>();
  readonly joined = new Signal<Member>();
  readonly left = new Signal<Member>();
  readonly state = new Live<RoomState>({ kind: "entering" });
  readonly #centrifuge: Centrifuge;
  readonly #subscription: Subscription;
  /** Joins and leaves while the members are fetched: newer than the result. */
  #changes: Map<string, Member | null> | null = null;
  #entries = 0;

  constructor(centrifuge: Centrifuge, name: string, options: RoomOptions) {
    this.name = name;
    this.#centrifuge = centrifuge;
    const { getToken } = options;
    this.#subscription = centrifuge.newSubscription(`room:${name}`, {
      joinLeave: true,
      ...(getToken === undefined ? {} : { getToken: (context) => getToken(context.channel) }),
    });
    this.#subscription.on("subscribed", () => void this.#fetchMembers());
    this.#subscription.on("subscribing", () => this.state.set({ kind: "entering" }));
    this.#subscription.on("unsubscribed", ({ code, reason }) => this.#onUnsubscribed(code, reason));
    this.#subscription.on("join", ({ info }) => this.#onJoin(memberOf(info)));
    this.#subscription.on("leave", ({ info }) => this.#onLeave(memberOf(info)));
    this.#subscription.subscribe();
  }

  /** Distinct user ids. */
  users(): Set<string> {
    return new Set([...this.members.values()].map((member) => member.user));
  }

  /** Resolves when the room was entered and its members are known. */
  async ready(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      let end = (): void => {};
      const check = (state: RoomState): void => {
        if (state.kind === "entering") return;
        queueMicrotask(() => end());
        if (state.kind === "inside") resolve();
        else reject(new Error(state.error?.reason ?? "the room was left"));
      };
      end = this.state.subscribe(check);
    });
  }

  /** It can be entered again with `Rollcall.room`. */
  leave(): void {
    this.#subscription.unsubscribe();
    this.#centrifuge.removeSubscription(this.#subscription);
  }

  async #fetchMembers(): Promise<void> {
    const entry = ++this.#entries;
    this.#changes = new Map();
    try {
      const { clients } = await this.#subscription.presence();
      // The room was entered again: that fetch counts.
      if (entry !== this.#entries) return;
      const members = new Map(Object.values(clients).map((info) => [info.client, memberOf(info)]));
      for (const [client, member] of this.#changes ?? []) {
        if (member === null) members.delete(client);
        else members.set(client, member);
      }
      this.members.replace(members);
      this.state.set({ kind: "inside" });
    } catch {
      // A lost connection enters again; a busy server is retried.
      if (entry === this.#entries && this.#subscription.state === "subscribed") {
        setTimeout(() => entry === this.#entries && void this.#fetchMembers(), 1000);
      }
    } finally {
      if (entry === this.#entries) this.#changes = null;
    }
  }

  #onJoin(member: Member): void {
    this.#changes?.set(member.client, member);
    this.members.apply([[member.client, member]]);
    this.joined.emit(member);
  }

  #onLeave(member: Member): void {
    this.#changes?.set(member.client, null);
    this.members.apply([], [member.client]);
    this.left.emit(member);
  }

  #onUnsubscribed(code: number, reason: string): void {
    this.#entries += 1;
    this.members.replace([]);
    // 0: `leave` was called.
    this.state.set(code === 0 ? { kind: "outside" } : { kind: "outside", error: { code, reason } });
  }
}

function memberOf(info: ClientInfo): Member {
  return { client: info.client, user: info.user };
}
