//! The table `api_sessions`.

use database::Database;
use domain::UnixTime;

use super::Session;
use super::secret::SessionHash;
use crate::keys::KeyId;
use crate::store::rows::Columns;

/// Rows removed at once. Only concurrent sign-ins need more than one.
const SURPLUS_ROWS_MAX: i64 = 1000;

#[derive(Clone, Copy)]
pub(super) struct SessionRow {
    pub(super) hash: SessionHash,
    pub(super) session: Session,
}

/// Runs a statement; its value is the number of affected rows.
macro_rules! execute {
    ($database:expr, $question:expr, $dollar:expr, $($value:expr),+) => {
        match $database {
            Database::Sqlite(file) => {
                sqlx::query($question)$(.bind($value))+.execute(&file.pool).await?.rows_affected()
            }
            Database::Postgres(pool) => sqlx::query($dollar)$(.bind($value))+.execute(pool).await?.rows_affected(),
            Database::MySql(pool) => sqlx::query($question)$(.bind($value))+.execute(pool).await?.rows_affected(),
        }
    };
}

pub(super) async fn insert(database: &Database, row: &SessionRow) -> Result<(), sqlx::Error> {
    const QUESTION: &str =
        "INSERT INTO api_sessions (hash, key_id, created_at, expires_at) VALUES (?, ?, ?, ?)";
    const DOLLAR: &str =
        "INSERT INTO api_sessions (hash, key_id, created_at, expires_at) VALUES ($1, $2, $3, $4)";
    let Session { key_id, created_at, expires_at } = row.session;
    execute!(
        database,
        QUESTION,
        DOLLAR,
        row.hash.to_hex(),
        key_id.as_str(),
        i64::from(created_at.0),
        i64::from(expires_at.0)
    );
    Ok(())
}

/// None also for a row that cannot be parsed.
pub(super) async fn find(database: &Database, hash: &SessionHash) -> Result<Option<Session>, sqlx::Error> {
    const QUESTION: &str = "SELECT key_id, created_at, expires_at FROM api_sessions WHERE hash = ?";
    const DOLLAR: &str = "SELECT key_id, created_at, expires_at FROM api_sessions WHERE hash = $1";
    let hash = hash.to_hex();
    Ok(match database {
        Database::Sqlite(file) => {
            sqlx::query(QUESTION).bind(hash).fetch_optional(&file.pool).await?.and_then(|row| read(&row))
        }
        Database::Postgres(pool) => {
            sqlx::query(DOLLAR).bind(hash).fetch_optional(pool).await?.and_then(|row| read(&row))
        }
        Database::MySql(pool) => {
            sqlx::query(QUESTION).bind(hash).fetch_optional(pool).await?.and_then(|row| read(&row))
        }
    })
}

fn read(row: &impl Columns) -> Option<Session> {
    let time = |name: &str| {
        let number = row.maybe_number(name).ok()??;
        Some(UnixTime(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
    };
    let key_id = row.maybe_text("key_id").ok()??;
    Some(Session {
        key_id: std::str::from_utf8(&key_id).ok()?.parse().ok()?,
        created_at: time("created_at")?,
        expires_at: time("expires_at")?,
    })
}

/// Returns whether the session existed.
pub(super) async fn remove(database: &Database, hash: &SessionHash) -> Result<bool, sqlx::Error> {
    const QUESTION: &str = "DELETE FROM api_sessions WHERE hash = ?";
    const DOLLAR: &str = "DELETE FROM api_sessions WHERE hash = $1";
    Ok(execute!(database, QUESTION, DOLLAR, hash.to_hex()) > 0)
}

/// Removes the oldest sessions of a key that has more than `max`. Returns how many.
pub(super) async fn remove_surplus(database: &Database, key_id: KeyId, max: u32) -> Result<u64, sqlx::Error> {
    const QUESTION: &str =
        "SELECT hash FROM api_sessions WHERE key_id = ? ORDER BY created_at DESC, hash LIMIT ? OFFSET ?";
    const DOLLAR: &str =
        "SELECT hash FROM api_sessions WHERE key_id = $1 ORDER BY created_at DESC, hash LIMIT $2 OFFSET $3";
    const REMOVE_QUESTION: &str = "DELETE FROM api_sessions WHERE hash = ?";
    const REMOVE_DOLLAR: &str = "DELETE FROM api_sessions WHERE hash = $1";
    macro_rules! select {
        ($sql:expr, $pool:expr) => {
            sqlx::query_scalar($sql)
                .bind(key_id.as_str())
                .bind(SURPLUS_ROWS_MAX)
                .bind(i64::from(max))
                .fetch_all($pool)
                .await?
        };
    }
    let hashes: Vec<String> = match database {
        Database::Sqlite(file) => select!(QUESTION, &file.pool),
        Database::Postgres(pool) => select!(DOLLAR, pool),
        Database::MySql(pool) => select!(QUESTION, pool),
    };
    let mut removed = 0;
    for hash in &hashes {
        removed += execute!(database, REMOVE_QUESTION, REMOVE_DOLLAR, hash);
    }
    Ok(removed)
}

/// Removes expired sessions and those of revoked keys. Returns how many.
pub(super) async fn sweep(database: &Database, now: UnixTime) -> Result<u64, sqlx::Error> {
    const QUESTION: &str = "DELETE FROM api_sessions WHERE expires_at <= ? \
         OR key_id NOT IN (SELECT id FROM api_keys WHERE revoked_at IS NULL)";
    const DOLLAR: &str = "DELETE FROM api_sessions WHERE expires_at <= $1 \
         OR key_id NOT IN (SELECT id FROM api_keys WHERE revoked_at IS NULL)";
    Ok(execute!(database, QUESTION, DOLLAR, i64::from(now.0)))
}

pub(super) async fn count(database: &Database) -> Result<i64, sqlx::Error> {
    const SQL: &str = "SELECT count(*) FROM api_sessions";
    match database {
        Database::Sqlite(file) => sqlx::query_scalar(SQL).fetch_one(&file.pool).await,
        Database::Postgres(pool) => sqlx::query_scalar(SQL).fetch_one(pool).await,
        Database::MySql(pool) => sqlx::query_scalar(SQL).fetch_one(pool).await,
    }
}
