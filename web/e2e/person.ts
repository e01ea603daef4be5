// A person on a device, connected with the published Centrifuge SDK.
import { Centrifuge } from "centrifuge";
import WebSocket from "ws";
import type { Server } from "./server";
import { eventually } from "./wait";

interface Shown {
  id: string;
  status: string;
  text?: string | null;
}

/** A connected person. */
export class Person {
  private readonly shown = new Map<string, Shown>();

  private constructor(private readonly client: Centrifuge) {}

  /** Connects as this user, and waits until that is so. */
  static async connect(server: Server, user: number): Promise<Person> {
    const client = new Centrifuge(`${server.url.replace("http", "ws")}/connection/websocket`, {
      websocket: WebSocket,
      token: server.token(user),
    });
    const person = new Person(client);
    client.on("publication", ({ data }) => person.take(data as { users?: Shown[] }));
    client.connect();
    await client.ready(40_000);
    return person;
  }

  /** Says how they are. */
  async declare(status: string, text: string): Promise<void> {
    await this.client.rpc("status.set", { status, text });
  }

  /** Waits until this friend is shown like that. */
  async sees(friend: number, status: string, text: string): Promise<void> {
    const isSo = () => {
      const seen = this.shown.get(String(friend));
      return seen?.status === status && (seen.text ?? "") === text;
    };
    await eventually(`user ${friend} to be seen ${status}, saying ${JSON.stringify(text)}`, 40_000, isSo);
  }

  /** Leaves. */
  leave(): void {
    this.client.disconnect();
  }

  private take(said: { users?: Shown[] }): void {
    for (const user of said.users ?? []) this.shown.set(user.id, user);
  }
}
