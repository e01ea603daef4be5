//! What the three kinds of databases do alike: the port, whose adapters are [`super::sqlite`], [`super::postgres`] and
//! [`super::mysql`].
//!
//! Rows come back as they could be read: a row that nobody can read is an error of its own inside the result, so that
//! it never hides the rows beside it.

use async_trait::async_trait;
use domain::{InfoHash, Passkey};

use super::catalogue::Selection;
use super::rows::Selected;
use super::users::Keyed;
use super::{NewTorrent, Torrent, TorrentChange, User, UserChange};
use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::ports::{BannedPorts, PortRange};

/// A row, or why it cannot be read.
pub(crate) type Read<T> = Result<T, AccessError>;

/// Some rows in the order of their ids.
#[derive(Debug)]
pub(crate) struct Page<T> {
    /// Those that can be read.
    pub(crate) rows: Vec<T>,
    /// The id of the last row, readable or not; none if there was no row.
    pub(crate) last: Option<i64>,
}

/// The tables over one connection, inside a transaction or outside.
///
/// # Duties
///
/// - An insert that breaks a rule of its table leaves the transaction usable, so that the culprit can be looked up.
/// - Passkeys and infohashes are found whatever the case in which the site wrote them.
/// - Numbers of rows count those that were found, changed or not.
#[async_trait]
pub(crate) trait Tables: Send {
    async fn user(&mut self, id: i64) -> Result<Option<Read<User>>, sqlx::Error>;
    async fn user_by_passkey(&mut self, passkey: &Passkey) -> Result<Option<Read<User>>, sqlx::Error>;
    /// The users behind `after`.
    async fn user_page(&mut self, after: i64, limit: u32) -> Result<Page<User>, sqlx::Error>;
    async fn count_users(&mut self) -> Result<i64, sqlx::Error>;
    /// The ids of those who have this id or this passkey.
    async fn user_holders(&mut self, id: Option<i64>, passkey: &Passkey) -> Result<Vec<i64>, sqlx::Error>;
    /// Adds a user of our own, or one whom somebody else vouches for.
    async fn insert_user(&mut self, user: &Keyed, is_external: bool) -> Result<Read<User>, sqlx::Error>;
    async fn insert_users(&mut self, batch: &[Keyed]) -> Result<Read<()>, sqlx::Error>;
    async fn set_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error>;
    /// Gives another passkey to somebody whom others vouch for; to a user of our own it does nothing.
    async fn set_external_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error>;
    async fn change_user(&mut self, id: i64, change: &UserChange) -> Result<u64, sqlx::Error>;
    /// Marks a user as one of the sandbox.
    async fn mark_sandbox(&mut self, id: i64) -> Result<u64, sqlx::Error>;
    /// Makes somebody who was vouched for a user of our own.
    async fn make_own(&mut self, id: i64) -> Result<u64, sqlx::Error>;
    async fn delete_user(&mut self, id: i64) -> Result<u64, sqlx::Error>;

    async fn torrent(&mut self, id: i64) -> Result<Option<Read<Torrent>>, sqlx::Error>;
    /// By its v1 or its truncated v2 hash.
    async fn torrent_named(&mut self, info_hash: &InfoHash) -> Result<Option<Read<Torrent>>, sqlx::Error>;
    /// The torrents behind `after`.
    async fn torrent_page(&mut self, after: i64, limit: u32) -> Result<Page<Torrent>, sqlx::Error>;
    async fn count_torrents(&mut self) -> Result<i64, sqlx::Error>;
    /// The torrents of a selection, in its order.
    async fn selected_torrents(&mut self, selection: &Selection) -> Result<Vec<Selected>, sqlx::Error>;
    /// The users of a selection, in its order.
    async fn selected_users(&mut self, selection: &Selection) -> Result<Vec<Read<User>>, sqlx::Error>;
    /// The numbers of a selection; of one that only counts, how many there are.
    async fn selected_numbers(&mut self, selection: &Selection) -> Result<Vec<i64>, sqlx::Error>;
    /// Whose size was found to fit.
    async fn insert_torrent(&mut self, torrent: &NewTorrent) -> Result<Read<Torrent>, sqlx::Error>;
    /// Whose sizes were found to fit.
    async fn insert_torrents(&mut self, batch: &[NewTorrent]) -> Result<Read<()>, sqlx::Error>;
    async fn change_torrent(&mut self, id: i64, change: &TorrentChange) -> Result<u64, sqlx::Error>;
    async fn delete_torrent(&mut self, id: i64) -> Result<u64, sqlx::Error>;

    /// All prefixes that can be read, in the order of their spelling.
    async fn all_clients(&mut self) -> Result<Vec<ClientRule>, sqlx::Error>;
    async fn insert_client(&mut self, rule: &ClientRule) -> Result<(), sqlx::Error>;
    /// Deletes a prefix in either of its spellings, as it stands and in hexadecimal.
    async fn delete_client(&mut self, spelling: &str, hex: &str) -> Result<u64, sqlx::Error>;

    /// All banned ports that can be read, by their numbers.
    async fn all_banned_ports(&mut self) -> Result<Vec<BannedPorts>, sqlx::Error>;
    /// Adds a range, or gives it another reason.
    async fn insert_banned_ports(&mut self, ban: &BannedPorts) -> Result<(), sqlx::Error>;
    /// Deletes exactly this range.
    async fn delete_banned_ports(&mut self, range: PortRange) -> Result<u64, sqlx::Error>;
}

/// The tables inside a transaction. Dropped without a commit, nothing has happened.
#[async_trait]
pub(crate) trait Transaction: Tables {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error>;
}
