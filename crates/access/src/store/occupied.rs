//! Refuses a database of another program.
//!
//! A site's own database usually has a table `users`. Rollcall must not add triggers to it.

use database::{Database, Kind, SqlError, Statement, Value};

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
    if database.kind() == Kind::Sqlite {
        return Ok(());
    }
    let occupied = occupied_by(database).await.map_err(|error| database.explain(error))?;
    match occupied {
        Some(table) => Err(AccessError::Occupied { shown: database.shown(), table }),
        None => Ok(()),
    }
}

async fn occupied_by(database: &Database) -> Result<Option<String>, SqlError> {
    let mysql = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()
         AND table_name {in} LIMIT 1";
    let postgres = "SELECT name FROM unnest(?) AS name WHERE to_regclass(name) IS NOT NULL LIMIT 1";
    let present = Statement::each("", postgres, mysql);
    let occupied: Option<String> = database.query_one(present, &[Value::texts(TABLES)]).await?;
    if occupied.is_none() {
        return Ok(None);
    }
    let migrations: Option<String> = database.query_one(present, &[Value::texts([MIGRATIONS.table])]).await?;
    Ok(occupied.filter(|_| migrations.is_none()))
}
