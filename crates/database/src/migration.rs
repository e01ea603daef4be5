//! Migrates a crate's tables.
//!
//! # Guarantees
//!
//! - Each crate records its migrations in a table of its own, so that several crates share a database.
//! - If processes start at once, the first one migrates while the others wait. Without pending migrations no lock is
//!   taken.
//! - An interrupted migration is repaired by the next start. On SQLite and PostgreSQL a migration is one transaction.
//!   MariaDB and MySQL commit at each DDL statement, so there **a migration must be repeatable** (`CREATE TABLE IF NOT
//!   EXISTS` with its indexes inside, `DROP TRIGGER IF EXISTS` before `CREATE TRIGGER`), and an interrupted one is run
//!   again.
//!
//! # Deliberately absent
//!
//! The driver's lock: it waits without a timeout, with a value that MariaDB does not accept.

use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, MySqlPool, PgPool};

use crate::error::DatabaseError;
use crate::sqlite::{OPEN_TIMEOUT, RetryDeadline};
use crate::{Database, SqliteDatabase};

/// How long to wait for a process that migrates the same tables.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct Migrations<'a> {
    /// Table that records the migrations.
    pub table: &'static str,
    pub sqlite: &'a Migrator,
    pub postgres: &'a Migrator,
    /// For MariaDB and MySQL; must be repeatable.
    pub mysql: &'a Migrator,
}

/// Migrates the tables of one crate.
pub async fn migrate(database: &Database, migrations: Migrations<'_>) -> Result<(), DatabaseError> {
    let table = migrations.table;
    let outcome = match database {
        Database::Sqlite(file) => return migrate_sqlite(file, table, migrations.sqlite).await,
        Database::Postgres(pool) => migrate_postgres(pool, table, migrations.postgres).await,
        Database::MySql(pool) => migrate_mysql(pool, table, migrations.mysql).await,
    };
    outcome.map_err(|error| explain(error, database.shown(), |sql| database.explain(sql)))
}

/// Migrates the tables of one crate in a SQLite file.
pub async fn migrate_sqlite(
    database: &SqliteDatabase,
    table: &'static str,
    migrator: &Migrator,
) -> Result<(), DatabaseError> {
    let migrator = named(migrator, table);
    let deadline = RetryDeadline::new(OPEN_TIMEOUT);
    loop {
        let outcome = migrate_sqlite_once(database, &migrator).await;
        let outcome = outcome.map_err(|error| explain(error, database.shown(), |sql| database.explain(sql)));
        if !deadline.wait_after(&outcome).await {
            return outcome;
        }
    }
}

async fn migrate_sqlite_once(database: &SqliteDatabase, migrator: &Migrator) -> Result<(), MigrateError> {
    let mut connection = database.connect().await?;
    if sqlite_version(&mut connection, &migrator.table_name).await? != newest_version(migrator) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        migrator.run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
    }
    Ok(connection.close().await?)
}

async fn migrate_postgres(
    pool: &PgPool,
    table: &'static str,
    migrator: &Migrator,
) -> Result<(), MigrateError> {
    let migrator = named(migrator, table);
    let mut connection = pool.acquire().await?.detach();
    if postgres_version(&mut connection, table).await? != newest_version(&migrator) {
        // Closing the connection releases the lock, also after an error or a crash.
        lock_postgres(&mut connection, table).await?;
        migrator.run_direct(None, &mut connection, false).await?;
    }
    Ok(connection.close().await?)
}

async fn migrate_mysql(
    pool: &MySqlPool,
    table: &'static str,
    migrator: &Migrator,
) -> Result<(), MigrateError> {
    let migrator = named(migrator, table);
    let mut connection = pool.acquire().await?.detach();
    if mysql_version(&mut connection, table).await? != newest_version(&migrator) {
        lock_mysql(&mut connection, table).await?;
        delete_interrupted(&mut connection, table).await?;
        migrator.run_direct(None, &mut connection, false).await?;
    }
    Ok(connection.close().await?)
}

