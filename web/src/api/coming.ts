// Routes that the description does not describe yet. What it does describe wins, so that a line here is harmless and can
// go as soon as `npm run api` brings the real thing.
import type { components, paths } from "./schema";

/** A type of the API by its name in the description. */
export type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

/** Everything that can be asked for. */
export type AllPaths = paths & Omit<Coming, keyof paths>;

type Json<T> = { 200: { content: { "application/json": T } } };
type Get<Out, Query = never, Path = never> = { get: { parameters: { query?: Query; path: Path }; responses: Json<Out> } };
type Cursor = { limit?: number; cursor?: string };

/** A page of a list. */
export interface PageOf<T> {
  items: T[];
  next_cursor?: string | null;
}

/** How one view of the journal is. */
export interface ViewPulse {
  view: string;
  group: string;
  lag: number;
  behind_s: number;
  rate_per_s: number;
  paused: boolean;
}

/** Something that wants an operator. */
export interface Alert {
  code: string;
  /** What it is about: a view, a dependency. */
  subject?: string | null;
  severity: "warning" | "critical";
  since: number;
  detail: string;
}

/** The whole at a glance, computed once a second. */
export interface Overview {
  at_ms: number;
  version: string;
  node: string;
  started_at: number;
  people?: Schema<"PresenceCount"> | null;
  gateway?: {
    connects_per_s: number;
    disconnects_per_s: number;
    disconnects: { cause: string; count: number }[];
    heartbeat_delay_ms?: { p50: number; p99: number } | null;
    webhooks_waiting?: number | null;
  } | null;
  tracker?: {
    torrents_active: number;
    peers: number;
    seeders: number;
    leechers: number;
    announces: number;
    announces_per_s: number;
    refused_per_s: number;
    uploaded: string;
    downloaded: string;
    upload_bytes_per_s: number;
    download_bytes_per_s: number;
  } | null;
  journal?: {
    entries: number;
    too_long: boolean;
    appended: number;
    appended_per_s: number;
    dlq: number;
    failed: number;
    risks: number;
    views: ViewPulse[];
  } | null;
  health: Schema<"DependencyHealth">[];
  alerts: Alert[];
}

/** A moment of the last hour. */
export interface HistoryPoint {
  at: number;
  online?: number | null;
  seeders?: number | null;
  leechers?: number | null;
  announces_per_s?: number | null;
  upload_bytes_per_s?: number | null;
  download_bytes_per_s?: number | null;
  connects_per_s?: number | null;
  disconnects_per_s?: number | null;
  lag: Record<string, number>;
}

/** The last hour of this process. */
export interface History {
  step_s: number;
  points: HistoryPoint[];
}

/** Somebody came, went, or changed. */
export interface PresenceOccurrence {
  at_ms: number;
  user: number;
  event: "joined" | "left" | "status";
  from?: string | null;
  to?: string | null;
  platform?: string | null;
  cause?: string | null;
}

/** Somebody who is here now. */
export interface OnlinePerson {
  id: number;
  status: string;
  text?: string | null;
  since?: number | null;
  seeding: number;
  leeching: number;
  devices: { platform: string; state: string; status: string }[];
}

/** A torrent with its swarm. */
export interface SwarmRow {
  torrent: {
    id: number;
    infohash: string;
    name: string;
    total_bytes: string;
    enabled: boolean;
    approved: boolean;
    created_at: number;
  };
  seeders: number | null;
  leechers: number | null;
  snatches: number | null;
}

/** Who is signed in, and what they may do. */
export interface SessionShown {
  key_id: number;
  name: string;
  scopes: string[];
  expires_at: number;
  csrf: string;
}

/** An API key, without its secret. */
export interface KeyShown {
  id: number;
  name: string;
  scopes: string[];
  created_at: number;
  last_used_at?: number | null;
}

/** Whether the audit trail is whole. */
export interface AuditVerdict {
  holds: boolean;
  records: number;
  broken_at?: number | null;
  reason?: string | null;
}

/** What a user moved of a torrent, as the torrent's page lists it. */
export interface TorrentAccount {
  user: number;
  figures: Schema<"Figures">;
  left?: string | null;
  client: string;
  seeding: boolean;
  leeching: boolean;
  completed_at?: number | null;
}

/** An announce, as the journal has it. */
export interface Entry {
  id: string;
  at: number;
  torrent?: number | null;
  infohash: string;
  name?: string | null;
  peer_id: string;
  client: string;
  event: string;
  cause?: string;
  uploaded_delta: string;
  downloaded_delta: string;
  credited_uploaded?: string | null;
  credited_downloaded?: string | null;
  left?: string | null;
  elapsed_s?: number | null;
  ip?: string | null;
}

/** Announces of a user, and how far the search for them went. */
export interface EntryPage extends PageOf<Entry> {
  since?: number | null;
  scanned: number;
  complete: boolean;
}

/** A torrent that a member is on. */
export interface MyTorrent {
  torrent?: number | null;
  name?: string | null;
  infohash: string;
  last_announce: number;
  left?: string | null;
  total_bytes?: string | null;
}

/** A member, as they see themselves. */
export interface Me {
  id: number;
  presence: Schema<"Person">;
  sessions: Schema<"Session">[];
  figures: Schema<"Figures"> | null;
  ratio: number | null;
  seeding: { count: number; items: MyTorrent[] };
  leeching: { count: number; items: MyTorrent[] };
  hit_and_runs: number;
  friends: number;
}

interface Coming {
  "/api/v1/torrents/{id}/accounts": Get<PageOf<TorrentAccount>, Cursor, { id: string }>;
  "/api/v1/users/{id}/entries": Get<EntryPage, Cursor & { torrent?: string }, { id: number }>;
  "/api/v1/users/{id}/risks": Get<PageOf<Schema<"Risk">>, Cursor, { id: number }>;
  "/api/v1/me": Get<Me>;
  "/session": {
    get: { responses: Json<SessionShown> };
    post: { requestBody: { content: { "application/json": { key: string } } }; responses: Json<SessionShown> };
    delete: { responses: { 204: unknown } };
  };
  "/session/feed-token": { post: { responses: Json<{ token: string; expires_at: number }> } };
  "/api/v1/overview": Get<Overview>;
  "/api/v1/overview/history": Get<History>;
  "/api/v1/presence/online": Get<PageOf<OnlinePerson>, Cursor & { status?: string; platform?: string }>;
  "/api/v1/presence/events": Get<{ items: PresenceOccurrence[] }, { limit?: number }>;
  "/api/v1/swarms": Get<
    PageOf<SwarmRow> & { total: number },
    Cursor & { sort?: "seeders" | "leechers" | "snatches" | "size" | "added"; order?: "asc" | "desc"; search?: string }
  >;
  "/api/v1/keys": Get<PageOf<KeyShown>> & {
    post: {
      requestBody: { content: { "application/json": { name: string; scopes: string[] } } };
      responses: { 201: { content: { "application/json": KeyShown & { key: string } } } };
    };
  };
  "/api/v1/keys/{id}": {
    delete: { parameters: { path: { id: number }; query?: { force?: boolean } }; responses: { 204: unknown } };
  };
  "/api/v1/audit/verify": Get<AuditVerdict>;
}
