//! The keys `t:*` of the Redis mirror (M4 to M10), kept by us for other programs.
//!
//! On a single Redis the names are those of the requirements. On a cluster, keys of one script share a slot: all keys
//! of a torrent by `{<torrent>}`, all statistics and indexes by `{t}`.
//!
//! Private keys, which only Rollcall reads and writes, begin with `t:m:`.

use std::fmt::Display;

use domain::{InfoHash, PeerId, TorrentId, UserId};

use crate::settings::Mode;

/// A key without parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RedisMirrorKey {
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

impl RedisMirrorKey {
    /// The name after `t:`.
    const fn suffix(self) -> &'static str {
        match self {
            RedisMirrorKey::StatsLeechers => "stats:leechers",
            RedisMirrorKey::StatsSeeders => "stats:seeders",
            RedisMirrorKey::StatsAnnounces => "stats:announces",
            RedisMirrorKey::StatsScrapes => "stats:scrapes",
            RedisMirrorKey::StatsRequests => "stats:requests",
            RedisMirrorKey::IndexLeechers => "i:leechers",
            RedisMirrorKey::IndexSeeders => "i:seeders",
            RedisMirrorKey::IndexSnatches => "i:snatches",
        }
    }
}

/// Key names in one mode of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisMirrorNames {
    is_cluster: bool,
}

impl RedisMirrorNames {
    pub const fn new(mode: Mode) -> RedisMirrorNames {
        RedisMirrorNames { is_cluster: matches!(mode, Mode::Cluster) }
    }

    /// An id, as a hash tag on a cluster.
    fn tagged(self, id: impl Display) -> String {
        if self.is_cluster { format!("{{{id}}}") } else { id.to_string() }
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

    /// Set: torrents on which a peer is active (M7).
    pub fn peer_torrents(self, peer: &PeerId) -> String {
        format!("t:p:{}:torrents", self.tagged(peer))
    }

    /// The four sets of a user (M8): active, complete, incomplete, hit and run.
    pub fn user_sets(self, user: UserId) -> [String; 4] {
        ["active", "complete", "incomplete", "hnr"].map(|set| format!("t:u:{}:{set}", self.tagged(user)))
    }

    /// A key without parameter: statistics (M9) and indexes (M10).
    pub fn global(self, key: RedisMirrorKey) -> String {
        format!("{}:{}", self.tagged('t'), key.suffix())
    }

    /// Hash, private: state of a torrent, with watermark, active peers and figures of each user.
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

    /// String, private: fence of the Redis mirror; on a cluster the beginning of the fences.
    pub fn fence(self) -> &'static str {
        "t:m:fence"
    }

    /// String, private: lease of the process that writes the Redis mirror.
    pub fn lease(self) -> &'static str {
        "t:m:lease"
    }
}

#[cfg(test)]
mod tests;
