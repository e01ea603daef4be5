//! Parses rows.
//!
//! The site may have written anything that the database accepts, so each column is parsed separately, and a failure is an
//! error that names the row; other rows are not affected.

use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};
use sqlx::Row;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::clients::ClientRule;
use crate::error::AccessError;
use crate::ports::{BannedPorts, NotPorts, PortRange};
use crate::slots::LeechSlots;
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

/// Columns of a row of any database, by name.
pub(crate) trait Columns {
    fn number(&self, name: &str) -> Result<i64, sqlx::Error>;
    fn maybe_number(&self, name: &str) -> Result<Option<i64>, sqlx::Error>;
    fn flag(&self, name: &str) -> Result<bool, sqlx::Error>;
    /// Need not be UTF-8.
    fn maybe_text(&self, name: &str) -> Result<Option<Vec<u8>>, sqlx::Error>;
}

macro_rules! columns {
    ($row:ty, $text:ty) => {
        impl Columns for $row {
            fn number(&self, name: &str) -> Result<i64, sqlx::Error> {
                self.try_get(name)
            }
            fn maybe_number(&self, name: &str) -> Result<Option<i64>, sqlx::Error> {
                self.try_get(name)
            }
            fn flag(&self, name: &str) -> Result<bool, sqlx::Error> {
                self.try_get(name)
            }
            fn maybe_text(&self, name: &str) -> Result<Option<Vec<u8>>, sqlx::Error> {
                Ok(self.try_get::<Option<$text>, _>(name)?.map(Into::into))
            }
        }
    };
}

columns!(SqliteRow, Vec<u8>);
columns!(PgRow, String);
columns!(MySqlRow, Vec<u8>);

/// Reads `id passkey enabled vouched leech_slots name sandbox created_at`. `vouched` marks external users; the column keeps
/// its name, because the previous version continues on these tables if a take-over fails.
pub(crate) fn read_user(row: &impl Columns) -> Result<User, AccessError> {
    let number = column("a user", "id", row.number("id"))?;
    let subject = format!("user {number}");
    let id = user_id(number);
    let name = column(&subject, "name", row.maybe_text("name"))?;
    let passkey = Passkey::from_ascii(&text(row, "passkey", &subject)?);
    Ok(User {
        id: id.ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        passkey: passkey.map_err(|error| unreadable(&subject, error))?,
        enabled: column(&subject, "enabled", row.flag("enabled"))?,
        is_external: column(&subject, "vouched", row.flag("vouched"))?,
        leech_slots: slots(row, &subject)?,
        name: name.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        sandbox: column(&subject, "sandbox", row.flag("sandbox"))?,
        created_at: time(row, &subject)?,
    })
}

/// Reads `id infohash infohash_v2 name total_bytes enabled approved leech_slots created_at`.
pub(crate) fn read_torrent(row: &impl Columns) -> Result<Torrent, AccessError> {
    let number = column("a torrent", "id", row.number("id"))?;
    let subject = format!("torrent {number}");
    let id = torrent_id(number);
    let info_hash_v2 = column(&subject, "infohash_v2", row.maybe_text("infohash_v2"))?;
    let total_bytes = column(&subject, "total_bytes", row.number("total_bytes"))?;
    Ok(Torrent {
        id: id.ok_or_else(|| unreadable(&subject, "its id is not positive"))?,
        info_hash: info_hash(&text(row, "infohash", &subject)?, &subject)?,
        info_hash_v2: info_hash_v2.map(|digits| info_hash_v2_of(&digits, &subject)).transpose()?,
        name: String::from_utf8_lossy(&text(row, "name", &subject)?).into_owned(),
        total_bytes: u64::try_from(total_bytes).unwrap_or(0),
        enabled: column(&subject, "enabled", row.flag("enabled"))?,
        approved: column(&subject, "approved", row.flag("approved"))?,
        leech_slots: slots(row, &subject)?,
        created_at: time(row, &subject)?,
    })
}

/// A torrent of a selection, with its sort columns, which can be present even if the row cannot be parsed.
pub(crate) struct Selected {
    pub(crate) id: Option<i64>,
    pub(crate) total_bytes: Option<i64>,
    pub(crate) created_at: Option<i64>,
    pub(crate) torrent: Result<Torrent, AccessError>,
}

pub(crate) fn read_selected(row: &impl Columns) -> Selected {
    Selected {
        id: row.number("id").ok(),
        total_bytes: row.number("total_bytes").ok(),
        created_at: row.number("created_at").ok(),
        torrent: read_torrent(row),
    }
}

/// Reads `prefix name allowed`.
pub(crate) fn read_client(row: &impl Columns) -> Result<ClientRule, AccessError> {
    let prefix = String::from_utf8_lossy(&text(row, "prefix", "a client")?).into_owned();
    let subject = format!("client {prefix:?}");
    Ok(ClientRule {
        prefix: prefix.parse().map_err(|error| unreadable(&subject, error))?,
        name: String::from_utf8_lossy(&text(row, "name", &subject)?).into_owned(),
        allowed: column(&subject, "allowed", row.flag("allowed"))?,
    })
}

/// Reads `first_port last_port reason`.
pub(crate) fn read_banned_ports(row: &impl Columns) -> Result<BannedPorts, AccessError> {
    let subject = "a range of banned ports";
    let port = |name| -> Result<u16, AccessError> {
        let number = column(subject, name, row.number(name))?;
        u16::try_from(number).map_err(|_| unreadable(subject, NotPorts))
    };
    let range = PortRange::new(port("first_port")?, port("last_port")?);
    Ok(BannedPorts {
        range: range.map_err(|error| unreadable(subject, error))?,
        reason: String::from_utf8_lossy(&text(row, "reason", subject)?).into_owned(),
    })
}

/// Logs an error.
pub(crate) fn readable<T>(read: Result<T, AccessError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "skipped a row")).ok()
}

fn unreadable(subject: &str, reason: impl ToString) -> AccessError {
    AccessError::Unreadable { subject: subject.to_owned(), reason: reason.to_string() }
}

fn column<T>(subject: &str, name: &str, read: Result<T, sqlx::Error>) -> Result<T, AccessError> {
    read.map_err(|_| unreadable(subject, format!("its {name} has the wrong type")))
}

fn text(row: &impl Columns, name: &str, subject: &str) -> Result<Vec<u8>, AccessError> {
    let read = column(subject, name, row.maybe_text(name))?;
    read.ok_or_else(|| unreadable(subject, format!("its {name} is missing")))
}

fn slots(row: &impl Columns, subject: &str) -> Result<LeechSlots, AccessError> {
    let number = column(subject, "leech_slots", row.maybe_number("leech_slots"))?;
    LeechSlots::from_number(number).map_err(|error| unreadable(subject, error))
}

/// Times out of range are clamped: they must not make the row unusable.
fn time(row: &impl Columns, subject: &str) -> Result<UnixTime, AccessError> {
    let seconds = column(subject, "created_at", row.number("created_at"))?;
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
