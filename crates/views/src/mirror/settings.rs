//! What can be set, and whom to ask.

use async_trait::async_trait;
use domain::{InfoHash, Passkey, Seconds, SilenceLimit, TorrentId, UserId};

/// What a mirror goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorSettings {
    /// A peer is gone this long after its last announce (M6), at the least.
    pub reap_after: Seconds,
    /// How much longer than the interval it was told a peer may take, at the least.
    pub peer_grace: Seconds,
    /// The journal's group of the mirror.
    pub group: String,
    /// Who leeched and left with less active time than this is a hit and run (M8). Zero turns it off.
    pub hit_and_run_active: Seconds,
    /// How long a peer that left is remembered. Zero means for ever.
    pub inactive_keep: Seconds,
    /// Torrents that one step of the sweep looks at, about.
    pub reconcile_torrents: usize,
    /// The channel on which expired peers are published (M11).
    pub channel_expired: String,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        MirrorSettings {
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

impl MirrorSettings {
    /// When a peer is gone that was told to come back after `interval`.
    pub fn reap_after_of(&self, interval: Seconds) -> Seconds {
        let limit = SilenceLimit { interval: Seconds(0), grace: self.peer_grace };
        self.reap_after.max(limit.of(interval))
    }
}

/// Knows users by their passkeys and torrents by their infohashes, for entries that do not bring the numbers. Looking up
/// must not wait.
#[async_trait]
pub trait Directory: Send + Sync {
    /// The user with this passkey.
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    /// The number and the one name of the torrent with this infohash.
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)>;

    /// Whether it is known for sure that the site has removed this torrent. What nobody remembers was not.
    fn is_removed(&self, _torrent: TorrentId, _info_hash: &InfoHash) -> bool {
        false
    }

    /// Waits until it knows whatever was registered before an entry was written at `written_ms`, in bounded time.
    async fn catch_up(&self, _written_ms: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m6_a_peer_that_was_told_to_stay_away_longer_is_waited_for_longer() {
        let settings = MirrorSettings::default();
        assert_eq!(settings.reap_after_of(Seconds(60)), Seconds(2410));
        assert_eq!(settings.reap_after_of(Seconds(1800)), Seconds(2410));
        assert_eq!(settings.reap_after_of(Seconds(3600)), Seconds(4210));
        assert_eq!(settings.reap_after_of(Seconds(u32::MAX)), Seconds(7 * 24 * 60 * 60 + 610));
    }
}
