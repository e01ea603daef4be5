//! Keeps us out of a site's own database.
//!
//! A site surely has a table named `users`. To take it for ours, put triggers on it and find columns missing later
//! would be worse than not to start.

use database::Database;
use sqlx::{MySql, MySqlPool, PgPool, QueryBuilder};

use super::MIGRATIONS_TABLE;
use crate::error::AccessError;

/// Tables of ours. Those of the first migration, and those that a later one would take for its own.
const OURS: [&str; 10] = [
    "users",
    "torrents",
    "clients",
    "whitelist_generations",
    "whitelist_passkeys",
    "whitelist_state",
    "passkey_changes",
    "api_keys",
    "banned_ports",
    "api_sessions",
];

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
        "SELECT name FROM unnest($1::TEXT[]) AS name WHERE to_regclass(name) IS NOT NULL LIMIT 1",
    )
    .bind(OURS)
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
    let mut look = QueryBuilder::<MySql>::new(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name IN ",
    );
    look.push_tuples(OURS, |mut row, table| {
        row.push_bind(table);
    });
    look.push(" LIMIT 1");
    let occupied: Option<String> = look.build_query_scalar().fetch_optional(pool).await?;
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
