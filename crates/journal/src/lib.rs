//! One log, many views: every accepted announce becomes an entry here, and everything else follows from the entries.
//!
//! # Layout
//!
//! - [`port`]: what a journal owes its users, whatever it is kept in
//! - [`sqlite`], `redis`: the adapters
//! - [`id`], [`fields`], [`entry`]: an entry: its place, its fields as written, its fields as understood
//! - [`letter`], [`letters`]: entries that a view could not take, with the reason, and what an operator does with them
//! - [`view`]: what a view owes the journal
//! - [`consumer`]: the loop that brings entries into a view
//! - [`ordered`]: the same for a view that minds the order
//! - [`queue`]: between the tracker and the journal: bounded, stored in batches
//! - [`maintenance`]: removes what every view has, and raises the alarm
//! - [`risk`]: risk events: which are reported, and as what
//! - [`search`]: looking for the entries of one user
//! - [`backoff`]: how long to wait before trying again
//! - [`error`]: what can go wrong, and whether waiting helps

pub mod backoff;
pub mod consumer;
pub mod entry;
pub mod error;
pub mod fields;
pub mod id;
pub mod letter;
pub mod letters;
pub mod maintenance;
pub mod ordered;
pub mod port;
pub mod queue;
mod redis;
pub mod risk;
pub mod search;
pub mod sqlite;
pub mod view;

pub use consumer::{Consumer, ConsumerCounters, ConsumerSettings, ProcessName};
pub use entry::{BadEntry, Totals, TrafficEntry};
pub use error::JournalError;
pub use fields::Fields;
pub use id::EntryId;
pub use letter::Letter;
pub use ordered::{OrderedConsumer, OrderedParts, Turn};
pub use port::{
    AppendToken, BoundsHit, ConsumerInfo, GroupStatus, Journal, Lane, LaneStatus, StartAt, Stored, Tail,
    Transfer, Trimmed,
};
pub use queue::{Flusher, Queue};
pub use redis::{RedisJournal, Replicas};
pub use search::{Found, SearchBounds, Sought, SoughtTorrent};
pub use sqlite::SqliteJournal;
pub use view::{Arrival, Batch, Rejected, View, ViewError};
