//! Site profiles: the SQL that reads and writes the tables of one kind of site.
//!
//! A profile is a TOML file of SQL texts. A text contains no values: what differs from row to row is a parameter. Two words in
//! braces stand for parameters:
//!
//! - `{page COLUMN}` ends a SELECT of [`Reads`]: it becomes a condition on this column, the order and the limit of a page.
//! - `{rows}` is a table with the columns that [`Write::columns`] lists; a statement of [`Writes`] joins it.
//!
//! The file is versioned with Rollcall: an operator may print a profile, change the copy, and name its path instead.

use std::collections::BTreeMap;
use std::path::Path;

use database::sql::Type;
use database::{Column, Kind};
use serde::Deserialize;

/// Rows of one page.
pub const PAGE_ROWS: u32 = 2000;

const BUILT_IN: [(&str, &str); 4] = [
    ("unit3d", include_str!("profiles/unit3d.toml")),
    ("nexusphp", include_str!("profiles/nexusphp.toml")),
    ("xbt", include_str!("profiles/xbt.toml")),
    ("prisma", include_str!("profiles/prisma.toml")),
];

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no profile {0:?}: the built-in ones are {list}; or write the path of a file", list = names().join(", "))]
    Unknown(String),
    #[error("cannot read the profile {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error("the profile {name} is not valid TOML for a profile: {source}")]
    Malformed { name: String, source: Box<toml::de::Error> },
    #[error("the profile {name}, {text}: {reason}")]
    Text { name: String, text: String, reason: String },
}

/// The names of the built-in profiles.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// The TOML text of a built-in profile, or of the file at this path.
pub fn text_of(name: &str) -> Result<String, ProfileError> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return Ok((*text).to_owned());
    }
    if !name.contains(['/', '.']) {
        return Err(ProfileError::Unknown(name.to_owned()));
    }
    std::fs::read_to_string(Path::new(name))
        .map_err(|source| ProfileError::Unreadable { path: name.to_owned(), source })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// MariaDB or MySQL.
    MySql,
    Postgres,
}

impl Dialect {
    pub const fn kind(self) -> Kind {
        match self {
            Dialect::MySql => Kind::MySql,
            Dialect::Postgres => Kind::Postgres,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// Raised when a text changes.
    pub version: u32,
    /// Which versions of the site's software it was written for.
    pub about: String,
    pub database: Dialect,
    /// Time zone of columns without one, as the database names it: `+00:00`, `Asia/Shanghai`.
    pub time_zone: String,
    /// The schema of our own tables on the site's server.
    pub marks_schema: String,
    /// The site's tables and the columns that the texts use, separated by spaces.
    pub columns: BTreeMap<String, String>,
    pub read: Reads,
    #[serde(default)]
    pub write: Writes,
}

/// SELECTs. The order of their columns is fixed; an unused one may be NULL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// `id, passkey, enabled, leech_slots`, where slots are a number, -1 for any number, NULL for the configured default.
    pub users: String,
    /// `id, infohash, infohash_v2, enabled, approved, total_bytes, name`; infohashes as bytes or hexadecimal digits.
    pub torrents: String,
    /// `prefix, allowed` of peer ids, as text.
    pub clients: Option<String>,
    /// `user_id, torrent_id, upload_percent, download_percent, exact`; a missing id is NULL or 0 and stands for all. Nothing
    /// improves on an exact one; otherwise the most generous one counts in each direction.
    pub discounts: Option<String>,
}

/// Statements, each over all rows of a flush. A missing one is not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    pub users: Option<String>,
    pub torrents: Option<String>,
    pub accounts: Option<String>,
    pub completions: Option<String>,
    pub peers: Option<String>,
    pub peers_gone: Option<String>,
    pub peers_stale: Option<String>,
}

/// A statement of [`Writes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Write {
    /// A user's amounts differ from what was posted.
    Users,
    /// A torrent's amounts or counts differ from what was posted.
    Torrents,
    /// A user on a torrent announced.
    Accounts,
    /// A user completed a torrent for the first time.
    Completions,
    /// A client on a torrent announced.
    Peers,
    /// A client stopped, expired or was removed.
    PeersGone,
    /// After an interruption: rows older than every live peer are not live.
    PeersStale,
}

macro_rules! columns {
    ($($name:literal: $kind:ident,)+) => { &[$(Column { name: $name, kind: Type::$kind },)+] };
}

