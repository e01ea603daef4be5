//! The table `api_sessions`.

use database::{Database, Row, SqlError, Value};
use domain::UnixTime;

use super::Session;
use super::secret::SessionHash;
use crate::keys::KeyId;

/// Rows removed at once. Only concurrent sign-ins need more than one.
const SURPLUS_ROWS_MAX: i64 = 1000;

#[derive(Clone, Copy)]
pub(super) struct SessionRow {
    pub(super) hash: SessionHash,
    pub(super) session: Session,
}

pub(super) async fn insert(database: &Database, row: &SessionRow) -> Result<(), SqlError> {
    let Session { key_id, created_at, expires_at } = row.session;
    let values = [row.hash.to_hex().into(), key_id.as_str().into(), created_at.0.into(), expires_at.0.into()];
    let insert = "INSERT INTO api_sessions (hash, key_id, created_at, expires_at) VALUES (?, ?, ?, ?)";
    database.execute(insert, &values).await.map(drop)
}

/// None also for a row that cannot be parsed.
pub(super) async fn find(database: &Database, hash: &SessionHash) -> Result<Option<Session>, SqlError> {
    let select = "SELECT key_id, created_at, expires_at FROM api_sessions WHERE hash = ?";
    Ok(database.query_one(select, &[hash.to_hex().into()]).await?.and_then(read))
}

fn read(mut row: Row) -> Option<Session> {
    let key_id: String = row.get().ok()?;
    let mut time = || {
        let number: i64 = row.get().ok()?;
        Some(UnixTime(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
    };
    Some(Session { key_id: key_id.parse().ok()?, created_at: time()?, expires_at: time()? })
}

/// Returns whether the session existed.
pub(super) async fn remove(database: &Database, hash: &SessionHash) -> Result<bool, SqlError> {
    let delete = "DELETE FROM api_sessions WHERE hash = ?";
    Ok(database.execute(delete, &[hash.to_hex().into()]).await? > 0)
}

/// Removes the oldest sessions of a key that has more than `max`. Returns how many.
pub(super) async fn remove_surplus(database: &Database, key_id: KeyId, max: u32) -> Result<u64, SqlError> {
    let select =
        "SELECT hash FROM api_sessions WHERE key_id = ? ORDER BY created_at DESC, hash LIMIT ? OFFSET ?";
    let hashes: Vec<String> =
        database.query(select, &[key_id.as_str().into(), SURPLUS_ROWS_MAX.into(), max.into()]).await?;
    if hashes.is_empty() {
        return Ok(0);
    }
    database.execute("DELETE FROM api_sessions WHERE hash {in}", &[Value::Texts(hashes)]).await
}

/// Removes expired sessions and those of revoked keys. Returns how many.
pub(super) async fn sweep(database: &Database, now: UnixTime) -> Result<u64, SqlError> {
    let delete = "DELETE FROM api_sessions WHERE expires_at <= ? \
         OR key_id NOT IN (SELECT id FROM api_keys WHERE revoked_at IS NULL)";
    database.execute(delete, &[now.0.into()]).await
}

pub(super) async fn count(database: &Database) -> Result<i64, SqlError> {
    database.query_one("SELECT count(*) FROM api_sessions", &[]).await?.ok_or(SqlError::RowMissing)
}
