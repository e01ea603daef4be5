//! Views of the journal in memory or Redis.
//!
//! # Layout
//!
//! - [`activity`]: what each user seeds and leeches now
//! - [`redis_mirror`]: the keys `t:*` in Redis (docs/redis.md)
//! - `generations`: a bounded map, for what a writer keeps in memory
//! - [`error`]: errors, and which are retryable
//!
//! # One writer on Redis
//!
//! The holder of a lease of ten seconds writes, one process for each view. It keeps what it has read and written in
//! memory, applies a batch there, and writes absolute values as one transaction, or on a cluster one per slot
//! ([`keyspace::FencedSession`]). Nothing is loaded at the start: what a batch needs and memory lacks is read first.
//!
//! The lease avoids contention; exactness does not depend on it. Before a writer reads anything it claims a fence, and
//! Redis executes a write only while the fence is as this writer left it. So no late write of a former holder is
//! executed, and two processes that both consider themselves the holder take turns: each finds its claim replaced, drops
//! its memory, claims, and reads what the other wrote. A `FLUSHALL` and a failover that lost writes break the claim
//! likewise. After any error it is unknown what was written; memory is dropped, and the batch is applied again to what
//! Redis has: for activity the later report of a client counts, for the mirror the watermark of each torrent skips what
//! was applied.
//!
//! # Activity
//!
//! Per user, torrent and client the latest entry counts, by (`ts`, origin). A user seeds a torrent if any client does,
//! else leeches it if any does. A stopped client is kept until every older entry has expired. Entries dated too far
//! ahead are rejected.
//!
//! Without Redis the lists are in memory, rebuilt from the journal at each start; forty bytes for a torrent of a user
//! on which one client announces regularly. The group's progress in the journal stays: entries that it has received are
//! read again, without the group, from the last interval + grace.
//!
//! On Redis each user has two public sorted sets, a hash with 33 bytes per client, and a sorted set of recently stopped
//! torrents. Most entries change only a time: one member of one `ZADD` per user and batch. `tracker:users:active` holds
//! users by the time of their next check: a sweep reads due users only. Reads by any process remove what has expired,
//! by a script.
//!
//! # Redis mirror
//!
//! The mirror counts events, so it needs the journal's order and a watermark. The writer first takes over the group's
//! unacknowledged entries, then reads new ones.
//!
//! 1. The entries of each torrent of a batch are applied in memory, and the keys in its slot are written: counts, peers,
//!    timeouts and a private state hash with watermark and peers.
//! 2. What follows from this state is written to keys in other slots: users' and peers' sets, indexes and statistics. A
//!    crash between the phases repeats the entries; the watermark skips them, and the state is written again.
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
mod generations;
pub mod redis_mirror;

pub use activity::{
    ActiveTorrent, Activity, ActivityCounters, ActivitySettings, Counts, Cursor, Listing, MemoryUsage, Page,
    Rebuild, Swept,
};
pub use error::ViewsError;
pub use redis_mirror::{Indexes, RedisMirror, RedisMirrorCounters, RedisMirrorParts, RedisMirrorSettings};
