//! The table `api_keys`.

use database::Database;
use domain::UnixTime;
use sqlx::{MySql, Postgres, Sqlite};

use super::text::KeyHash;
use super::{ApiKey, KeyId};
use crate::error::AccessError;
use crate::store::rows::Columns;

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
type Read = Result<KeyRow, AccessError>;

/// Oldest first.
pub(super) async fn all(database: &Database) -> Result<Vec<Read>, sqlx::Error> {
    const SQL: &str = columns!("ORDER BY created_at, id");
    Ok(match database {
        Database::Sqlite(file) => read_all(&sqlx::query(SQL).fetch_all(&file.pool).await?),
        Database::Postgres(pool) => read_all(&sqlx::query(SQL).fetch_all(pool).await?),
        Database::MySql(pool) => read_all(&sqlx::query(SQL).fetch_all(pool).await?),
    })
}

/// Sorted by id.
pub(super) async fn active(database: &Database) -> Result<Vec<Read>, sqlx::Error> {
    const QUESTION: &str = columns!("WHERE revoked_at IS NULL ORDER BY id LIMIT ?");
    const DOLLAR: &str = columns!("WHERE revoked_at IS NULL ORDER BY id LIMIT $1");
    let max = ACTIVE_ROWS_MAX;
    Ok(match database {
        Database::Sqlite(file) => read_all(&sqlx::query(QUESTION).bind(max).fetch_all(&file.pool).await?),
        Database::Postgres(pool) => read_all(&sqlx::query(DOLLAR).bind(max).fetch_all(pool).await?),
        Database::MySql(pool) => read_all(&sqlx::query(QUESTION).bind(max).fetch_all(pool).await?),
    })
}

fn read_all(rows: &[impl Columns]) -> Vec<Read> {
    rows.iter().map(read).collect()
}

fn read(row: &impl Columns) -> Read {
    let mut subject = "an API key".to_owned();
    let id = text(row, "id", &subject)?;
    subject = format!("API key {id}");
    let time = |name: &str| match row.maybe_number(name) {
        Ok(number) => Ok(number.map(|number| UnixTime(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))),
        Err(error) => Err(unreadable(&subject, error)),
    };
    let hash = KeyHash::from_hex(text(row, "hash", &subject)?.as_bytes());
    Ok(KeyRow {
        key: ApiKey {
            id: id.parse().map_err(|error| unreadable(&subject, error))?,
            name: text(row, "name", &subject)?,
            scopes: text(row, "scopes", &subject)?.parse().map_err(|error| unreadable(&subject, error))?,
            created_at: time("created_at")?.unwrap_or(UnixTime(0)),
            last_used_at: time("last_used_at")?,
            revoked_at: time("revoked_at")?,
        },
        hash: hash.ok_or_else(|| unreadable(&subject, "its hash is not 64 digits"))?,
    })
}

