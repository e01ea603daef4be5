//! The Redis source: keys that a site writes for its torrents, clients and users (M1 to M3), the channels on which it
//! publishes changes (M11), and keys that track which of them are copies of our database.

use std::fmt::Display;

/// String, private: set once the site's keys were read; missing after Redis has lost its data.
pub const SOURCE_MARK: &str = "t:m:source";

/// Set, private: infohashes, passkeys or prefixes whose keys are copies of our database. Other keys belong to the site.
pub fn copies(kind: &str) -> String {
    format!("t:m:copies:{kind}")
}

/// A kind of key, whose name ends in an infohash, a prefix or a passkey. The names are the same on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedisSourceKey {
    /// String: id of the torrent with this infohash (M1).
    InfoHash,
    /// String: name of the client with this peer id prefix (M2).
    Whitelist,
    /// Hash: `user_id` of the user with this passkey (M3).
    User,
}

impl RedisSourceKey {
    const fn prefix(self) -> &'static str {
        match self {
            RedisSourceKey::InfoHash => "t:info_hash:",
            RedisSourceKey::Whitelist => "t:whitelist:",
            RedisSourceKey::User => "t:user:",
        }
    }

    pub fn name(self, subject: impl Display) -> String {
        format!("{}{subject}", self.prefix())
    }

    /// Glob pattern of all keys of this kind, for `SCAN`.
    pub fn pattern(self) -> String {
        self.name('*')
    }

    /// The infohash, prefix or passkey in a key of this kind; none for another key.
    pub fn parse_subject(self, key: &str) -> Option<&str> {
        key.strip_prefix(self.prefix())
    }
}

/// Names of the channels from site to tracker (M11). An empty payload means that any of the keys may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSourceChannels {
    /// Infohash that was added, changed or removed.
    pub torrent: String,
    /// Passkey that was added, changed or removed.
    pub user: String,
    /// Client prefix that was added or removed.
    pub whitelist: String,
}

impl Default for RedisSourceChannels {
    fn default() -> Self {
        RedisSourceChannels {
            torrent: "t:ch:torrent".to_owned(),
            user: "t:ch:user".to_owned(),
            whitelist: "t:ch:whitelist".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RedisSourceKey::{InfoHash, User, Whitelist};

    #[test]
    fn m1_names_match_the_requirements_and_are_parsed() {
        assert_eq!(InfoHash.name("1111"), "t:info_hash:1111");
        assert_eq!(Whitelist.name("-TR4"), "t:whitelist:-TR4");
        assert_eq!(User.name("0123456789abcdef"), "t:user:0123456789abcdef");
        assert_eq!(InfoHash.pattern(), "t:info_hash:*");
        assert_eq!(Whitelist.parse_subject("t:whitelist:-TR:4"), Some("-TR:4"));
        assert_eq!(InfoHash.parse_subject("t:info_hash:1111"), Some("1111"));
        assert_eq!(User.parse_subject("t:info_hash:1111"), None);
    }
}