impl Write {
    pub const ALL: [Write; 7] = [
        Write::Users,
        Write::Torrents,
        Write::Accounts,
        Write::Completions,
        Write::Peers,
        Write::PeersGone,
        Write::PeersStale,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Write::Users => "users",
            Write::Torrents => "torrents",
            Write::Accounts => "accounts",
            Write::Completions => "completions",
            Write::Peers => "peers",
            Write::PeersGone => "peers_gone",
            Write::PeersStale => "peers_stale",
        }
    }

    pub fn text(self, writes: &Writes) -> Option<&String> {
        match self {
            Write::Users => writes.users.as_ref(),
            Write::Torrents => writes.torrents.as_ref(),
            Write::Accounts => writes.accounts.as_ref(),
            Write::Completions => writes.completions.as_ref(),
            Write::Peers => writes.peers.as_ref(),
            Write::PeersGone => writes.peers_gone.as_ref(),
            Write::PeersStale => writes.peers_stale.as_ref(),
        }
    }

    /// The columns of `{rows}`. `d_` marks a difference, which may be negative; times are seconds since 1970.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Write::Users => columns! {
                "user_id": Integer, "d_uploaded": Decimal, "d_downloaded": Decimal,
                "d_credited_uploaded": Decimal, "d_credited_downloaded": Decimal, "last_at": Integer,
            },
            Write::Torrents => columns! {
                "torrent_id": Integer, "d_uploaded": Decimal, "d_downloaded": Decimal,
                "d_completed": Integer, "seeders": Integer, "leechers": Integer, "last_at": Integer,
            },
            Write::Accounts => columns! {
                "user_id": Integer, "torrent_id": Integer, "d_uploaded": Decimal, "d_downloaded": Decimal,
                "d_credited_uploaded": Decimal, "d_credited_downloaded": Decimal,
                "d_seeding_s": Integer, "d_leeching_s": Integer, "d_completed": Integer,
                "client_uploaded": Decimal, "client_downloaded": Decimal, "left_bytes": Integer,
                "seeding": Boolean, "active": Boolean, "agent": Text, "ip": Text, "port": Integer,
                "completed_at": Integer, "first_at": Integer, "last_at": Integer,
            },
            Write::Completions => columns! {
                "user_id": Integer, "torrent_id": Integer, "completed_at": Integer, "ip": Text,
            },
            Write::Peers => columns! {
                "user_id": Integer, "torrent_id": Integer, "peer_id": Bytes, "ip": Text, "ip_bytes": Bytes,
                "ipv4": Text, "ipv6": Text, "port": Integer, "agent": Text, "uploaded": Decimal,
                "downloaded": Decimal, "left_bytes": Integer, "seeding": Boolean, "last_at": Integer,
            },
            Write::PeersGone => columns! {
                "user_id": Integer, "torrent_id": Integer, "peer_id": Bytes, "last_at": Integer, "cause": Text,
            },
            Write::PeersStale => columns! { "before_at": Integer, },
        }
    }
}

impl Profile {
    /// A built-in profile, or a file.
    pub fn load(name: &str) -> Result<Profile, ProfileError> {
        Profile::parse(name, &text_of(name)?)
    }

    pub fn parse(name: &str, text: &str) -> Result<Profile, ProfileError> {
        let malformed = |source| ProfileError::Malformed { name: name.to_owned(), source: Box::new(source) };
        let profile: Profile = toml::from_str(text).map_err(malformed)?;
        profile.validate().map_err(|(text, reason)| ProfileError::Text {
            name: name.to_owned(),
            text,
            reason: reason.to_owned(),
        })?;
        Ok(profile)
    }

    fn validate(&self) -> Result<(), (String, &'static str)> {
        let at = |text: &str, reason| (text.to_owned(), reason);
        let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"+-:_/".contains(&byte);
        if self.time_zone.is_empty() || !self.time_zone.bytes().all(is_zone) {
            return Err(at("time_zone", "write an offset such as +08:00, or a name such as Asia/Shanghai"));
        }
        if !is_identifier(&self.marks_schema) {
            return Err(at("marks_schema", "a schema name is letters, digits and underscores"));
        }
        for (name, text) in [("read.users", &self.read.users), ("read.torrents", &self.read.torrents)] {
            let ends = text.trim_end().rsplit_once("{page ").is_some_and(|(before, page)| {
                !before.contains(['{', '?']) && page.ends_with('}') && !page.contains(['?', '{'])
            });
            if !ends {
                return Err(at(
                    name,
                    "it must end with {page COLUMN}, and contain no other braces and no question mark",
                ));
            }
        }
        for (name, text) in [("read.clients", &self.read.clients), ("read.discounts", &self.read.discounts)] {
            if text.as_ref().is_some_and(|text| text.contains(['{', '?'])) {
                return Err(at(name, "it has no parameters: no braces and no question mark"));
            }
        }
        for write in Write::ALL {
            let Some(text) = write.text(&self.write) else { continue };
            let is_right =
                text.matches("{rows}").count() == 1 && text.matches('{').count() == 1 && !text.contains('?');
            if !is_right {
                let reason = "it must contain {rows} once, and no other braces and no question mark";
                return Err((format!("write.{}", write.name()), reason));
            }
        }
        Ok(())
    }

    pub fn reads_only(&self) -> bool {
        self.write == Writes::default()
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The statement of a page, with the parameters after which id and how many.
pub(crate) fn page_of(select: &str) -> String {
    with_page(select, |column| format!("{column} > ? ORDER BY {column} LIMIT ?"))
}

/// The statement of one row, with its id as the parameter.
pub(crate) fn row_of(select: &str) -> String {
    with_page(select, |column| format!("{column} = ?"))
}

fn with_page(select: &str, condition: impl Fn(&str) -> String) -> String {
    let select = select.trim_end();
    match select.rsplit_once("{page ") {
        Some((before, column)) => format!("{before}{}", condition(column.trim_end_matches('}'))),
        None => select.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l8_every_built_in_profile_is_valid() {
        for name in names() {
            let profile = Profile::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, name);
            assert!(profile.version > 0 && !profile.columns.is_empty());
        }
        assert!(Profile::load("unit4d").unwrap_err().to_string().contains("unit3d, nexusphp, xbt, prisma"));
    }

    #[test]
    fn a_text_with_values_in_it_is_refused() {
        let text = text_of("xbt").unwrap();
        for (from, to) in
            [("{rows} r", "{rows} r ?"), ("{page u.uid}", "u.uid > 7"), ("\"+00:00\"", "\"'; DROP\"")]
        {
            assert!(text.contains(from), "{from}");
            assert!(Profile::parse("changed", &text.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_select_reads_a_page_or_one_row() {
        let select = "SELECT a FROM t u WHERE b AND {page u.id}\n";
        assert_eq!(page_of(select), "SELECT a FROM t u WHERE b AND u.id > ? ORDER BY u.id LIMIT ?");
        assert_eq!(row_of(select), "SELECT a FROM t u WHERE b AND u.id = ?");
    }
}
