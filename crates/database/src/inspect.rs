//! Inspects a database without changing it, for `rollcall doctor`.
//!
//! # Guarantees
//!
//! - Nothing is created or migrated. (SQLite may checkpoint an unused write-ahead log; the data stay the same.)
//! - The result is plain data; the caller evaluates it.

use std::path::Path;

use crate::address::Address;
use crate::error::DatabaseError;
use crate::migration::{Migrations, newest_applied};
use crate::sql::{FromRow, Session, SqlError};
use crate::sqlite::SqliteLease;
use crate::{Database, Kind};

/// At most three errors.
const QUICK_CHECK: &str = "PRAGMA quick_check(3)";

/// The tables of one crate, as this version requires them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Table that records the crate's migrations.
    pub table: &'static str,
    /// Newest migration of this version.
    pub newest: i64,
}

impl Migrations {
    /// The schema for a kind of database.
    pub fn schema(&self, kind: Kind) -> Schema {
        Schema { table: self.table, newest: self.newest(kind).unwrap_or(0) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Address without password.
    pub shown: String,
    /// Product and version.
    pub version: String,
    /// The database's clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// For each requested crate: the newest applied migration, if any.
    pub applied: Vec<(Schema, Option<i64>)>,
    /// Settings that affect durability, with their values.
    pub settings: Vec<(&'static str, String)>,
    /// Errors of `PRAGMA quick_check`; empty for servers.
    pub integrity_errors: Vec<String>,
}

/// None if it is a SQLite file that does not exist.
pub async fn inspect(
    url: &str,
    schemas: impl Fn(Kind) -> Vec<Schema>,
) -> Result<Option<Inspection>, DatabaseError> {
    if let Address::Sqlite(path) = Address::parse(url)? {
        return inspect_sqlite(&path, &schemas(Kind::Sqlite)).await;
    }
    let database = Database::open(url).await?;
    let outcome = async {
        let mut session = database.session().await?;
        let inspection = read(&mut session, database.kind(), &schemas(database.kind())).await?;
        session.close().await;
        Ok(inspection)
    };
    let inspection = outcome.await.map_err(|error: SqlError| database.explain(error))?;
    database.close().await;
    Ok(Some(Inspection { shown: database.shown(), ..inspection }))
}

/// None if the file does not exist.
pub async fn inspect_sqlite(path: &Path, schemas: &[Schema]) -> Result<Option<Inspection>, DatabaseError> {
    if !path.exists() {
        return Ok(None);
    }
    let outcome = async {
        let mut session = Session::Sqlite(SqliteLease::open_existing(path).await?);
        session.batch("PRAGMA query_only = ON").await?;
        let inspection = read(&mut session, Kind::Sqlite, schemas).await?;
        session.close().await;
        Ok(inspection)
    };
    let inspection =
        outcome.await.map_err(|error: SqlError| DatabaseError::from_sqlite(path.to_path_buf(), error))?;
    Ok(Some(Inspection { shown: path.display().to_string(), ..inspection }))
}

async fn read(session: &mut Session, kind: Kind, schemas: &[Schema]) -> Result<Inspection, SqlError> {
    let (version, now, settings): (&str, &str, &[(&'static str, &str)]) = match kind {
        Kind::Sqlite => (
            "SELECT 'SQLite ' || sqlite_version()",
            "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
            &[("journal_mode", "PRAGMA journal_mode")],
        ),
        Kind::Postgres => (
            "SELECT 'PostgreSQL ' || current_setting('server_version')",
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            &[("fsync", "SHOW fsync"), ("synchronous_commit", "SHOW synchronous_commit")],
        ),
        Kind::MySql => (
            "SELECT CAST(version() AS CHAR)",
            "SELECT CAST(ROUND(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)",
            &[("innodb_flush_log_at_trx_commit", "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)")],
        ),
    };
    let mut inspection = Inspection {
        shown: String::new(),
        version: one(session, version).await?,
        now_ms: one(session, now).await?,
        applied: Vec::new(),
        settings: Vec::new(),
        integrity_errors: Vec::new(),
    };
    for (name, query) in settings {
        inspection.settings.push((name, one(session, query).await?));
    }
    for schema in schemas {
        inspection.applied.push((*schema, newest_applied(session, kind, schema.table).await?));
    }
    if kind == Kind::Sqlite {
        let errors: Vec<String> = session.query(QUICK_CHECK, &[]).await?;
        inspection.integrity_errors = errors.into_iter().filter(|error| error != "ok").collect();
    }
    Ok(inspection)
}

async fn one<T: FromRow>(session: &mut Session, query: &str) -> Result<T, SqlError> {
    session.query_one(query, &[]).await?.ok_or(SqlError::RowMissing)
}
