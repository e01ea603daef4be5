//! Looks at a database without changing it: for `rollcall doctor`.
//!
//! # Guarantees
//!
//! - Nothing is made and nothing is migrated: a missing SQLite file stays missing, an old one stays old. (SQLite may fold
//!   a write-ahead log that nobody uses into its file; what is stored stays the same.)
//! - What is found is plain data. What to think of it is decided by whoever asked.

use std::path::Path;

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, MySqlPool, PgPool};

use crate::address::Address;
use crate::error::DatabaseError;
use crate::migration::{Migrations, mysql_version, newest_version, postgres_version, sqlite_version};
use crate::{Database, Kind};

/// How many complaints of SQLite about a damaged file are wanted.
const COMPLAINTS_MAX: &str = "PRAGMA quick_check(3)";

/// The tables of one crate, as this program wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Where the crate keeps account of its migrations.
    pub table: &'static str,
    /// The newest migration that this program knows.
    pub newest: i64,
}

impl Migrations<'_> {
    /// What these bring a database of this kind to.
    pub fn schema(&self, kind: Kind) -> Schema {
        let migrator = match kind {
            Kind::Sqlite => self.sqlite,
            Kind::Postgres => self.postgres,
            Kind::MySql => self.mysql,
        };
        Schema::of(self.table, migrator)
    }
}

impl Schema {
    /// What a crate's migrations bring its tables to.
    pub fn of(table: &'static str, migrator: &sqlx::migrate::Migrator) -> Self {
        Schema { table, newest: newest_version(migrator).unwrap_or(0) }
    }
}

/// What a database says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Where it is, without a password.
    pub shown: String,
    /// The program and its version.
    pub version: String,
    /// What time it is there, in milliseconds since 1970.
    pub now_ms: i64,
    /// For each crate asked about: the newest migration that ran. None if none did.
    pub applied: Vec<(Schema, Option<i64>)>,
    /// Settings that decide what a commit survives, and what they are.
    pub settings: Vec<(&'static str, String)>,
    /// What is wrong with the file of SQLite; empty if nothing is, and for servers.
    pub complaints: Vec<String>,
}

/// Looks at a database. None if it is a SQLite file that is not there.
pub async fn inspect(
    url: &str,
    schemas: impl Fn(Kind) -> Vec<Schema>,
) -> Result<Option<Inspection>, DatabaseError> {
    if let Address::Sqlite(path) = Address::parse(url)? {
        return inspect_sqlite(&path, &schemas(Kind::Sqlite)).await;
    }
    let database = Database::open(url).await?;
    let outcome = match &database {
        Database::Postgres(pool) => look_at_postgres(pool, &schemas(Kind::Postgres)).await,
        Database::MySql(pool) => look_at_mysql(pool, &schemas(Kind::MySql)).await,
        Database::Sqlite(_) => return Ok(None),
    };
    let inspection = outcome.map_err(|error| database.explain(error))?;
    database.close().await;
    Ok(Some(Inspection { shown: database.shown(), ..inspection }))
}

/// Looks at a SQLite file. None if it is not there.
pub async fn inspect_sqlite(path: &Path, schemas: &[Schema]) -> Result<Option<Inspection>, DatabaseError> {
    if !path.exists() {
        return Ok(None);
    }
    let inspection = look_at_sqlite(path, schemas)
        .await
        .map_err(|error| DatabaseError::from_sqlite(path.to_path_buf(), error))?;
    Ok(Some(Inspection { shown: path.display().to_string(), ..inspection }))
}

async fn look_at_sqlite(path: &Path, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .pragma("query_only", "ON")
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    let inspection = ask_sqlite(&mut connection, schemas).await?;
    connection.close().await?;
    Ok(inspection)
}

async fn ask_sqlite(
    connection: &mut SqliteConnection,
    schemas: &[Schema],
) -> Result<Inspection, sqlx::Error> {
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await?;
    let journal_mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *connection).await?;
    let now_ms: i64 = sqlx::query_scalar("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")
        .fetch_one(&mut *connection)
        .await?;
    let mut applied = Vec::new();
    for schema in schemas {
        applied.push((*schema, sqlite_version(connection, schema.table).await?));
    }
    let mut complaints: Vec<String> = sqlx::query_scalar(COMPLAINTS_MAX).fetch_all(&mut *connection).await?;
    complaints.retain(|complaint| complaint != "ok");
    Ok(Inspection {
        shown: String::new(),
        version: format!("SQLite {version}"),
        now_ms,
        applied,
        settings: vec![("journal_mode", journal_mode)],
        complaints,
    })
}

async fn look_at_postgres(pool: &PgPool, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
    let connection: &mut PgConnection = &mut *pool.acquire().await?;
    let version: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut *connection).await?;
    let now_ms: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut *connection)
        .await?;
    let fsync: String = sqlx::query_scalar("SHOW fsync").fetch_one(&mut *connection).await?;
    let synchronous: String =
        sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut *connection).await?;
    let mut applied = Vec::new();
    for schema in schemas {
        applied.push((*schema, postgres_version(connection, schema.table).await?));
    }
    Ok(Inspection {
        shown: String::new(),
        version: format!("PostgreSQL {version}"),
        now_ms,
        applied,
        settings: vec![("fsync", fsync), ("synchronous_commit", synchronous)],
        complaints: Vec::new(),
    })
}

async fn look_at_mysql(pool: &MySqlPool, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
    let connection: &mut MySqlConnection = &mut *pool.acquire().await?;
    let version: String =
        sqlx::query_scalar("SELECT CAST(version() AS CHAR)").fetch_one(&mut *connection).await?;
    let now_ms: i64 = sqlx::query_scalar("SELECT CAST(ROUND(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)")
        .fetch_one(&mut *connection)
        .await?;
    let flush: String = sqlx::query_scalar("SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)")
        .fetch_one(&mut *connection)
        .await?;
    let mut applied = Vec::new();
    for schema in schemas {
        applied.push((*schema, mysql_version(connection, schema.table).await?));
    }
    Ok(Inspection {
        shown: String::new(),
        version,
        now_ms,
        applied,
        settings: vec![("innodb_flush_log_at_trx_commit", flush)],
        complaints: Vec::new(),
    })
}
