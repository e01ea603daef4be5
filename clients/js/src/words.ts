/**
 * The words of the wire: what the server says of people, and what it can be asked. Nothing here does anything but
 * refuse what is not such a word.
 */

/** What is shown of a person. `invisible` only ever of oneself; others see `offline`. */
export type Status = "offline" | "pending" | "away" | "online" | "busy" | "invisible";

/** What a person can say of themselves. `online` means: whatever follows from the devices. */
export type DeclaredStatus = "online" | "away" | "busy" | "invisible";

/** Whether somebody looks at the app. */
export type AppState = "foreground" | "background" | "inactive";

/** What kind of device it is. */
export type Platform = "phone" | "computer" | "web";

/** To whom something is shown. */
export type Visibility = "everyone" | "friends" | "nobody";

/** One device of a person. */
export interface Device {
  readonly id: string;
  readonly platform: Platform;
  readonly state: AppState;
  readonly status: Status;
}

/** What is known of a person. */
export interface User {
  readonly id: string;
  readonly status: Status;
  /** Grows with each change. 0 of somebody who may not be seen. */
  readonly version: number;
  /** When this change happened, in unix milliseconds; absent in a snapshot. */
  readonly at_ms?: number;
  /** Unix seconds; absent where it may not be seen. */
  readonly last_seen?: number | null;
  readonly devices?: readonly Device[] | null;
  /** A text beside the status. */
  readonly text?: string | null;
  /** When a declared status ends by itself, in unix seconds. */
  readonly until?: number | null;
  /** How many torrents their clients seed and leech right now. */
  readonly seeding?: number;
  readonly leeching?: number;
  /** Set on the one who looks. */
  readonly self?: boolean;
}

/** A device as its owner sees it, by `devices()`: what others see, and perhaps more. */
export interface OwnDevice extends Device {
  readonly [more: string]: unknown;
}

/** Who may see what. */
export interface Privacy {
  readonly status: Visibility;
  readonly last_seen: Visibility;
  /** Who never sees anything. */
  readonly never: readonly string[];
}

/** What comes over the personal feed. `more`: a snapshot that is too long for one message goes on in the next. */
export type FeedMessage =
  | { readonly type: "snapshot"; readonly users: readonly User[]; readonly more?: boolean }
  | {
      readonly type: "changes";
      readonly users: readonly User[];
      readonly removed?: readonly string[];
      readonly more?: boolean;
      /** When the latest of these changes happened, in unix milliseconds. */
      readonly at_ms?: number;
    }
  | {
      readonly type: "typing";
      readonly from: string;
      readonly on: boolean;
      readonly room?: string | null;
      readonly at_ms?: number;
    };

/** Whether somebody is here. `pending` counts: the server has just restarted, and they had no time to come back. */
export function isHere(user: User | null | undefined): boolean {
  return user != null && user.status !== "offline";
}

/** A message of the feed; none if it is of a kind that a later server may send and this library does not know. */
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
