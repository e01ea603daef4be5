//! The site's own keys in Redis: torrents, users and clients (M1 to M3), and the channels that tell of changes (M11).
//!
//! # Layout
//!
//! - `read`: what a key says; all keys, page by page
//! - [`follow`]: keeps a gate equal to the keys that the site writes; it counts beside the database
//! - `write`: makes keys say what they should, and tells others of it
//! - [`copy`]: writes a copy of our database into keys, for programs that read them
//! - [`sync`]: the commands that load the keys from our database
//!
//! # Guarantees
//!
//! - A key is the site's own unless it is noted in Redis as a copy of our database (`t:m:copies:<kind>`). The site's own
//!   keys are believed and never changed, unless an operator says so; copies are changed and never believed.
//! - That a key is gone is believed only if Redis says so when asked for this very key: neither a scan that missed it
//!   nor a failure takes anybody or anything out.
//!
//! # Deliberately absent
//!
//! Forbidden prefixes, disabled users and torrents: the layout knows only what is allowed, so these have no key.

pub mod copy;
pub mod follow;
mod read;
pub mod sync;
mod write;

use std::sync::atomic::AtomicU64;

use domain::{InfoHash, Passkey};
use keyspace::{MirrorKey, MirrorNames, Redis, SiteChannels};

use crate::clients::ClientPrefix;

pub use copy::{Copier, CopyCounters, CopyNotes, CopyParts};
pub use follow::{SiteFollower, SiteReader};
pub use sync::{SyncOptions, SyncReport};

/// A kind of the site's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `t:info_hash:<infohash>` (M1).
    Torrents,
    /// `t:user:<passkey>` (M3).
    Users,
    /// `t:whitelist:<prefix>` (M2).
    Clients,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Torrents, Kind::Users, Kind::Clients];

    /// Its name in messages and in our mark.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Torrents => "torrents",
            Kind::Users => "users",
            Kind::Clients => "clients",
        }
    }

    const fn key(self) -> MirrorKey {
        match self {
            Kind::Torrents => MirrorKey::InfoHash,
            Kind::Users => MirrorKey::User,
            Kind::Clients => MirrorKey::Whitelist,
        }
    }
}

/// What a key is about. Passkeys are secrets: `Debug` shows only their first digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The torrent with this infohash.
    Torrent(InfoHash),
    /// The user with this passkey.
    User(Passkey),
    /// The clients with this prefix.
    Client(ClientPrefix),
}

impl Subject {
    /// Which kind of key it has.
    pub const fn kind(&self) -> Kind {
        match self {
            Subject::Torrent(_) => Kind::Torrents,
            Subject::User(_) => Kind::Users,
            Subject::Client(_) => Kind::Clients,
        }
    }

    /// Reads what stands in a key or comes over a channel.
    fn parse(kind: Kind, text: &str) -> Option<Subject> {
        match kind {
            Kind::Torrents => text.parse().ok().map(Subject::Torrent),
            Kind::Users => text.parse().ok().map(Subject::User),
            Kind::Clients => text.parse().ok().map(Subject::Client),
        }
    }

    fn text(&self) -> String {
        match self {
            Subject::Torrent(info_hash) => info_hash.to_string(),
            Subject::User(passkey) => passkey.to_string(),
            Subject::Client(prefix) => prefix.to_string(),
        }
    }
}

/// Where the site's keys are, and what they are called.
#[derive(Clone, Debug)]
pub struct SiteKeys {
    redis: Redis,
    names: MirrorNames,
    channels: SiteChannels,
}

impl SiteKeys {
    /// The keys in this Redis.
    pub fn new(redis: Redis, names: MirrorNames, channels: SiteChannels) -> Self {
        SiteKeys { redis, names, channels }
    }

    /// The Redis they are in.
    pub fn redis(&self) -> &Redis {
        &self.redis
    }

    fn key_of(&self, subject: &Subject) -> String {
        match subject {
            Subject::Torrent(info_hash) => self.names.info_hash(info_hash),
            Subject::User(passkey) => self.names.user(passkey),
            Subject::Client(prefix) => self.names.whitelist(&prefix.to_string()),
        }
    }

    fn channel_of(&self, kind: Kind) -> &str {
        match kind {
            Kind::Torrents => &self.channels.torrent,
            Kind::Users => &self.channels.user,
            Kind::Clients => &self.channels.whitelist,
        }
    }
}

/// What a follower of the site's keys did, counted since its start.
#[derive(Debug, Default)]
pub struct SiteKeyCounters {
    /// Times that all keys were looked at.
    pub rounds: AtomicU64,
    /// Such times that broke off.
    pub rounds_failed: AtomicU64,
    /// Such times that found so little that they were not believed.
    pub rounds_empty: AtomicU64,
    /// Messages of the site.
    pub messages: AtomicU64,
    /// Messages that nobody understands.
    pub messages_bad: AtomicU64,
    /// Changes that were taken in.
    pub changes: AtomicU64,
    /// Keys that nobody understands, in the last round: their names or what they hold.
    pub keys_bad: AtomicU64,
    /// Keys that say what another key says otherwise, in the last round: a second passkey of a user, a third infohash
    /// of a torrent.
    pub keys_surplus: AtomicU64,
}
