//! Refuses a database of another program.
//!
//! A site's own database usually has a table `users`. Rollcall must not add triggers to it.

use database::Database;
use sqlx::{MySql, MySqlPool, PgPool, QueryBuilder};

use super::MIGRATIONS;
use crate::error::AccessError;

/// Tables of the first migration, and later ones whose migration would not fail if they existed.
const TABLES: [&str; 10] = [
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

/// Fails if a server database has one of these tables but not the table of migrations.
///
/// Migrations create the latter first, so it is checked last: another process may be creating both right now. For a SQLite
/// file the migrations fail by themselves.
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
    .bind(TABLES)
    .fetch_optional(pool)
    .await?;
    if occupied.is_none() {
        return Ok(None);
    }
    let is_migrated: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(MIGRATIONS.table)
        .fetch_one(pool)
        .await?;
    Ok(occupied.filter(|_| !is_migrated))
}

async fn mysql(pool: &MySqlPool) -> Result<Option<String>, sqlx::Error> {
    let mut query = QueryBuilder::<MySql>::new(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name IN ",
    );
    query.push_tuples(TABLES, |mut row, table| {
        row.push_bind(table);
    });
    query.push(" LIMIT 1");
    let occupied: Option<String> = query.build_query_scalar().fetch_optional(pool).await?;
    if occupied.is_none() {
        return Ok(None);
    }
    let migrations: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = ?",
    )
    .bind(MIGRATIONS.table)
    .fetch_one(pool)
    .await?;
    Ok(occupied.filter(|_| migrations == 0))
}
