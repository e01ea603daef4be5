//! What can be set, and whom to ask.

use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};

/// What a mirror goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorSettings {
    /// A peer is gone this long after its last announce (M6).
    pub reap_after: Seconds,
    /// Who leeched and left with less active time than this is a hit and run (M8). Zero turns it off.
    pub hit_and_run_active: Seconds,
    /// How long a peer that left is remembered. Zero means for ever.
    pub inactive_keep: Seconds,
    /// Torrents that one step of the sweep looks at, about.
    pub reconcile_torrents: usize,
    /// The channel on which reaped peers are told (M11).
    pub channel_expired: String,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        MirrorSettings {
            reap_after: Seconds(2410),
            hit_and_run_active: Seconds(14 * 24 * 60 * 60),
            inactive_keep: Seconds(30 * 24 * 60 * 60),
            reconcile_torrents: 100,
            channel_expired: "t:ch:expired".to_owned(),
        }
    }
}

/// Knows users by their passkeys and torrents by their infohashes, for entries that do not bring the numbers. Must not
/// wait.
pub trait Directory: Send + Sync {
    /// The user with this passkey.
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    /// The number and the one name of the torrent with this infohash.
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)>;
}
