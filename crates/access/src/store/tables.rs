//! The port to the tables of users, torrents, clients and ports; its adapters are [`super::sqlite`], [`super::postgres`] and
//! [`super::mysql`].
//!
//! A row that cannot be parsed is an error inside the result, so that it does not hide other rows.

use async_trait::async_trait;
use domain::{InfoHash, Passkey};

use super::catalogue::Selection;
use super::rows::Selected;
use super::users::UserWithPasskey;
use super::{NewTorrent, Torrent, TorrentChange, User, UserChange};
use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::ports::{BannedPorts, PortRange};

/// A row, or why it cannot be parsed.
pub(crate) type Read<T> = Result<T, AccessError>;

/// Rows in the order of their ids.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// The id of the last row, parsed or not; none if there was no row.
    pub(crate) last: Option<i64>,
}

/// The tables over one connection, inside a transaction or outside.
///
/// # Duties
///
/// - An insert that violates a constraint leaves the transaction usable.
/// - Passkeys and infohashes are found in upper or lower case.
/// - Returned row counts include rows that were found but did not change.
#[async_trait]
pub(crate) trait Tables: Send {
    async fn user(&mut self, id: i64) -> Result<Option<Read<User>>, sqlx::Error>;
    async fn user_by_passkey(&mut self, passkey: &Passkey) -> Result<Option<Read<User>>, sqlx::Error>;
    async fn user_page(&mut self, after: i64, limit: u32) -> Result<Page<User>, sqlx::Error>;
    async fn count_users(&mut self) -> Result<i64, sqlx::Error>;
    /// The ids of users with this id or this passkey.
    async fn user_holders(&mut self, id: Option<i64>, passkey: &Passkey) -> Result<Vec<i64>, sqlx::Error>;
    async fn insert_user(
        &mut self,
        user: &UserWithPasskey,
        is_external: bool,
    ) -> Result<Read<User>, sqlx::Error>;
    async fn insert_users(&mut self, batch: &[UserWithPasskey]) -> Result<Read<()>, sqlx::Error>;
    async fn set_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error>;
    /// Changes external users only.
    async fn set_external_passkey(&mut self, id: i64, passkey: &Passkey) -> Result<u64, sqlx::Error>;
    async fn change_user(&mut self, id: i64, change: &UserChange) -> Result<u64, sqlx::Error>;
    async fn mark_sandbox(&mut self, id: i64) -> Result<u64, sqlx::Error>;
    /// Makes an external user a user of the database.
    async fn clear_external(&mut self, id: i64) -> Result<u64, sqlx::Error>;
    async fn delete_user(&mut self, id: i64) -> Result<u64, sqlx::Error>;

    async fn torrent(&mut self, id: i64) -> Result<Option<Read<Torrent>>, sqlx::Error>;
    /// By its v1 or its truncated v2 hash.
    async fn torrent_by_info_hash(
        &mut self,
        info_hash: &InfoHash,
    ) -> Result<Option<Read<Torrent>>, sqlx::Error>;
    async fn torrent_page(&mut self, after: i64, limit: u32) -> Result<Page<Torrent>, sqlx::Error>;
    async fn count_torrents(&mut self) -> Result<i64, sqlx::Error>;
    async fn selected_torrents(&mut self, selection: &Selection) -> Result<Vec<Selected>, sqlx::Error>;
    async fn selected_users(&mut self, selection: &Selection) -> Result<Vec<Read<User>>, sqlx::Error>;
    /// The ids of a selection, or its count.
    async fn selected_numbers(&mut self, selection: &Selection) -> Result<Vec<i64>, sqlx::Error>;
    /// The caller has checked the size.
    async fn insert_torrent(&mut self, torrent: &NewTorrent) -> Result<Read<Torrent>, sqlx::Error>;
    /// The caller has checked the sizes.
    async fn insert_torrents(&mut self, batch: &[NewTorrent]) -> Result<Read<()>, sqlx::Error>;
    async fn change_torrent(&mut self, id: i64, change: &TorrentChange) -> Result<u64, sqlx::Error>;
    async fn delete_torrent(&mut self, id: i64) -> Result<u64, sqlx::Error>;

    /// All prefixes that can be parsed, sorted by their text.
    async fn all_clients(&mut self) -> Result<Vec<ClientRule>, sqlx::Error>;
    async fn insert_client(&mut self, rule: &ClientRule) -> Result<(), sqlx::Error>;
    /// Deletes a prefix in either spelling, plain and hexadecimal.
    async fn delete_client(&mut self, spelling: &str, hex: &str) -> Result<u64, sqlx::Error>;

    /// All ranges that can be parsed, by port.
    async fn all_banned_ports(&mut self) -> Result<Vec<BannedPorts>, sqlx::Error>;
    /// Adds a range, or replaces its reason.
    async fn insert_banned_ports(&mut self, ban: &BannedPorts) -> Result<(), sqlx::Error>;
    /// Deletes exactly this range.
    async fn delete_banned_ports(&mut self, range: PortRange) -> Result<u64, sqlx::Error>;
}

/// The tables inside a transaction, which is rolled back if it is dropped without a commit.
#[async_trait]
pub(crate) trait Transaction: Tables {
    async fn commit(self: Box<Self>) -> Result<(), sqlx::Error>;
}
