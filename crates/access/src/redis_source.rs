//! The Redis source: keys for torrents, users and clients that the site writes (M1 to M3), and channels on which it
//! publishes changes (M11). In the other direction, the database is copied to the same keys.
//!
//! # Layout
//!
//! - `read`: reads keys, one by one or all in pages
//! - [`follow`]: keeps a gate equal to the keys that the site writes
//! - `write`: writes keys, and publishes changes
//! - [`copy`]: copies the database to keys, for programs that read them
//! - [`sync`]: the commands that load the keys from the database
//!
//! # Guarantees
//!
//! - A key is the site's own unless it is recorded in Redis as a copy of the database (`t:m:copies:<kind>`). The site's own
//!   keys are read and never changed, except by an operator's command; copies are changed and never read as a source.
//! - A key counts as deleted only if Redis confirms that for this key. A scan that missed it or a failure removes nothing.
//!
//! Forbidden prefixes and disabled users and torrents have no key: the format expresses only what is allowed.

pub mod copy;
pub mod follow;
mod read;
pub mod sync;
mod write;

use domain::named;
use std::sync::atomic::AtomicU64;

use domain::{InfoHash, Passkey};
use keyspace::{Redis, RedisSourceChannels, RedisSourceKey};

use crate::clients::ClientPrefix;

pub use copy::{Copier, CopierParts, CopyCounters, CopyQueue};
pub use follow::{RedisSourceFollower, RedisSourceReader};
pub use sync::{SyncOptions, SyncReport};

named! {
    /// A kind of keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// `t:info_hash:<infohash>` (M1).
        Torrents = "torrents",
        /// `t:user:<passkey>` (M3).
        Users = "users",
        /// `t:whitelist:<prefix>` (M2).
        Clients = "clients",
    }
}

impl Kind {
    const fn key(self) -> RedisSourceKey {
        match self {
            Kind::Torrents => RedisSourceKey::InfoHash,
            Kind::Users => RedisSourceKey::User,
            Kind::Clients => RedisSourceKey::Whitelist,
        }
    }
}

/// What a key is about. `Debug` shows only the first digits of a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Torrent(InfoHash),
    User(Passkey),
    Client(ClientPrefix),
}

impl Subject {
    pub const fn kind(&self) -> Kind {
        match self {
            Subject::Torrent(_) => Kind::Torrents,
            Subject::User(_) => Kind::Users,
            Subject::Client(_) => Kind::Clients,
        }
    }

    /// Parses the variable part of a key, or a message of a channel.
    fn parse(kind: Kind, text: &str) -> Option<Subject> {
        match kind {
            Kind::Torrents => text.parse().ok().map(Subject::Torrent),
            Kind::Users => text.parse().ok().map(Subject::User),
            Kind::Clients => text.parse().ok().map(Subject::Client),
        }
    }

    fn key(&self) -> String {
        self.kind().key().name(self.text())
    }

    fn text(&self) -> String {
        match self {
            Subject::Torrent(info_hash) => info_hash.to_string(),
            Subject::User(passkey) => passkey.to_string(),
            Subject::Client(prefix) => prefix.to_string(),
        }
    }
}

/// The keys and channels of one Redis.
#[derive(Clone, Debug)]
pub struct RedisSource {
    redis: Redis,
    channels: RedisSourceChannels,
}

impl RedisSource {
    pub fn new(redis: Redis, channels: RedisSourceChannels) -> Self {
        RedisSource { redis, channels }
    }

    pub fn redis(&self) -> &Redis {
        &self.redis
    }

    fn channel_of(&self, kind: Kind) -> &str {
        match kind {
            Kind::Torrents => &self.channels.torrent,
            Kind::Users => &self.channels.user,
            Kind::Clients => &self.channels.whitelist,
        }
    }
}

/// Counters of a follower.
#[derive(Debug, Default)]
pub struct RedisSourceCounters {
    /// Completed scans of all keys.
    pub scans: AtomicU64,
    pub scans_failed: AtomicU64,
    /// Scans discarded because they missed too many known keys.
    pub scans_discarded: AtomicU64,
    pub messages: AtomicU64,
    pub messages_malformed: AtomicU64,
    /// Changes applied to the gate.
    pub changes: AtomicU64,
    /// Keys with a malformed name or value, in the last scan.
    pub keys_malformed: AtomicU64,
    /// Keys that contradict another key, in the last scan: a second passkey of a user, a third infohash of a torrent.
    pub keys_conflicting: AtomicU64,
}