/// The same migrations, recorded in the crate's table, without the driver's lock.
fn named(migrator: &Migrator, table: &'static str) -> Migrator {
    let mut named = Migrator::with_migrations(migrator.iter().cloned().collect());
    named.dangerous_set_table_name(table);
    named.set_locking(false);
    named
}

pub(crate) fn newest_version(migrator: &Migrator) -> Option<i64> {
    migrator.iter().map(|migration| migration.version).max()
}

fn newest_applied(table: &str) -> AssertSqlSafe<String> {
    // Safe: the name is a literal of the calling crate.
    AssertSqlSafe(format!("SELECT max(version) FROM {table} WHERE success"))
}

pub(crate) async fn sqlite_version(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<Option<i64>, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = ?")
        .bind(table)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(None);
    }
    sqlx::query_scalar(newest_applied(table)).fetch_one(connection).await
}

pub(crate) async fn postgres_version(
    connection: &mut PgConnection,
    table: &str,
) -> Result<Option<i64>, sqlx::Error> {
    let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(table)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        return Ok(None);
    }
    sqlx::query_scalar(newest_applied(table)).fetch_one(connection).await
}

async fn mysql_table_exists(connection: &mut MySqlConnection, table: &str) -> Result<bool, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = ?",
    )
    .bind(table)
    .fetch_one(connection)
    .await?;
    Ok(tables > 0)
}

pub(crate) async fn mysql_version(
    connection: &mut MySqlConnection,
    table: &str,
) -> Result<Option<i64>, sqlx::Error> {
    if !mysql_table_exists(connection, table).await? {
        return Ok(None);
    }
    let unfinished: i64 =
        sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE NOT success")))
            .fetch_one(&mut *connection)
            .await?;
    if unfinished > 0 {
        return Ok(None);
    }
    sqlx::query_scalar(newest_applied(table)).fetch_one(connection).await
}

/// Deletes the record of an interrupted migration, so that it is run again.
async fn delete_interrupted(connection: &mut MySqlConnection, table: &str) -> Result<(), sqlx::Error> {
    if mysql_table_exists(connection, table).await? {
        let delete = AssertSqlSafe(format!("DELETE FROM {table} WHERE NOT success"));
        let deleted = sqlx::query(delete).execute(connection).await?.rows_affected();
        if deleted > 0 {
            tracing::warn!(table, "repeating an interrupted migration");
        }
    }
    Ok(())
}

async fn lock_postgres(connection: &mut PgConnection, table: &str) -> Result<(), sqlx::Error> {
    let wait = async {
        loop {
            let is_locked: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 0))")
                .bind(format!("rollcall.{table}"))
                .fetch_one(&mut *connection)
                .await?;
            if is_locked {
                return Ok(());
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    };
    tokio::time::timeout(LOCK_TIMEOUT, wait).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

async fn lock_mysql(connection: &mut MySqlConnection, table: &str) -> Result<(), sqlx::Error> {
    // Lock names are global to the server and limited to 64 characters.
    let is_locked: Option<i64> =
        sqlx::query_scalar("SELECT GET_LOCK(CONCAT('rollcall.', SHA1(CONCAT(DATABASE(), '.', ?))), ?)")
            .bind(table)
            .bind(i64::try_from(LOCK_TIMEOUT.as_secs()).unwrap_or(60))
            .fetch_one(connection)
            .await?;
    if is_locked == Some(1) { Ok(()) } else { Err(sqlx::Error::PoolTimedOut) }
}

fn explain(
    error: MigrateError,
    shown: String,
    explain_sql: impl FnOnce(sqlx::Error) -> DatabaseError,
) -> DatabaseError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => explain_sql(error),
        source => DatabaseError::Schema { shown, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases are opened in tasks of a multi-threaded runtime.
    #[test]
    fn futures_can_be_sent() {
        fn is_send<T: Send>(_: fn() -> T) {}
        is_send(|| Database::open(""));
        fn migrating(database: &Database, migrations: Migrations<'_>) -> impl Send {
            migrate(database, migrations)
        }
        let _ = migrating;
    }
}
