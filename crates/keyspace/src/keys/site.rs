//! Channels on which the site and the tracker tell each other what changed (M11), and which of the site's keys (M1 to M3)
//! are copies of our database.

/// String, private: set once the site's keys were read, and gone when Redis has lost its data.
pub const SOURCE_MARK: &str = "t:m:source";

/// Set, private: the infohashes, passkeys or prefixes whose keys are copies of our database. All other keys are the
/// site's own.
pub fn copies(kind: &str) -> String {
    format!("t:m:copies:{kind}")
}

/// The names of the channels (M11). An empty payload on one of the first three means: look at all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteChannels {
    /// Site to tracker: this infohash was added, changed or removed.
    pub torrent: String,
    /// Site to tracker: this passkey was added, changed or removed.
    pub user: String,
    /// Site to tracker: this prefix of clients was added or removed.
    pub whitelist: String,
    /// Tracker to site: `<torrent>:<peer_id>` fell silent.
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
