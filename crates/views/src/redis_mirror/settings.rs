//! Settings, and the port that resolves users and torrents.

use async_trait::async_trait;
use domain::{InfoHash, Passkey, Seconds, SilenceLimit, TorrentId, UserId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisMirrorSettings {
    /// A peer expires this long after its last announce (M6), or later by its interval.
    pub reap_after: Seconds,
    /// Minimum time beyond its interval after which a peer expires.
    pub peer_grace: Seconds,
    /// Consumer group of the mirror.
    pub group: String,
    /// A user who leeched and left with less active time is a hit and run (M8). 0: off.
    pub hit_and_run_active: Seconds,
    /// How long inactive peers are kept. 0: for ever.
    pub inactive_keep: Seconds,
    /// Approximate number of torrents per step of the sweep.
    pub reconcile_torrents: usize,
    /// Channel for expired peers (M11).
    pub channel_expired: String,
}

impl Default for RedisMirrorSettings {
    fn default() -> Self {
        RedisMirrorSettings {
            reap_after: Seconds(2410),
            peer_grace: Seconds(610),
            group: super::GROUP.to_owned(),
            hit_and_run_active: Seconds(14 * 24 * 60 * 60),
            inactive_keep: Seconds(30 * 24 * 60 * 60),
            reconcile_torrents: 100,
            channel_expired: "t:ch:expired".to_owned(),
        }
    }
}

impl RedisMirrorSettings {
    /// When a peer with this interval expires, counted from its last announce.
    pub fn reap_after_of(&self, interval: Seconds) -> Seconds {
        let limit = SilenceLimit { interval: Seconds(0), grace: self.peer_grace };
        self.reap_after.max(limit.of(interval))
    }
}

/// Resolves passkeys and infohashes of entries without ids. Lookups must not block.
#[async_trait]
pub trait Directory: Send + Sync {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    /// Id and canonical infohash of the torrent with this infohash.
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)>;

    /// Whether the site has certainly removed this torrent; false if unknown.
    fn is_removed(&self, _torrent: TorrentId, _info_hash: &InfoHash) -> bool {
        false
    }

    /// Waits, for a bounded time, until everything that was registered before `written_ms` is known.
    async fn catch_up(&self, _written_ms: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m6_a_peer_with_a_longer_interval_expires_later() {
        let settings = RedisMirrorSettings::default();
        assert_eq!(settings.reap_after_of(Seconds(60)), Seconds(2410));
        assert_eq!(settings.reap_after_of(Seconds(1800)), Seconds(2410));
        assert_eq!(settings.reap_after_of(Seconds(3600)), Seconds(4210));
        assert_eq!(settings.reap_after_of(Seconds(u32::MAX)), Seconds(7 * 24 * 60 * 60 + 610));
    }
}
