//! The keys `t:*` of the Redis source (M1 to M3) and of the mirror (M4 to M10).
//!
//! On a single Redis the names are those of the requirements. On a cluster, keys of one script share a slot: all keys
//! of a torrent by `{<torrent>}`, all statistics and indexes by `{t}`.
//!
//! Private keys, which only Rollcall reads and writes, begin with `t:m:`.

use std::fmt::Display;

use domain::{InfoHash, Passkey, PeerId, TorrentId, UserId};

use crate::settings::Mode;

/// A kind of key whose name has no parameter, or a parameter that is parsed from names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorKey {
    /// String: torrent id (M1).
    InfoHash,
    /// String: client name (M2).
    Whitelist,
    /// Hash: `user_id` (M3).
    User,
    /// String: leechers of all torrents (M9).
    StatsLeechers,
    /// String: seeders of all torrents (M9).
    StatsSeeders,
    /// String: announces of all torrents (M9).
    StatsAnnounces,
    /// String: scrapes (M9).
    StatsScrapes,
    /// String: all requests (M9).
    StatsRequests,
    /// Sorted set: torrents by leechers (M10).
    IndexLeechers,
    /// Sorted set: torrents by seeders (M10).
    IndexSeeders,
    /// Sorted set: torrents by snatches (M10).
    IndexSnatches,
}

impl MirrorKey {
    /// The name after `t:`, up to the parameter if there is one.
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

/// Key names in one mode of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorNames {
    is_cluster: bool,
}

impl MirrorNames {
    pub const fn new(mode: Mode) -> MirrorNames {
        MirrorNames { is_cluster: matches!(mode, Mode::Cluster) }
    }

    /// An id, as a hash tag on a cluster.
    fn tagged(self, id: impl Display) -> String {
        if self.is_cluster { format!("{{{id}}}") } else { id.to_string() }
    }

    /// String: id of the torrent with this infohash (M1).
    pub fn info_hash(self, info_hash: &InfoHash) -> String {
        format!("t:info_hash:{info_hash}")
    }

    /// String: name of the client with this peer id prefix (M2).
    pub fn whitelist(self, prefix: &str) -> String {
        format!("t:whitelist:{prefix}")
    }

    /// Hash: `user_id` of the user with this passkey (M3).
    pub fn user(self, passkey: &Passkey) -> String {
        format!("t:user:{passkey}")
    }

    /// Hash: announces, leechers, seeders and snatches of a torrent (M4).
    pub fn torrent(self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        self.of_info_hash("t:t:", torrent, info_hash)
    }

    /// Set: active peers of a torrent (M7).
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

    /// Torrent and peer of a timeout key (M6); none for another key.
    pub fn parse_peer_timeout(self, key: &str) -> Option<(TorrentId, PeerId)> {
        let (torrent, peer) = key.strip_prefix("t:ptimeout:")?.split_once(':')?;
        let torrent = match self.is_cluster {
            true => torrent.strip_prefix('{')?.strip_suffix('}')?,
            false => torrent,
        };
        Some((torrent.parse().ok()?, peer.parse().ok()?))
    }

    /// Glob pattern of all timeout keys (M6).
    pub fn peer_timeout_pattern(self) -> String {
        format!("t:ptimeout:{}:*", self.tagged('*'))
    }

    /// Glob pattern of all keys of M1, M2 or M3, for `SCAN`.
    pub fn pattern(self, key: MirrorKey) -> String {
        format!("t:{}*", key.suffix())
    }

    /// The infohash, prefix or passkey in a key of M1, M2 or M3; none for another key.
    pub fn parse_subject(self, kind: MirrorKey, key: &str) -> Option<&str> {
        key.strip_prefix("t:")?.strip_prefix(kind.suffix())
    }

    /// Set: torrents on which a peer is active (M7).
    pub fn peer_torrents(self, peer: &PeerId) -> String {
        format!("t:p:{}:torrents", self.tagged(peer))
    }

    /// The four sets of a user (M8): active, complete, incomplete, hit and run.
    pub fn user_sets(self, user: UserId) -> [String; 4] {
        ["active", "complete", "incomplete", "hnr"].map(|set| format!("t:u:{}:{set}", self.tagged(user)))
    }

    /// A key without parameter: statistics (M9) and indexes (M10).
    pub fn global(self, key: MirrorKey) -> String {
        format!("{}:{}", self.tagged('t'), key.suffix())
    }

    /// Hash, private: state of a torrent, with watermark, active peers and figures of each user
    /// (`lua/mirror_torrent.lua`).
    pub fn state(self, torrent: TorrentId) -> String {
        format!("t:m:{}", self.tagged(torrent))
    }

    /// String, private: the torrent whose counts and peers are stored under the names with this infohash. On a cluster
    /// these names contain the torrent, so there is no conflict.
    pub fn info_hash_owner(self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        if self.is_cluster {
            format!("t:m:{{{torrent}}}:h:{info_hash}")
        } else {
            format!("t:m:h:{info_hash}")
        }
    }

    /// Sorted set, private: every torrent that was ever announced, by number of announces.
    pub fn index_announces(self) -> &'static str {
        if self.is_cluster { "t:m:{t}:announces" } else { "t:m:announces" }
    }

    /// String, private: lease of the process that writes the mirror.
    pub fn lease(self) -> &'static str {
        "t:m:lease"
    }
}

#[cfg(test)]
mod tests;
