//! Redis: connections, key names, Lua scripts, subscriptions, leases. Other crates send commands through it only.
//!
//! # Layout
//!
//! - [`keys`]: every key name, with the requirement it serves
//! - [`settings`]: address, mode, TLS and credentials
//! - [`handle`]: the handle: commands, pipelines, transactions, dedicated connections
//! - [`pubsub`]: subscriptions to expired keys and channels on every master; [`notify`]: `notify-keyspace-events`
//! - [`scan`]: `SCAN` by pattern on every master
//! - `link`, `dial`, `outage`: the connection to one server: reconnects, single attempts, one log line per outage
//! - `cluster`: slot map and redirects; `sentinel`: change of master
//! - [`lease`]: a lease that one process at a time holds
//! - [`hash_slots`]: the slot of a key, the first key of a command
//! - [`scripts`]: the Lua files in `lua/`
//! - [`error`]: errors, and which are retryable
//!
//! # Guarantees
//!
//! - No write is sent twice. A command without an answer is reported as [`RedisError::Unanswered`]; only the caller
//!   knows whether it may be repeated. (The driver's cluster connection repeats transactions when a connection breaks,
//!   so `cluster` replaces it.)
//! - A handle survives every outage: it reconnects with bounded exponential backoff and jitter.
//! - No `Display`, `Debug` or error contains a password.
//!
//! # Deliberately absent
//!
//! Reads from replicas: they may be stale, and accounts are exact.
//!
//! # Sending and routing
//!
//! On a cluster, pipelines are grouped by master, and `MOVED` and `ASK` are followed, because such a command was not
//! executed. The sentinels are asked for the master every second, because a former master accepts writes that will be
//! lost. Scripts are called by hash; each Lua file lists its KEYS and ARGV, and all keys of a call share a slot.
//!
//! # Subscriptions
//!
//! A master of a cluster publishes only its own expired keys, so every master has a subscription, and masters are
//! polled every second. Messages are not stored: a subscriber reports a gap when some may have been missed, and its
//! owner reads the keys again. `notify-keyspace-events` is checked on every connection; flags are added, none is
//! removed.

mod cluster;
mod dial;
pub mod error;
pub mod fence;
pub mod handle;
pub mod hash_slots;
pub mod keys;
pub mod lease;
mod link;
pub mod notify;
mod outage;
pub mod pubsub;
pub mod scan;
pub mod scripts;
mod sentinel;
pub mod settings;

pub use dial::Counters;
pub use error::RedisError;
pub use fence::{FenceError, FencedSession};
pub use handle::{DedicatedConnection, Redis, Reply, read_reply};
pub use hash_slots::slot_of;
pub use keys::presence::{PresenceKeys, UserPresenceKeys};
pub use keys::redis_mirror::{RedisMirrorKey, RedisMirrorNames};
pub use keys::redis_source::{RedisSourceChannels, RedisSourceKey};
pub use keys::{BaseNames, KeyNames};
pub use lease::Lease;
pub use notify::ExpiryNotifications;
pub use pubsub::{PubSubCounters, PubSubEvent, Subscriber, Subscriptions};
pub use scan::Scan;
pub use scripts::Script;
pub use settings::{Mode, Node, RedisSettings, Secret, TlsFiles};
