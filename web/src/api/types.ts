// The API's types by short names; all of them come from the server's own description.
import type { components, paths } from "./schema";

/** A type of the API by its name in the description. */
export type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

/** Everything that can be asked for. */
export type AllPaths = paths;

/** A page of a list. */
export interface PageOf<T> {
  items: T[];
  next?: string | null;
}

export type Alert = Schema<"Alert">;
export type AuditVerification = Schema<"AuditVerification">;
export type Entry = Schema<"Entry">;
export type EntryPage = Schema<"EntryPage">;
export type History = Schema<"OverviewHistory">;
export type HistoryPoint = Schema<"HistoryPoint">;
export type ListedUser = Schema<"ListedUser">;
export type KeyShown = Schema<"Key">;
export type Me = Schema<"Me">;
export type MyTorrent = Schema<"OwnTorrent">;
export type OnlinePerson = Schema<"OnlinePerson">;
export type Overview = Schema<"Overview">;
export type QueueItem = Schema<"QueueItem">;
export type PresenceOccurrence = Schema<"PresenceOccurrence">;
export type OperatorSession = Schema<"OperatorSession">;
export type SwarmRow = Schema<"ListedSwarm">;
export type TorrentAccount = Schema<"TorrentAccount">;
export type ViewOverview = Schema<"ViewOverview">;
