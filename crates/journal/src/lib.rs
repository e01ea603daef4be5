//! The journal: the ordered log of accepted announces, from which every view is computed.
//!
//! # Layout
//!
//! - [`port`]: the trait `Journal` and the duties of an adapter
//! - [`sqlite`], `redis`: the adapters
//! - [`id`], [`fields`], [`entry`]: an entry: its id, its fields as bytes, its fields parsed; `event_fields`: the fields of
//!   an event of our trackers
//! - [`packed`], `block`: events and entries of any producer in few bytes, in the queue and in the embedded journal
//! - [`dead_letter`], [`dead_letters`]: an entry that a view rejected, with the reason; replay and drop by an operator
//! - [`view`]: the trait `View` and the duties of a view
//! - [`consumer`]: the loop that applies entries to a view
//! - [`ordered`]: the same loop for a view that needs the journal's order
//! - [`queue`]: the bounded queue between tracker and journal, appended in batches
//! - [`notes`]: values shared by the processes on one journal; [`pause`]: pausing a view
//! - [`rewind`]: skipped entries, requeued; `rate_limiter`: a limit on entries per second
//! - [`maintenance`]: trims the journal and raises the length alarm
//! - [`risk`]: which risk events are reported, and their fields
//! - [`search`]: search for the entries of one user
//! - [`error`]: errors, and which are retryable
//!
//! # Path of an entry
//!
//! An entry is a list of fields, as any producer may write them, under an id of milliseconds and sequence number. There
//! are four lanes: `traffic`, `dlq`, `failed`, `risk`.
//!
//! - **Queue.** A fixed number of slots. The tracker reserves one before the swarm changes, so an accepted announce can
//!   always be stored. The flusher appends everything queued as one batch, so the batch grows with the load. Listener
//!   threads wake it once per turn of their poll loops; what no reply waits for may collect for 4 ms. A batch has a number and its producer a name: a batch that is sent again because the reply was lost is not
//!   stored twice.
//! - **Consumers.** A reader reads a batch; intake decodes it, applies it, moves rejected entries to the dead letters
//!   and acknowledges the rest, in this order. Consumer names contain node, start of the process, role and incarnation:
//!   no name is ever used twice, and a process recognises the consumers of its node's earlier processes.
//! - **Errors of a view.** Transient (the store is down, busy, full): the same batch is retried with growing delays,
//!   nothing is acknowledged. Rejected entries: dead letters, with reasons. An error that an unknown entry causes: the
//!   batch is halved until one entry is left.
//! - **Fencing.** A consumer that was idle for a minute may only be slow. Before its entries are taken over, the
//!   view fences it: the ledger marks its row under the lock that the consumer itself needs. The fenced consumer can
//!   apply nothing more, and continues under another name. Views for which a repeated entry is harmless need no fence.
//! - **Dead letters** are retried one by one when they are due: the first delay is `journal.retry_delay_s`, each
//!   further one six times as long; after `journal.retry_max` retries an entry is failed. At most ten thousand ids are
//!   held in memory.
//! - **Groups.** A deleted group is created again: the ledger's after the greatest id it applied, others at the oldest
//!   entry.
//! - **Trimming** removes what every group has acknowledged, groups of other programs included, once `journal.keep_s`
//!   has passed. Length has an alarm and no bound: dropping unread entries would be silent loss.
//! - **Pauses.** A pause is a note with a token; each process confirms it with a note of its own once none of its tasks
//!   applies entries, and the command returns when all have. `journal.entries_per_s_max` limits the rate of each view.
//! - **Entries older than the installation** (J11) are acknowledged without being applied, counted, and not trimmed for
//!   a day; `journal rewind` turns them into dead letters of their group, which are applied once. An entry dated more
//!   than a minute ahead is malformed for every view.
//!
//! # Adapters
//!
//! **Redis.** An append is one `MULTI … EXEC` on a connection that watches the producer's key; the key holds the
//! batch's number and is written in the same transaction, so of two attempts the second does nothing. With
//! `journal.wait_replicas`, `WAIT` follows on the same connection; if too few replicas confirm, the batch is sent again
//! under its number: if the key is there, it is touched and the wait repeated; if a failover lost it, the batch is
//! appended again. Moving, taking over and trimming are scripts.
//!
//! **SQLite.** A file of its own. The traffic lane has a row for each append, a block with all its entries, and each
//! group has ranges of what is pending; the other lanes have a row for each entry. Commits that store, deliver or move wait for the disk. Acknowledgements do not: the
//! next delivery flushes them, and entries that are pending again after a power loss are recognised by their ids.
//!
//! # Reading without a group
//!
//! `tail` reads after a cursor and reports whether entries in between are missing (trimmed, or lost by a failover). The
//! search for the entries of one user reads backwards in steps that double from 50 to 1,000, at most 20,000 entries per
//! request: the journal has no index by user, because every announce would pay for it.

mod block;
pub mod consumer;
pub mod dead_letter;
pub mod dead_letters;
pub mod entry;
pub mod error;
mod event_fields;
pub mod fields;
pub mod id;
pub mod maintenance;
pub mod notes;
pub mod ordered;
pub mod packed;
pub mod pause;
pub mod port;
pub mod queue;
mod rate_limiter;
mod redis;
pub mod rewind;
pub mod risk;
pub mod search;
pub mod sqlite;
pub mod view;

pub use consumer::{Consumer, ConsumerCounters, ConsumerSettings, ProcessName};
pub use dead_letter::DeadLetter;
pub use entry::{BadEntry, Totals, TrafficEntry};
pub use error::JournalError;
pub use fields::Fields;
pub use id::EntryId;
pub use notes::{Notes, Skipped};
pub use ordered::{LeaderLease, OrderedConsumer, OrderedParts, keep_lease};
pub use packed::PackedEvents;
pub use port::{
    AppendToken, BoundsHit, ConsumerInfo, GroupStatus, Journal, Lane, LaneStatus, StartAt, Stored, Tail,
    Transfer, Trimmed,
};
pub use queue::{Flusher, Queue};
pub use redis::{RedisJournal, Replicas};
pub use search::{EntryFilter, SearchBounds, SearchResult, TorrentFilter};
pub use sqlite::SqliteJournal;
pub use view::{Batch, DeliveredEntry, Rejected, View, ViewError};
