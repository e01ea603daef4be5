/**
 * The member's own connection: who they are to others right now, on which devices, and how their friends are.
 *
 * It is our own client library that talks to the server, the same that a site would use; here its values become signals.
 */
import { signal } from "@preact/signals";
import { Rollcall, type DeclaredStatus, type User } from "rollcall-presence";

/** How it stands with the connection: `ended` means that it does not come back by itself. */
export type Link = "connecting" | "connected" | "stuck" | "ended";

/** Oneself, as one's own devices see it. */
export const me = signal<User | null>(null);

/** Friends; who is here first. */
export const friends = signal<readonly User[]>([]);

/** How it stands with the connection. */
export const connectionState = signal<Link>("connecting");

/** Why it ended, by the number of the server. */
export const endCode = signal<number | null>(null);

/** The name of this device. */
export const thisDevice = signal<string | null>(null);

let rollcall: Rollcall | null = null;
let end: (() => void)[] = [];

/** Connects. `getToken` is asked whenever a token is needed. */
export function connect(getToken: () => Promise<string>): void {
  disconnect();
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new Rollcall(`${scheme}://${location.host}/connection/websocket`, { getToken });
  rollcall = opened;
  thisDevice.value = opened.device;
  end = [
    opened.me.subscribe((user) => (me.value = user)),
    opened.friends.subscribe(() => (friends.value = sorted([...opened.friends.values()]))),
    opened.state.subscribe((state) => {
      if (state.kind === "disconnected") endCode.value = state.why?.code ?? null;
      connectionState.value =
        state.kind === "connected" ? "connected" : state.kind === "disconnected" ? "ended" : state.isStuck ? "stuck" : "connecting";
    }),
  ];
  connectionState.value = "connecting";
  opened.connect();
}

/** Says goodbye, and forgets what was known. */
export function disconnect(): void {
  end.splice(0).forEach((call) => call());
  rollcall?.close();
  rollcall = null;
  me.value = null;
  friends.value = [];
}

/** Comes back after a connection that had ended. */
export function reconnect(): void {
  rollcall?.connect();
}

/** Declares a status for oneself, on all devices. `until` in unix seconds. */
export async function declare(status: DeclaredStatus, text: string, until: number | null): Promise<void> {
  await rollcall?.setStatus(status, { ...(text === "" ? {} : { text }), ...(until === null ? {} : { until }) });
}

/** Takes back what was declared: the status follows from the devices again. */
export async function undeclare(): Promise<void> {
  await rollcall?.clearStatus();
}

/** Signs another device out. */
export async function signOutDevice(device: string): Promise<void> {
  await rollcall?.signOut(device);
}

const RANK: Record<string, number> = { online: 0, busy: 1, away: 2, pending: 3 };

/** Who is here first, then who was here last. */
export function sorted(users: readonly User[]): readonly User[] {
  const rank = (user: User) => RANK[user.status] ?? 9;
  return [...users].sort(
    (a, b) => rank(a) - rank(b) || (b.last_seen ?? 0) - (a.last_seen ?? 0) || Number(BigInt(a.id) - BigInt(b.id)),
  );
}
