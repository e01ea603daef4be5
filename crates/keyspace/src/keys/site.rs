//! Channels between the site and the tracker (M11), and keys that track which of the site's keys (M1 to M3) are copies
//! of our database.

/// String, private: set once the site's keys were read; missing after Redis has lost its data.
pub const SOURCE_MARK: &str = "t:m:source";

/// Set, private: infohashes, passkeys or prefixes whose keys are copies of our database. Other keys belong to the site.
pub fn copies(kind: &str) -> String {
    format!("t:m:copies:{kind}")
}

/// Channel names (M11). An empty payload on one of the first three means that any of its keys may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteChannels {
    /// Site to tracker: infohash that was added, changed or removed.
    pub torrent: String,
    /// Site to tracker: passkey that was added, changed or removed.
    pub user: String,
    /// Site to tracker: client prefix that was added or removed.
    pub whitelist: String,
    /// Tracker to site: `<torrent>:<peer_id>` of an expired peer.
    pub expired: String,
}

impl Default for SiteChannels {
    fn default() -> Self {
        SiteChannels {
            torrent: "t:ch:torrent".to_owned(),
            user: "t:ch:user".to_owned(),
            whitelist: "t:ch:whitelist".to_owned(),
            expired: "t:ch:expired".to_owned(),
        }
    }
}
