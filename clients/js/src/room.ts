/**
 * A room: who is in it, as a live map. Entering fetches everyone who is there; after that, people who come and go are
 * told one by one. After a reconnect the room is entered again and everyone fetched anew.
 */

import type { Centrifuge, ClientInfo, Subscription } from "centrifuge";
import { Live, LiveMap, Signal } from "./live.js";

/** One connection in a room. A person with two devices is there twice. */
export interface Member {
  readonly client: string;
  readonly user: string;
}

/** How it stands with a room. `error` says why it was left when the program did not leave it. */
export interface RoomState {
  readonly kind: "entering" | "inside" | "outside";
  readonly error?: { readonly code: number; readonly reason: string };
}

/** How to enter. */
export interface RoomOptions {
  /** For servers where a room takes a token: fetches one for this channel. */
  readonly getToken?: (channel: string) => Promise<string>;
}

/** A room that was entered with `Rollcall.room`. */
export class Room {
  readonly name: string;
  /** Everyone in it, by connection. */
  readonly members = new LiveMap<string, Member>();
  readonly joined = new Signal<Member>();
  readonly left = new Signal<Member>();
  readonly state = new Live<RoomState>({ kind: "entering" });
  readonly #centrifuge: Centrifuge;
  readonly #subscription: Subscription;
  /** Who came and went while everyone was being fetched: newer than what is fetched. */
  #meanwhile: Map<string, Member | null> | null = null;
  #entries = 0;

  /** Begins to enter. */
  constructor(centrifuge: Centrifuge, name: string, options: RoomOptions) {
    this.name = name;
    this.#centrifuge = centrifuge;
    const { getToken } = options;
    this.#subscription = centrifuge.newSubscription(`room:${name}`, {
      joinLeave: true,
      ...(getToken === undefined ? {} : { getToken: (context) => getToken(context.channel) }),
    });
    this.#subscription.on("subscribed", () => void this.#fetchEveryone());
    this.#subscription.on("subscribing", () => this.state.set({ kind: "entering" }));
    this.#subscription.on("unsubscribed", ({ code, reason }) => this.#onOut(code, reason));
    this.#subscription.on("join", ({ info }) => this.#onJoin(memberOf(info)));
    this.#subscription.on("leave", ({ info }) => this.#onLeave(memberOf(info)));
    this.#subscription.subscribe();
  }

  /** The ids of the people in it, each once. */
  people(): Set<string> {
    return new Set([...this.members.values()].map((member) => member.user));
  }

  /** Waits until it has been entered and everyone in it is known. */
  async ready(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      let end = (): void => {};
      const look = (state: RoomState): void => {
        if (state.kind === "entering") return;
        queueMicrotask(() => end());
        if (state.kind === "inside") resolve();
        else reject(new Error(state.error?.reason ?? "the room was left"));
      };
      end = this.state.subscribe(look);
    });
  }

  /** Leaves. The room can be entered again with `Rollcall.room`. */
  leave(): void {
    this.#subscription.unsubscribe();
    this.#centrifuge.removeSubscription(this.#subscription);
  }

  async #fetchEveryone(): Promise<void> {
    const entry = ++this.#entries;
    this.#meanwhile = new Map();
    try {
      const { clients } = await this.#subscription.presence();
      // Another entry has begun since: its own fetch will tell.
      if (entry !== this.#entries) return;
      const everyone = new Map(Object.values(clients).map((info) => [info.client, memberOf(info)]));
      for (const [client, member] of this.#meanwhile ?? []) {
        if (member === null) everyone.delete(client);
        else everyone.set(client, member);
      }
      this.members.replace(everyone);
      this.state.set({ kind: "inside" });
    } catch {
      // The connection broke, and a new one enters anew; or the server has too much to do: then ask again.
      if (entry === this.#entries && this.#subscription.state === "subscribed") {
        setTimeout(() => entry === this.#entries && void this.#fetchEveryone(), 1000);
      }
    } finally {
      if (entry === this.#entries) this.#meanwhile = null;
    }
  }

  #onJoin(member: Member): void {
    this.#meanwhile?.set(member.client, member);
    this.members.apply([[member.client, member]]);
    this.joined.emit(member);
  }

  #onLeave(member: Member): void {
    this.#meanwhile?.set(member.client, null);
    this.members.apply([], [member.client]);
    this.left.emit(member);
  }

  #onOut(code: number, reason: string): void {
    this.#entries += 1;
    this.members.replace([]);
    // 0: the program has left.
    this.state.set(code === 0 ? { kind: "outside" } : { kind: "outside", error: { code, reason } });
  }
}

function memberOf(info: ClientInfo): Member {
  return { client: info.client, user: info.user };
}
