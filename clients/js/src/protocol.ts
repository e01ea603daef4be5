/** Types of the messages of the server. */

/** `invisible` only for the user's own devices; others see `offline`. */
export type Status = "offline" | "pending" | "away" | "online" | "busy" | "invisible";

/** A status that a user can set. `online`: derived from the devices. */
export type DeclaredStatus = "online" | "away" | "busy" | "invisible";

export type AppState = "foreground" | "background" | "inactive";

export type Platform = "phone" | "computer" | "web";

export type Visibility = "everyone" | "friends" | "nobody";

export interface Device {
  readonly id: string;
  readonly platform: Platform;
  readonly state: AppState;
  readonly status: Status;
}

export interface User {
  readonly id: string;
  readonly status: Status;
  /** Increases with each change. 0 if the user is not visible. */
  readonly version: number;
  /** Time of the change in milliseconds since 1970; absent in a snapshot. */
  readonly at_ms?: number;
  /** Seconds since 1970; absent if not visible. */
  readonly last_seen?: number | null;
  readonly devices?: readonly Device[] | null;
  /** Status text. */
  readonly text?: string | null;
  /** Expiry of a set status, in seconds since 1970. */
  readonly until?: number | null;
  /** Number of torrents. */
  readonly seeding?: number;
  readonly leeching?: number;
  /** Set on the connected user. */
  readonly self?: boolean;
}

/** A device as returned by `devices()`. */
export interface OwnDevice extends Device {
  readonly [more: string]: unknown;
}

export interface Privacy {
  readonly status: Visibility;
  readonly last_seen: Visibility;
  /** Users that see nothing. */
  readonly never: readonly string[];
}

/** Messages of the feed. `more`: the snapshot continues in the next message. */
export type FeedMessage =
  | { readonly type: "snapshot"; readonly users: readonly User[]; readonly more?: boolean }
  | {
      readonly type: "changes";
      readonly users: readonly User[];
      readonly removed?: readonly string[];
      readonly more?: boolean;
      /** Time of the latest change, in milliseconds since 1970. */
      readonly at_ms?: number;
    }
  | {
      readonly type: "typing";
      readonly from: string;
      readonly on: boolean;
      readonly room?: string | null;
      readonly at_ms?: number;
    };

/** `pending` counts: after a restart of the server the user may still reconnect. */
export function isOnline(user: User | null | undefined): boolean {
  return user != null && user.status !== "offline";
}

/** Null for unknown kinds, which a later server may send. */
export function readFeedMessage(data: unknown): FeedMessage | null {
  if (typeof data !== "object" || data === null) return null;
  const message = data as Partial<Record<string, unknown>>;
  switch (message["type"]) {
    case "snapshot":
    case "changes":
      return Array.isArray(message["users"]) ? (data as FeedMessage) : null;
    case "typing":
      return typeof message["from"] === "string" ? (data as FeedMessage) : null;
    default:
      return null;
  }
}
