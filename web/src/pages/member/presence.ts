// The member's presence connection, by the client library (clients/js), as signals.
import { signal } from "@preact/signals";
import { Rollcall, type DeclaredStatus, type User } from "rollcall-presence";

/** `ended`: no automatic reconnect. */
export type ConnectionState = "connecting" | "connected" | "stuck" | "ended";

/** The member, as seen by their own devices. */
export const me = signal<User | null>(null);

/** Online friends first. */
export const friends = signal<readonly User[]>([]);

export const connectionState = signal<ConnectionState>("connecting");

/** Disconnect code of the server. */
export const endCode = signal<number | null>(null);

export const thisDevice = signal<string | null>(null);

let rollcall: Rollcall | null = null;
let end: (() => void)[] = [];

/** `getToken` is called whenever a token is needed. */
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

export function disconnect(): void {
  end.splice(0).forEach((call) => call());
  rollcall?.close();
  rollcall = null;
  me.value = null;
  friends.value = [];
}

export function reconnect(): void {
  rollcall?.connect();
}

/** On all devices. `until` is in seconds since 1970. */
export async function setStatus(status: DeclaredStatus, text: string, until: number | null): Promise<void> {
  await rollcall?.setStatus(status, { ...(text === "" ? {} : { text }), ...(until === null ? {} : { until }) });
}

/** The status follows from the devices again. */
export async function clearStatus(): Promise<void> {
  await rollcall?.clearStatus();
}

export async function signOutDevice(device: string): Promise<void> {
  await rollcall?.signOut(device);
}

const RANK: Record<string, number> = { online: 0, busy: 1, away: 2, pending: 3 };

/** Online first, then by last seen. */
export function sorted(users: readonly User[]): readonly User[] {
  const rank = (user: User) => RANK[user.status] ?? 9;
  return [...users].sort(
    (a, b) => rank(a) - rank(b) || (b.last_seen ?? 0) - (a.last_seen ?? 0) || Number(BigInt(a.id) - BigInt(b.id)),
  );
}
