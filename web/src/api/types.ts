// Short names for the types of the API. Every name of a schema in openapi.json that the pages use is in this file.
import type { components, paths } from "./schema";

type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

export type AllPaths = paths;

export interface PageOf<T> {
  items: T[];
  next?: string | null;
}

export type Account = Schema<"Account">;
export type AccountClient = Schema<"AccountClient">;
export type AccountClients = Schema<"AccountClients">;
export type ActiveTorrent = Schema<"ActiveTorrent">;
export type Alert = Schema<"Alert">;
export type ApiKey = Schema<"Key">;
export type AuditRecord = Schema<"AuditRecord">;
export type AuditVerification = Schema<"AuditVerification">;
export type BannedPorts = Schema<"BannedPorts">;
export type ClientRule = Schema<"ClientRule">;
export type ConsumerGroup = Schema<"JournalGroup">;
export type DeadLetter = Schema<"DeadLetter">;
export type HeartbeatDelay = Schema<"HeartbeatDelay">;
export type Entry = Schema<"Entry">;
export type Figures = Schema<"Figures">;
export type HistoryPoint = Schema<"HistoryPoint">;
export type HitAndRun = Schema<"HitAndRun">;
export type JournalStatus = Schema<"JournalStatus">;
export type ListedSwarm = Schema<"ListedSwarm">;
export type ListedUser = Schema<"ListedUser">;
export type Me = Schema<"Me">;
export type MemberTorrent = Schema<"OwnTorrent">;
export type Multiplier = Schema<"Multiplier">;
export type OnlineCount = Schema<"PresenceCount">;
export type OnlineUser = Schema<"OnlineUser">;
export type OperatorSession = Schema<"OperatorSession">;
export type Overview = Schema<"Overview">;
export type Peer = Schema<"Peer">;
export type PresenceEvent = Schema<"PresenceEvent">;
export type PresenceSession = Schema<"Session">;
export type QueueCounts = Schema<"QueueCounts">;
export type QueueItem = Schema<"QueueItem">;
/** Of this gateway, in memory; a `PresenceEvent` is from the stored history of one user. */
export type RecentEvent = Schema<"RecentPresenceEvent">;
export type RemoteDevice = Schema<"RemoteDevice">;
export type RiskEvent = Schema<"RiskEvent">;
export type Stretch = Schema<"Stretch">;
export type Torrent = Schema<"Torrent">;
export type TorrentAccount = Schema<"TorrentAccount">;
export type UpdateTorrent = Schema<"UpdateTorrent">;
export type User = Schema<"User">;
export type UpdateUser = Schema<"UpdateUser">;
export type UserPresence = Schema<"Presence">;
export type UserDetails = Schema<"UserDetails">;
export type ViewOverview = Schema<"ViewOverview">;
