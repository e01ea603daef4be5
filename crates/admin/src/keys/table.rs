//! The table `api_keys`.

use database::{Database, Row, SqlError, Transaction};
use domain::UnixTime;

use super::text::KeyHash;
use super::{ApiKey, KeyId};
use crate::error::AdminError;

/// More than [`super::KEYS_MAX`] rows can only come from SQL of the site.
const ACTIVE_ROWS_MAX: i64 = 2 * super::KEYS_MAX as i64;

macro_rules! columns {
    ($rest:literal) => {
        concat!("SELECT id, name, hash, scopes, created_at, last_used_at, revoked_at FROM api_keys ", $rest)
    };
}

#[derive(Clone)]
pub(super) struct KeyRow {
    pub(super) key: ApiKey,
    pub(super) hash: KeyHash,
}

/// A row, or why it cannot be parsed.
type Read = Result<KeyRow, AdminError>;

/// Oldest first.
pub(super) async fn all(database: &Database) -> Result<Vec<Read>, SqlError> {
    let rows = database.query(columns!("ORDER BY created_at, id"), &[]).await?;
    Ok(rows.into_iter().map(read).collect())
}

/// Sorted by id.
pub(super) async fn active(database: &Database) -> Result<Vec<Read>, SqlError> {
    let select = columns!("WHERE revoked_at IS NULL ORDER BY id LIMIT ?");
    Ok(database.query(select, &[ACTIVE_ROWS_MAX.into()]).await?.into_iter().map(read).collect())
}

fn read(mut row: Row) -> Read {
    let mut subject = "an API key".to_owned();
    let id = text(&mut row, &subject)?;
    subject = format!("API key {id}");
    let name = text(&mut row, &subject)?;
    let hash = KeyHash::from_hex(text(&mut row, &subject)?.as_bytes());
    let scopes = text(&mut row, &subject)?;
    let mut time = || match row.get::<Option<i64>>() {
        Ok(number) => Ok(number.map(|number| UnixTime(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))),
        Err(error) => Err(unreadable(&subject, error)),
    };
    Ok(KeyRow {
        key: ApiKey {
            id: id.parse().map_err(|error| unreadable(&subject, error))?,
            name,
            scopes: scopes.parse().map_err(|error| unreadable(&subject, error))?,
            created_at: time()?.unwrap_or(UnixTime(0)),
            last_used_at: time()?,
            revoked_at: time()?,
        },
        hash: hash.ok_or_else(|| unreadable(&subject, "its hash is not 64 digits"))?,
    })
}

fn text(row: &mut Row, subject: &str) -> Result<String, AdminError> {
    let bytes: Option<Vec<u8>> = row.get().map_err(|error| unreadable(subject, error))?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}

fn unreadable(subject: &str, reason: impl ToString) -> AdminError {
    AdminError::Unreadable { subject: subject.to_owned(), reason: reason.to_string() }
}

/// Active or not.
pub(super) async fn exists(database: &Database, id: KeyId) -> Result<bool, SqlError> {
    let exists = "SELECT count(*) > 0 FROM api_keys WHERE id = ?";
    Ok(database.query_one(exists, &[id.as_str().into()]).await?.unwrap_or(false))
}

/// Returns whether the key was active; the time of an earlier revocation stays.
pub(super) async fn revoke(database: &Database, id: KeyId, now: UnixTime) -> Result<bool, SqlError> {
    let revoke = "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";
    Ok(database.execute(revoke, &[now.0.into(), id.as_str().into()]).await? > 0)
}

/// An earlier time than the stored one changes nothing.
pub(super) async fn set_last_used(database: &Database, id: KeyId, at: UnixTime) -> Result<(), SqlError> {
    let set =
        "UPDATE api_keys SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)";
    database.execute(set, &[at.0.into(), id.as_str().into(), at.0.into()]).await.map(drop)
}

/// Returns whether there was no key before. A concurrent caller waits for the commit.
pub(super) async fn mark_first_key(transaction: &mut Transaction) -> Result<bool, SqlError> {
    let mark = "{insert or ignore} api_keys_begun (only_row) VALUES (1) {or ignore}";
    Ok(transaction.execute(mark, &[]).await? > 0)
}

pub(super) async fn count_active(transaction: &mut Transaction) -> Result<i64, SqlError> {
    let count = "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL";
    transaction.query_one(count, &[]).await?.ok_or(SqlError::RowMissing)
}

/// Returns whether the id was free.
pub(super) async fn insert(transaction: &mut Transaction, row: &KeyRow) -> Result<bool, SqlError> {
    let KeyRow { key, hash } = row;
    let insert = "{insert or ignore} api_keys (id, name, hash, scopes, created_at)
         VALUES (?, ?, ?, ?, ?) {or ignore}";
    let values = [
        key.id.as_str().into(),
        (&key.name).into(),
        hash.to_hex().into(),
        key.scopes.to_string().into(),
        key.created_at.0.into(),
    ];
    Ok(transaction.execute(insert, &values).await? > 0)
}
