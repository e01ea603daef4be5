//! Channels on which the site and the tracker tell each other what changed (M11), and the mark on keys that are ours.

use crate::error::Trouble;

/// Hash, private: which of the site's keys (M1 to M3) are a copy of our database, so that keys of others are left alone.
pub const COPIES_MARK: &str = "t:m:copies";

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

impl SiteChannels {
    /// Refuses channels that nobody could tell apart.
    pub fn check(&self) -> Result<(), Trouble> {
        let all = [&self.torrent, &self.user, &self.whitelist, &self.expired];
        for (position, name) in all.iter().enumerate() {
            if name.is_empty() || all[..position].contains(name) {
                return Err(Trouble::settings(format!(
                    "mirror.channel_torrent, channel_user, channel_whitelist and channel_expired must be four different \
                     names (\"{name}\" is empty or there twice)"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m11_channels_are_told_apart() {
        assert!(SiteChannels::default().check().is_ok());
        let twice = SiteChannels { user: "t:ch:torrent".to_owned(), ..SiteChannels::default() };
        assert!(twice.check().unwrap_err().to_string().contains("t:ch:torrent"));
    }
}
