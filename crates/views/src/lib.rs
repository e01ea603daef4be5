//! Views of the journal in memory or Redis.
//!
//! # Layout
//!
//! - [`activity`]: what each user seeds and leeches now
//! - [`redis_mirror`]: the keys `t:*` in Redis (docs/redis.md)
//! - [`error`]: errors, and which are retryable
//!
//! # Activity
//!
//! Per user, torrent and client the latest entry counts, by (`ts`, origin). A user seeds a torrent if any client does,
//! else leeches it if any does. A stopped client is kept until every older entry has expired. Entries dated too far
//! ahead are rejected.
//!
//! On Redis each user has two public sorted sets, a hash with 33 bytes per client, and a sorted set of recently stopped
//! torrents. One script applies entries, for up to 64 users per call (one on a cluster). Most entries change only a
//! time and are plain commands. `tracker:users:active` holds users by the time of their next check: a sweep claims due
//! users only.
//!
//! Without Redis the lists are in memory, rebuilt from the journal at each start; forty bytes for a torrent of a user
//! on which one client announces regularly.
//!
//! # Redis mirror
//!
//! The mirror counts events, so it needs the journal's order and a watermark. One process at a time holds a lease of
//! ten seconds; it first takes over the group's unacknowledged entries, then reads new ones.
//!
//! 1. Per torrent of a batch, one script (`keyspace/src/lua/redis_mirror_torrent.lua`) applies its entries in one slot: counts, peers,
//!    timeouts and a private state hash with watermark and peers. It returns the state of everything that changed.
//! 2. That state is written to keys in other slots: users' and peers' sets, and by `redis_mirror_index.lua` the indexes and,
//!    by the difference to the previous score, the statistics. A crash between the phases repeats the entries; the
//!    watermark skips them, and the state is written again.
//!
//! The state hash is authoritative; public keys are derived from it. An announce older than the last one of its peer
//! changes no state but is counted. A watermark greater than every id of the journal belongs to another journal
//! (a failover, a deleted stream) and is reset, with a log line.
//!
//! **Expiry.** `t:ptimeout:…` expires, Redis publishes it, and the mirror appends a `stopped` entry with cause
//! `timeout` to the journal, dated to the peer's deadline. When such an entry is applied, whether the mirror or a
//! tracker appended it, the key is left to expire and the peer is published on `t:ch:expired`. While the mirror lags,
//! timeouts are renewed instead. Swarms, accounts, activity and mirror use the same deadline.
//!
//! **Reconciliation.** A few torrents per second are compared with their state hash; differences are repaired by a
//! script that does nothing if the watermark has moved, logged with before and after, and counted. At the end of a
//! round the statistics are compared with the sums of the indexes.

pub mod activity;
pub mod error;
pub mod redis_mirror;

pub use activity::{
    ActiveTorrent, Activity, ActivityCounters, ActivitySettings, Counts, Cursor, Listing, MemoryUsage, Page,
    Rebuild, Swept,
};
pub use error::ViewsError;
pub use redis_mirror::{Indexes, RedisMirror, RedisMirrorCounters, RedisMirrorParts, RedisMirrorSettings};
