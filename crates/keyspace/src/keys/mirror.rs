//! The keys of the tracker's Redis layout (M1 to M10).
//!
//! On a single Redis the names are those of the requirements. On a cluster, keys that one script touches share a slot:
//! all keys of a torrent by `{<torrent>}`, all statistics and indexes by `{t}`.
//!
//! Private keys, which only Rollcall reads and writes, begin with `t:m:`.

use std::fmt::Display;

use domain::{InfoHash, Passkey, PeerId, TorrentId, UserId};

use crate::settings::Mode;

/// A kind of key whose name has no parameter, or one that is read back from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorKey {
    /// String: a torrent's number (M1).
    InfoHash,
    /// String: a client's name (M2).
    Whitelist,
    /// Hash: `user_id` (M3).
    User,
    /// String: leechers of all torrents (M9).
    StatsLeechers,
    /// String: seeders of all torrents (M9).
    StatsSeeders,
    /// String: announces (M9).
    StatsAnnounces,
    /// String: scrapes (M9).
    StatsScrapes,
    /// String: requests of any kind (M9).
    StatsRequests,
    /// Sorted set: torrents by leechers (M10).
    IndexLeechers,
    /// Sorted set: torrents by seeders (M10).
    IndexSeeders,
    /// Sorted set: torrents by snatches (M10).
    IndexSnatches,
}

impl MirrorKey {
    /// The name after `t:`, or what it begins with for the kinds that have a parameter.
    const fn suffix(self) -> &'static str {
        match self {
            MirrorKey::InfoHash => "info_hash:",
            MirrorKey::Whitelist => "whitelist:",
            MirrorKey::User => "user:",
            MirrorKey::StatsLeechers => "stats:leechers",
            MirrorKey::StatsSeeders => "stats:seeders",
            MirrorKey::StatsAnnounces => "stats:announces",
            MirrorKey::StatsScrapes => "stats:scrapes",
            MirrorKey::StatsRequests => "stats:requests",
            MirrorKey::IndexLeechers => "i:leechers",
            MirrorKey::IndexSeeders => "i:seeders",
            MirrorKey::IndexSnatches => "i:snatches",
        }
    }
}

/// Names of the layout's keys on one kind of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorNames {
    is_cluster: bool,
}

impl MirrorNames {
    /// The names on a Redis of this kind.
    pub const fn new(mode: Mode) -> MirrorNames {
        MirrorNames { is_cluster: matches!(mode, Mode::Cluster) }
    }

    /// An id, as a hash tag on a cluster.
    fn tagged(self, id: impl Display) -> String {
        if self.is_cluster { format!("{{{id}}}") } else { id.to_string() }
    }

    /// String: the number of the torrent with this infohash (M1).
    pub fn info_hash(self, info_hash: &InfoHash) -> String {
        format!("t:info_hash:{info_hash}")
    }

    /// String: the name of the client with this prefix (M2).
    pub fn whitelist(self, prefix: &str) -> String {
        format!("t:whitelist:{prefix}")
    }

    /// Hash: `user_id` of the user with this passkey (M3).
    pub fn user(self, passkey: &Passkey) -> String {
        format!("t:user:{passkey}")
    }

    /// Hash: counts of a torrent (M4).
    pub fn torrent(self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        self.of_info_hash("t:t:", torrent, info_hash)
    }

    /// Set: the active peers of a torrent (M7).
    pub fn torrent_peers(self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        self.of_info_hash("t:tpeers:", torrent, info_hash)
    }

    fn of_info_hash(self, prefix: &str, torrent: TorrentId, info_hash: &InfoHash) -> String {
        if self.is_cluster {
            format!("{prefix}{{{torrent}}}:{info_hash}")
        } else {
            format!("{prefix}{info_hash}")
        }
    }

    /// Hash: a peer (M5).
    pub fn peer(self, torrent: TorrentId, peer: &PeerId) -> String {
        format!("t:p:{}:{peer}", self.tagged(torrent))
    }

    /// String that expires with the peer (M6).
    pub fn peer_timeout(self, torrent: TorrentId, peer: &PeerId) -> String {
        format!("t:ptimeout:{}:{peer}", self.tagged(torrent))
    }

    /// The peer that a timeout key belongs to (M6); none if it is another key.
    pub fn parse_peer_timeout(self, key: &str) -> Option<(TorrentId, PeerId)> {
        let (torrent, peer) = key.strip_prefix("t:ptimeout:")?.split_once(':')?;
        let torrent = match self.is_cluster {
            true => torrent.strip_prefix('{')?.strip_suffix('}')?,
            false => torrent,
        };
        Some((torrent.parse().ok()?, peer.parse().ok()?))
    }

    /// The glob pattern of all timeout keys (M6).
    pub fn peer_timeout_pattern(self) -> String {
        format!("t:ptimeout:{}:*", self.tagged('*'))
    }

    /// The glob pattern of all keys of M1, M2 or M3, for `SCAN`.
    pub fn pattern(self, key: MirrorKey) -> String {
        format!("t:{}*", key.suffix())
    }

    /// The infohash, prefix or passkey that a key of M1, M2 or M3 is about; none if it is another key.
    pub fn parse_subject(self, kind: MirrorKey, key: &str) -> Option<&str> {
        key.strip_prefix("t:")?.strip_prefix(kind.suffix())
    }

    /// Set: the torrents that a peer is on (M7).
    pub fn peer_torrents(self, peer: &PeerId) -> String {
        format!("t:p:{}:torrents", self.tagged(peer))
    }

    /// The four sets of a user (M8): active, complete, incomplete, hit and run.
    pub fn user_sets(self, user: UserId) -> [String; 4] {
        ["active", "complete", "incomplete", "hnr"].map(|set| format!("t:u:{}:{set}", self.tagged(user)))
    }

    /// A key that there is one of: statistics (M9) and indexes (M10).
    pub fn global(self, key: MirrorKey) -> String {
        format!("{}:{}", self.tagged('t'), key.suffix())
    }

    /// Hash, private: the journal position that was applied to a torrent, the last entry of each peer, and the figures
    /// of each user.
    pub fn state(self, torrent: TorrentId) -> String {
        format!("t:m:{}", self.tagged(torrent))
    }

    /// String, private: the torrent whose counts and peers are under the names of this infohash. On a cluster every
    /// torrent has names of its own.
    pub fn info_hash_owner(self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        if self.is_cluster {
            format!("t:m:{{{torrent}}}:h:{info_hash}")
        } else {
            format!("t:m:h:{info_hash}")
        }
    }

    /// Sorted set, private: every torrent that was ever announced, by announces.
    pub fn index_announces(self) -> &'static str {
        if self.is_cluster { "t:m:{t}:announces" } else { "t:m:announces" }
    }

    /// String, private: the lease of the writer.
    pub fn lease(self) -> &'static str {
        "t:m:lease"
    }
}

#[cfg(test)]
mod tests;
