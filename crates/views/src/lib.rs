//! Views of the journal in Redis or SQLite.
//!
//! # Layout
//!
//! - [`activity`]: what each user seeds and leeches now
//! - [`mirror`]: the keys `t:*` in Redis (docs/redis.md)
//! - [`error`]: errors, and which are retryable
//!
//! # Activity
//!
//! Per user, torrent and client the latest entry counts, by (`ts`, origin). A user seeds a torrent if any client does,
//! else leeches it if any does. A client that stopped is remembered until every older entry is too old to count.
//! Entries dated ahead of now are refused.
//!
//! On Redis each user has two sorted sets that others read, a hash with 29 bytes per client, and a sorted set of
//! torrents left lately. One script computes what follows from an entry, for up to 64 users per call (one on a
//! cluster). Most entries change only a time and are plain commands. `tracker:users:active` holds users by the time of
//! their next check: a sweep claims those that are due, so its cost is what is due. On SQLite there is one row per
//! user and torrent.
//!
//! # Mirror
//!
//! The mirror counts what happened, so it needs the journal's order and a watermark. One process at a time holds a
//! lease of ten seconds; it first takes over what the group was given and did not acknowledge, then reads on.
//!
//! 1. Per torrent of a batch, one script (`mirror_torrent.lua`) applies its entries in one slot: counts, peers,
//!    timeouts and a private hash with watermark and peers. It returns the present state of everything that changed.
//! 2. That state is written to keys in other slots: users' and peers' sets, and by `mirror_index.lua` the indexes and,
//!    by the difference to the previous score, the statistics. A crash between the phases repeats the entries; the
//!    watermark skips them, and the state is written again.
//!
//! The private hash is the truth about a torrent; what sites read follows from it. An announce older than the last one
//! of its peer changes no state but is counted. A watermark greater than every id of the journal is of another journal
//! (a failover, a deleted stream) and is taken back, with a log line.
//!
//! **Expiry.** `t:ptimeout:…` expires, Redis publishes it, and the mirror appends a `stopped` entry with cause
//! `timeout` to the journal, dated to when the silence became too long. When such an entry is applied, whether the
//! mirror or a tracker appended it, the key is left to expire and the peer is published on `t:ch:expired`. While the
//! mirror lags, timeouts are renewed instead. When a peer counts as gone is one rule for swarms, accounts, lists and
//! mirror.
//!
//! **Reconciliation.** A few torrents per second are compared with their private hash; differences are repaired by a
//! script that does nothing if the watermark has moved, logged with before and after, and counted. At the end of a
//! round the statistics are compared with the sums.

pub mod activity;
pub mod error;
pub mod mirror;

pub use activity::{
    ActiveTorrent, Activity, ActivityCounters, ActivitySettings, Counts, Cursor, Listing, Page, Rebuild,
    Swept,
};
pub use error::ViewsError;
pub use mirror::{Indexes, Mirror, MirrorCounters, MirrorParts, MirrorSettings};
