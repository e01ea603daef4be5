//! Rows as they stand in the tables, and how they become values.
//!
//! The site may have written anything that SQLite takes, so each column is read by itself and a failure is a reason
//! with the row's name, never a panic and never the end of a list.

use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::store::{Torrent, User};

/// A number as SQL keeps it.
pub(crate) fn sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The user id that SQL keeps as this number.
pub(crate) fn user_id(number: i64) -> Option<UserId> {
    u64::try_from(number).ok().and_then(UserId::new)
}

/// The torrent id that SQL keeps as this number.
pub(crate) fn torrent_id(number: i64) -> Option<TorrentId> {
    u64::try_from(number).ok().and_then(TorrentId::new)
}

/// Reads `id passkey enabled created_at`.
pub(crate) fn read_user(row: &SqliteRow) -> Result<User, AccessError> {
    let number: i64 = column(row, "id", "a user")?;
    let subject = format!("user {number}");
    let id = user_id(number);
    let passkey = Passkey::from_ascii(&bytes(row, "passkey", &subject)?);
    Ok(User {
        id: id.ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        passkey: passkey.map_err(|error| unreadable(&subject, error))?,
        enabled: column(row, "enabled", &subject)?,
        created_at: moment(row, &subject)?,
    })
}

/// Reads `id infohash infohash_v2 name total_bytes enabled created_at`.
pub(crate) fn read_torrent(row: &SqliteRow) -> Result<Torrent, AccessError> {
    let number: i64 = column(row, "id", "a torrent")?;
    let subject = format!("torrent {number}");
    let id = torrent_id(number);
    let info_hash_v2: Option<Vec<u8>> = column(row, "infohash_v2", &subject)?;
    let total_bytes: i64 = column(row, "total_bytes", &subject)?;
    Ok(Torrent {
        id: id.ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        info_hash: info_hash(&bytes(row, "infohash", &subject)?, &subject)?,
        info_hash_v2: info_hash_v2.map(|text| info_hash_v2_of(&text, &subject)).transpose()?,
        name: String::from_utf8_lossy(&bytes(row, "name", &subject)?).into_owned(),
        total_bytes: u64::try_from(total_bytes).unwrap_or(0),
        enabled: column(row, "enabled", &subject)?,
        created_at: moment(row, &subject)?,
    })
}

/// Reads `prefix name allowed`.
pub(crate) fn read_client(row: &SqliteRow) -> Result<ClientRule, AccessError> {
    let text = String::from_utf8_lossy(&bytes(row, "prefix", "a client")?).into_owned();
    let subject = format!("client {text:?}");
    Ok(ClientRule {
        prefix: text.parse().map_err(|error| unreadable(&subject, error))?,
        name: String::from_utf8_lossy(&bytes(row, "name", &subject)?).into_owned(),
        allowed: column(row, "allowed", &subject)?,
    })
}

/// The value, or a warning that names the row.
pub(crate) fn readable<T>(read: Result<T, AccessError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "skipped a row")).ok()
}

fn unreadable(subject: &str, reason: impl ToString) -> AccessError {
    AccessError::Unreadable { subject: subject.to_owned(), reason: reason.to_string() }
}

fn column<'r, T>(row: &'r SqliteRow, name: &'static str, subject: &str) -> Result<T, AccessError>
where
    T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    row.try_get(name).map_err(|_| unreadable(subject, format!("its {name} is of the wrong kind")))
}

/// A text, which need not be UTF-8.
fn bytes(row: &SqliteRow, name: &'static str, subject: &str) -> Result<Vec<u8>, AccessError> {
    column(row, name, subject)
}

/// A moment outside of what we can hold is not worth losing a user over.
fn moment(row: &SqliteRow, subject: &str) -> Result<UnixTime, AccessError> {
    let seconds: i64 = column(row, "created_at", subject)?;
    Ok(UnixTime(seconds.clamp(0, i64::from(u32::MAX)) as u32))
}

fn info_hash(digits: &[u8], subject: &str) -> Result<InfoHash, AccessError> {
    String::from_utf8_lossy(digits).parse().map_err(|error| unreadable(subject, error))
}

/// A v2 hash is known on the wire by its first 20 bytes (BEP 52).
fn info_hash_v2_of(digits: &[u8], subject: &str) -> Result<InfoHash, AccessError> {
    let truncated = if digits.len() == 64 { &digits[..40] } else { digits };
    info_hash(truncated, subject)
}
