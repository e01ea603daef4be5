//! Parses rows.
//!
//! The site may have written anything that the database accepts, so each column is parsed separately, and a failure is an
//! error that names the row; other rows are not affected.

use database::{Row, SqlError};
use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};

use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::leech_slots::LeechSlots;
use crate::ports::{BannedPorts, NotPorts, PortRange};
use crate::store::{Torrent, User};

pub(crate) fn sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn user_id(number: i64) -> Option<UserId> {
    u64::try_from(number).ok().and_then(UserId::new)
}

pub(crate) fn torrent_id(number: i64) -> Option<TorrentId> {
    u64::try_from(number).ok().and_then(TorrentId::new)
}

/// A row with a numeric id: a user or a torrent.
pub(crate) trait NumberedRow: Sized {
    const TABLE: &'static str;
    const COLUMNS: &'static str;
    /// Column of `access_counter`.
    const NEWEST_ID: &'static str;

    /// Reads [`NumberedRow::COLUMNS`].
    fn read(row: Row) -> Result<Self, AccessError>;
}

impl NumberedRow for User {
    const TABLE: &'static str = "users";
    const COLUMNS: &'static str = "id, passkey, enabled, vouched, leech_slots, name, sandbox, created_at";
    const NEWEST_ID: &'static str = "newest_user_id";

    fn read(row: Row) -> Result<User, AccessError> {
        read_user(row)
    }
}

impl NumberedRow for Torrent {
    const TABLE: &'static str = "torrents";
    const COLUMNS: &'static str =
        "id, infohash, infohash_v2, name, total_bytes, enabled, approved, leech_slots, created_at";
    const NEWEST_ID: &'static str = "newest_torrent_id";

    fn read(row: Row) -> Result<Torrent, AccessError> {
        read_torrent(row)
    }
}

fn read_user(mut row: Row) -> Result<User, AccessError> {
    let number = column("a user", "id", row.get())?;
    let subject = format!("user {number}");
    let passkey = Passkey::from_ascii(&text(&mut row, "passkey", &subject)?);
    Ok(User {
        id: user_id(number).ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        passkey: passkey.map_err(|error| unreadable(&subject, error))?,
        enabled: column(&subject, "enabled", row.get())?,
        is_external: column(&subject, "vouched", row.get())?,
        leech_slots: slots(&mut row, &subject)?,
        name: column::<Option<Vec<u8>>>(&subject, "name", row.get())?.map(lossy),
        sandbox: column(&subject, "sandbox", row.get())?,
        created_at: time(&mut row, &subject)?,
    })
}

fn read_torrent(mut row: Row) -> Result<Torrent, AccessError> {
    let number = column("a torrent", "id", row.get())?;
    let subject = format!("torrent {number}");
    let info_hash_v1 = text(&mut row, "infohash", &subject)?;
    let info_hash_v2: Option<Vec<u8>> = column(&subject, "infohash_v2", row.get())?;
    Ok(Torrent {
        id: torrent_id(number).ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        info_hash: info_hash(&info_hash_v1, &subject)?,
        info_hash_v2: info_hash_v2.map(|digits| info_hash_v2_of(&digits, &subject)).transpose()?,
        name: lossy(text(&mut row, "name", &subject)?),
        total_bytes: u64::try_from(column::<i64>(&subject, "total_bytes", row.get())?).unwrap_or(0),
        enabled: column(&subject, "enabled", row.get())?,
        approved: column(&subject, "approved", row.get())?,
        leech_slots: slots(&mut row, &subject)?,
        created_at: time(&mut row, &subject)?,
    })
}

/// A torrent of a selection, with its sort columns, which can be present even if the row cannot be parsed.
pub(crate) struct Selected {
    pub(crate) id: Option<i64>,
    pub(crate) total_bytes: Option<i64>,
    pub(crate) created_at: Option<i64>,
    pub(crate) torrent: Result<Torrent, AccessError>,
}

pub(crate) fn read_selected(row: Row) -> Selected {
    let mut columns = row.clone();
    let id = columns.get().ok();
    columns.skip(3);
    let total_bytes = columns.get().ok();
    columns.skip(3);
    Selected { id, total_bytes, created_at: columns.get().ok(), torrent: read_torrent(row) }
}

/// Reads `prefix name allowed`.
pub(crate) fn read_client(mut row: Row) -> Result<ClientRule, AccessError> {
    let prefix = lossy(text(&mut row, "prefix", "a client")?);
    let subject = format!("client {prefix:?}");
    Ok(ClientRule {
        prefix: prefix.parse().map_err(|error| unreadable(&subject, error))?,
        name: lossy(text(&mut row, "name", &subject)?),
        allowed: column(&subject, "allowed", row.get())?,
    })
}

/// Reads `first_port last_port reason`.
pub(crate) fn read_banned_ports(mut row: Row) -> Result<BannedPorts, AccessError> {
    let subject = "a range of banned ports";
    let mut port = |name| -> Result<u16, AccessError> {
        let number: i64 = column(subject, name, row.get())?;
        u16::try_from(number).map_err(|_| unreadable(subject, NotPorts))
    };
    let range = PortRange::new(port("first_port")?, port("last_port")?);
    Ok(BannedPorts {
        range: range.map_err(|error| unreadable(subject, error))?,
        reason: lossy(text(&mut row, "reason", subject)?),
    })
}

/// Logs an error.
pub(crate) fn readable<T>(read: Result<T, AccessError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "skipped a row")).ok()
}

fn unreadable(subject: &str, reason: impl ToString) -> AccessError {
    AccessError::Unreadable { subject: subject.to_owned(), reason: reason.to_string() }
}

fn column<T>(subject: &str, name: &str, read: Result<T, SqlError>) -> Result<T, AccessError> {
    read.map_err(|_| unreadable(subject, format!("its {name} has the wrong type")))
}

/// Need not be UTF-8.
fn text(row: &mut Row, name: &str, subject: &str) -> Result<Vec<u8>, AccessError> {
    let read: Option<Vec<u8>> = column(subject, name, row.get())?;
    read.ok_or_else(|| unreadable(subject, format!("its {name} is missing")))
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn slots(row: &mut Row, subject: &str) -> Result<LeechSlots, AccessError> {
    let number = column(subject, "leech_slots", row.get())?;
    LeechSlots::from_number(number).map_err(|error| unreadable(subject, error))
}

/// Times out of range are clamped: they must not make the row unusable.
fn time(row: &mut Row, subject: &str) -> Result<UnixTime, AccessError> {
    let seconds: i64 = column(subject, "created_at", row.get())?;
    Ok(UnixTime(seconds.clamp(0, i64::from(u32::MAX)) as u32))
}

fn info_hash(digits: &[u8], subject: &str) -> Result<InfoHash, AccessError> {
    String::from_utf8_lossy(digits).parse().map_err(|error| unreadable(subject, error))
}

/// On the wire a v2 hash is truncated to 20 bytes (BEP 52).
fn info_hash_v2_of(digits: &[u8], subject: &str) -> Result<InfoHash, AccessError> {
    let truncated = if digits.len() == 64 { &digits[..40] } else { digits };
    info_hash(truncated, subject)
}
