//! Redis: the one place that knows it.
//!
//! # Layout
//!
//! - [`keys`]: every key name, with the requirement it serves
//! - [`settings`]: where Redis is and how to get in
//! - [`handle`]: the handle: commands, pipelines, transactions, connections of one's own
//! - [`listen`]: expired keys and channels, heard from every master; [`notify`]: making Redis tell of expired keys
//! - [`scan`]: every key of a pattern, from every master
//! - `link`, `dial`: one server: connecting, reconnecting
//! - `cluster`: which server holds which slot; `sentinel`: which server is master
//! - [`lease`]: one of many processes at a time
//! - [`slots`]: the slot of a key, the key of a command
//! - [`scripts`]: the Lua files in `lua/`
//! - [`error`]: what can go wrong, and whether waiting helps
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

mod cluster;
mod dial;
pub mod error;
pub mod handle;
pub mod keys;
pub mod lease;
mod link;
pub mod listen;
pub mod notify;
pub mod scan;
pub mod scripts;
mod sentinel;
pub mod settings;
pub mod slots;

pub use dial::Counters;
pub use error::Trouble;
pub use handle::{Dedicated, Redis, Reply, read_reply};
pub use keys::mirror::{MirrorKey, MirrorNames, MirrorTemplates};
pub use keys::presence::{PersonKeys, PresenceKeys};
pub use keys::site::SiteChannels;
pub use keys::{BaseNames, KeyNames};
pub use lease::Lease;
pub use listen::{Heard, ListenCounters, Listener, Wanted};
pub use notify::Notifications;
pub use scan::Scan;
pub use scripts::Script;
pub use settings::{Mode, Node, RedisSettings, Secret, TlsFiles};
pub use slots::slot_of;
