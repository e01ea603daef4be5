//! Redis: connections, key names, scripts. No other crate sends commands without it.
//!
//! # Layout
//!
//! - [`keys`]: every key name, with the requirement it serves
//! - [`settings`]: address, mode, TLS and login
//! - [`handle`]: the handle: commands, pipelines, transactions, dedicated connections
//! - [`pubsub`]: subscriptions to expired keys and channels on every master; [`notify`]: `notify-keyspace-events`
//! - [`scan`]: `SCAN` by pattern on every master
//! - `link`, `dial`, `outage`: one server: connecting, reconnecting, one log line for an outage
//! - `cluster`: which server holds which slot; `sentinel`: which server is master
//! - [`lease`]: a lease that one process at a time holds
//! - [`slots`]: the slot of a key, the key of a command
//! - [`scripts`]: the Lua files in `lua/`
//! - [`error`]: errors, and which are retryable
//!
//! # Guarantees
//!
//! - Nothing that writes is sent twice. What was sent and not answered is reported as that, on a cluster too: only its
//!   sender knows whether it may be repeated. (This is why a cluster is not left to the driver's own cluster
//!   connection, which repeats transactions when a connection breaks.)
//! - A handle outlives every outage: it reconnects by itself, with growing, random, bounded pauses.
//! - No text, no `Debug` and no error shows a password.
//!
//! # Deliberately absent
//!
//! Reading from replicas: what they say may be old, and our accounts are exact.
//!
//! # Sending and routing
//!
//! A command that was sent and not answered is reported as unanswered. On a cluster, pipelines are grouped by slot,
//! and `MOVED` and `ASK` are followed, because such a command was not executed. With sentinels the master is asked for
//! every second, because an old master goes on accepting writes that will be lost. Scripts are called by hash; each
//! Lua file lists its KEYS and ARGV at the top, and all keys of a call share a slot.
//!
//! # Subscriptions
//!
//! A cluster's master publishes only its own expired keys, so each master is subscribed to, and masters are looked for
//! every second. Messages are not stored: a listener reports a gap when some may have been missed, and its user reads
//! the keys again. `notify-keyspace-events` is checked on every connection; flags are added, none is removed.

mod cluster;
mod dial;
pub mod error;
pub mod handle;
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
pub mod slots;

pub use dial::Counters;
pub use error::RedisError;
pub use handle::{DedicatedConnection, Redis, Reply, read_reply};
pub use keys::mirror::{MirrorKey, MirrorNames};
pub use keys::presence::{PresenceKeys, UserPresenceKeys};
pub use keys::site::SiteChannels;
pub use keys::{BaseNames, KeyNames};
pub use lease::Lease;
pub use notify::ExpiryNotifications;
pub use pubsub::{PubSubCounters, PubSubEvent, Subscriber, Subscriptions};
pub use scan::Scan;
pub use scripts::Script;
pub use settings::{Mode, Node, RedisSettings, Secret, TlsFiles};
pub use slots::slot_of;
