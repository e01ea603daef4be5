//! Presence across gateways on Redis.
//!
//! Every gateway is a node. A user's record in Redis is a hash with one entry for each node at which the user has
//! sessions, and fields of the user: the declared status, last seen, two versions, the end of the pending period. A
//! node writes only its own entry; the user's status follows from the whole record.
//!
//! # Layout
//!
//! - [`store`]: [`ClusterStore`], one node: join, renew the lease, leave; [`node`]: node names; [`settings`]: times
//! - [`record`]: what is written and read; `publish`, `watch`, `reap`: write, read, expire the entries of dead nodes
//! - [`inbox`]: reads this node's inbox; [`message`]: messages between gateways that are not records
//! - `notify`: appends to the inboxes of other nodes; `deadlines`: the sorted sets of deadlines
//! - [`shards`]: which node reaps which users
//! - `encoding`, `reply`: text in Redis to values and back
//! - [`counters`]: figures for the metrics page
//!
//! # Guarantees
//!
//! - Devices at different nodes are merged, in any order of writes. A node that was declared dead cannot write.
//! - A node that watches a user receives each change, or an event that entries may be missing.
//! - A node that dies between two steps leaves deadlines that another node finds: its users become pending, then
//!   offline.
//! - Times are Redis's. Values that leave this module are remaining durations, so clocks need not agree.
//! - Malformed values in Redis count as absent, and are counted.
//!
//! # Deliberately absent
//!
//! Scans of keys, and channels that every node subscribes to. Any memory of users: that is the hub's, and SQL's.

pub mod counters;
mod deadlines;
mod encoding;
pub mod inbox;
pub mod message;
pub mod node;
mod notify;
mod publish;
mod reap;
pub mod record;
mod reply;
pub mod settings;
pub mod shards;
pub mod store;
mod watch;

pub use counters::ClusterCounters;
pub use inbox::{Inbox, InboxEvent};
pub use keyspace::RedisError;
pub use message::GatewayMessage;
pub use node::NodeName;
pub use record::{
    EntryChange, EntryUpdate, Membership, PublishOutcome, Record, RecordChange, TimedEntry, WatchReply,
};
pub use settings::ClusterSettings;
pub use store::ClusterStore;
