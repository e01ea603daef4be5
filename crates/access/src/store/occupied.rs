//! Keeps us out of a site's own database.
//!
//! A site surely has a table named `users`. To take it for ours, put triggers on it and find columns missing later
//! would be worse than not to start.

use database::Database;
use sqlx::{MySqlPool, PgPool};

use super::MIGRATIONS_TABLE;
use crate::error::AccessError;

/// Fails where the database of a server has tables of our names that are not ours.
///
/// Ours are never there without the account of migrations, which is made first; so it is looked for last, and another
/// process that makes both just now is not mistaken for a site. A SQLite file is ours alone, and refuses by itself.
pub(super) async fn check(database: &Database) -> Result<(), AccessError> {
    let outcome = match database {
        Database::Sqlite(_) => return Ok(()),
        Database::Postgres(pool) => postgres(pool).await,
        Database::MySql(pool) => mysql(pool).await,
    };
    match outcome.map_err(|error| AccessError::Database(database.explain(error)))? {
        Some(table) => Err(AccessError::Occupied { shown: database.shown(), table }),
        None => Ok(()),
    }
}

async fn postgres(pool: &PgPool) -> Result<Option<String>, sqlx::Error> {
    let occupied: Option<String> = sqlx::query_scalar(
        "SELECT name FROM unnest(ARRAY['users', 'torrents', 'clients', 'api_keys']) AS name
         WHERE to_regclass(name) IS NOT NULL LIMIT 1",
    )
    .fetch_optional(pool)
    .await?;
    if occupied.is_none() {
        return Ok(None);
    }
    let is_ours: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(MIGRATIONS_TABLE)
        .fetch_one(pool)
        .await?;
    Ok(occupied.filter(|_| !is_ours))
}

async fn mysql(pool: &MySqlPool) -> Result<Option<String>, sqlx::Error> {
    let occupied: Option<String> = sqlx::query_scalar(
        "SELECT table_name FROM information_schema.tables
         WHERE table_schema = database() AND table_name IN ('users', 'torrents', 'clients', 'api_keys') LIMIT 1",
    )
    .fetch_optional(pool)
    .await?;
    if occupied.is_none() {
        return Ok(None);
    }
    let ours: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = ?",
    )
    .bind(MIGRATIONS_TABLE)
    .fetch_one(pool)
    .await?;
    Ok(occupied.filter(|_| ours == 0))
}
