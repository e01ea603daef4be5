//! Inspects a database without changing it, for `rollcall doctor`.
//!
//! # Guarantees
//!
//! - Nothing is created or migrated. (SQLite may checkpoint an unused write-ahead log; the data stay the same.)
//! - The result is plain data; the caller evaluates it.

use std::path::Path;

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, MySqlPool, PgPool};

use crate::address::Address;
use crate::error::DatabaseError;
use crate::migration::{Migrations, mysql_version, newest_version, postgres_version, sqlite_version};
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

impl Migrations<'_> {
    /// The schema for a kind of database.
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
    pub fn of(table: &'static str, migrator: &sqlx::migrate::Migrator) -> Self {
        Schema { table, newest: newest_version(migrator).unwrap_or(0) }
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
    let outcome = match &database {
        Database::Postgres(pool) => read_postgres(pool, &schemas(Kind::Postgres)).await,
        Database::MySql(pool) => read_mysql(pool, &schemas(Kind::MySql)).await,
        Database::Sqlite(_) => return Ok(None),
    };
    let inspection = outcome.map_err(|error| database.explain(error))?;
    database.close().await;
    Ok(Some(Inspection { shown: database.shown(), ..inspection }))
}

/// None if the file does not exist.
pub async fn inspect_sqlite(path: &Path, schemas: &[Schema]) -> Result<Option<Inspection>, DatabaseError> {
    if !path.exists() {
        return Ok(None);
    }
    let inspection = read_sqlite(path, schemas)
        .await
        .map_err(|error| DatabaseError::from_sqlite(path.to_path_buf(), error))?;
    Ok(Some(Inspection { shown: path.display().to_string(), ..inspection }))
}

async fn read_sqlite(path: &Path, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .pragma("query_only", "ON")
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    let inspection = read_sqlite_connection(&mut connection, schemas).await?;
    connection.close().await?;
    Ok(inspection)
}

async fn read_sqlite_connection(
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
    let mut integrity_errors: Vec<String> =
        sqlx::query_scalar(QUICK_CHECK).fetch_all(&mut *connection).await?;
    integrity_errors.retain(|error| error != "ok");
    Ok(Inspection {
        shown: String::new(),
        version: format!("SQLite {version}"),
        now_ms,
        applied,
        settings: vec![("journal_mode", journal_mode)],
        integrity_errors,
    })
}

async fn read_postgres(pool: &PgPool, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
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
        integrity_errors: Vec::new(),
    })
}

async fn read_mysql(pool: &MySqlPool, schemas: &[Schema]) -> Result<Inspection, sqlx::Error> {
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
        integrity_errors: Vec::new(),
    })
}
