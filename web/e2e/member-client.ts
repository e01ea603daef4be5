// A member's device, connected with the published Centrifuge SDK.
import { Centrifuge } from "centrifuge";
import WebSocket from "ws";
import type { Server } from "./server";
import { eventually } from "./wait";

interface FeedUser {
  id: string;
  status: string;
  text?: string | null;
}

export class MemberClient {
  private readonly shown = new Map<string, FeedUser>();

  private constructor(private readonly client: Centrifuge) {}

  /** Resolves when connected. */
  static async connect(server: Server, user: number): Promise<MemberClient> {
    const client = new Centrifuge(`${server.url.replace("http", "ws")}/connection/websocket`, {
      websocket: WebSocket,
      token: server.token(user),
    });
    const member = new MemberClient(client);
    client.on("publication", ({ data }) => member.apply(data as { users?: FeedUser[] }));
    client.connect();
    await client.ready(40_000);
    return member;
  }

    async setStatus(status: string, text: string): Promise<void> {
    await this.client.rpc("status.set", { status, text });
  }

  /** Waits until the friend has this status. */
  async sees(friend: number, status: string, text: string): Promise<void> {
    const isShown = () => {
      const seen = this.shown.get(String(friend));
      return seen?.status === status && (seen.text ?? "") === text;
    };
    await eventually(`user ${friend} to be ${status} with text ${JSON.stringify(text)}`, 40_000, isShown);
  }

  disconnect(): void {
    this.client.disconnect();
  }

  private apply(data: { users?: FeedUser[] }): void {
    for (const user of data.users ?? []) this.shown.set(user.id, user);
  }
}