fn text(row: &impl Columns, name: &str, subject: &str) -> Result<String, AccessError> {
    let bytes = row.maybe_text(name).map_err(|error| unreadable(subject, error))?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreadable(subject: &str, reason: impl ToString) -> AccessError {
    AccessError::Unreadable { subject: subject.to_owned(), reason: reason.to_string() }
}

/// Active or not.
pub(super) async fn exists(database: &Database, id: KeyId) -> Result<bool, sqlx::Error> {
    const QUESTION: &str = "SELECT count(*) FROM api_keys WHERE id = ?";
    const DOLLAR: &str = "SELECT count(*) FROM api_keys WHERE id = $1";
    let id = id.as_str();
    let count: i64 = match database {
        Database::Sqlite(file) => sqlx::query_scalar(QUESTION).bind(id).fetch_one(&file.pool).await?,
        Database::Postgres(pool) => sqlx::query_scalar(DOLLAR).bind(id).fetch_one(pool).await?,
        Database::MySql(pool) => sqlx::query_scalar(QUESTION).bind(id).fetch_one(pool).await?,
    };
    Ok(count > 0)
}

/// Returns whether the key was active; the time of an earlier revocation stays.
pub(super) async fn revoke(database: &Database, id: KeyId, now: UnixTime) -> Result<bool, sqlx::Error> {
    const QUESTION: &str = "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";
    const DOLLAR: &str = "UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL";
    macro_rules! revoke {
        ($sql:expr, $pool:expr) => {
            sqlx::query($sql).bind(i64::from(now.0)).bind(id.as_str()).execute($pool).await?.rows_affected()
        };
    }
    let revoked = match database {
        Database::Sqlite(file) => revoke!(QUESTION, &file.pool),
        Database::Postgres(pool) => revoke!(DOLLAR, pool),
        Database::MySql(pool) => revoke!(QUESTION, pool),
    };
    Ok(revoked > 0)
}

/// An earlier time than the stored one changes nothing.
pub(super) async fn set_last_used(database: &Database, id: KeyId, at: UnixTime) -> Result<(), sqlx::Error> {
    const QUESTION: &str =
        "UPDATE api_keys SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)";
    const DOLLAR: &str =
        "UPDATE api_keys SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $3)";
    let at = i64::from(at.0);
    macro_rules! update {
        ($sql:expr, $pool:expr) => {
            sqlx::query($sql).bind(at).bind(id.as_str()).bind(at).execute($pool).await.map(|_| ())
        };
    }
    match database {
        Database::Sqlite(file) => update!(QUESTION, &file.pool),
        Database::Postgres(pool) => update!(DOLLAR, pool),
        Database::MySql(pool) => update!(QUESTION, pool),
    }
}

/// Rolled back if dropped without a commit.
pub(super) enum KeyTransaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
    MySql(sqlx::Transaction<'static, MySql>),
}

impl KeyTransaction {
    pub(super) async fn begin(database: &Database) -> Result<Self, sqlx::Error> {
        Ok(match database {
            Database::Sqlite(file) => KeyTransaction::Sqlite(file.begin_write().await?),
            Database::Postgres(pool) => KeyTransaction::Postgres(pool.begin().await?),
            Database::MySql(pool) => KeyTransaction::MySql(pool.begin().await?),
        })
    }

    /// Returns whether there was no key before. A concurrent caller waits for the commit.
    pub(super) async fn mark_first_key(&mut self) -> Result<bool, sqlx::Error> {
        const SQLITE: &str = "INSERT OR IGNORE INTO api_keys_begun (only_row) VALUES (1)";
        const POSTGRES: &str = "INSERT INTO api_keys_begun (only_row) VALUES (1) ON CONFLICT DO NOTHING";
        const MYSQL: &str = "INSERT IGNORE INTO api_keys_begun (only_row) VALUES (1)";
        let inserted = match self {
            KeyTransaction::Sqlite(held) => sqlx::query(SQLITE).execute(&mut **held).await?.rows_affected(),
            KeyTransaction::Postgres(held) => {
                sqlx::query(POSTGRES).execute(&mut **held).await?.rows_affected()
            }
            KeyTransaction::MySql(held) => sqlx::query(MYSQL).execute(&mut **held).await?.rows_affected(),
        };
        Ok(inserted > 0)
    }

    pub(super) async fn count_active(&mut self) -> Result<i64, sqlx::Error> {
        const SQL: &str = "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL";
        match self {
            KeyTransaction::Sqlite(held) => sqlx::query_scalar(SQL).fetch_one(&mut **held).await,
            KeyTransaction::Postgres(held) => sqlx::query_scalar(SQL).fetch_one(&mut **held).await,
            KeyTransaction::MySql(held) => sqlx::query_scalar(SQL).fetch_one(&mut **held).await,
        }
    }

    /// Returns whether the id was free.
    pub(super) async fn insert(&mut self, row: &KeyRow) -> Result<bool, sqlx::Error> {
        const SQLITE: &str =
            "INSERT OR IGNORE INTO api_keys (id, name, hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)";
        const POSTGRES: &str = "INSERT INTO api_keys (id, name, hash, scopes, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
        const MYSQL: &str =
            "INSERT IGNORE INTO api_keys (id, name, hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)";
        let KeyRow { key, hash } = row;
        macro_rules! insert {
            ($sql:expr, $held:expr) => {
                sqlx::query($sql)
                    .bind(key.id.as_str())
                    .bind(&key.name)
                    .bind(hash.to_hex())
                    .bind(key.scopes.to_string())
                    .bind(i64::from(key.created_at.0))
                    .execute(&mut **$held)
                    .await?
                    .rows_affected()
            };
        }
        let inserted = match self {
            KeyTransaction::Sqlite(held) => insert!(SQLITE, held),
            KeyTransaction::Postgres(held) => insert!(POSTGRES, held),
            KeyTransaction::MySql(held) => insert!(MYSQL, held),
        };
        Ok(inserted > 0)
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            KeyTransaction::Sqlite(held) => held.commit().await,
            KeyTransaction::Postgres(held) => held.commit().await,
            KeyTransaction::MySql(held) => held.commit().await,
        }
    }
}
