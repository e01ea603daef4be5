//! Brings a crate's tables up to date.
//!
//! # Guarantees
//!
//! - Each crate keeps its own account of what ran, in a table of its own name, so that several share a database.
//! - Processes that start at once take turns: the first migrates, the others find nothing to do. Nobody takes a lock
//!   if there is nothing to do.
//! - A process that dies half-way leaves nothing half-done that the next start does not mend: on SQLite and PostgreSQL
//!   a migration is one transaction. MariaDB and MySQL commit at each statement that changes a table, so there **a
//!   migration must be repeatable** (`CREATE TABLE IF NOT EXISTS` with its indexes inside, `DROP TRIGGER IF EXISTS`
//!   before `CREATE TRIGGER`), and one that broke off is run again.
//!
//! # Deliberately absent
//!
//! The driver's own lock: it waits without end, and asks MariaDB for a wait that MariaDB does not know.

use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, MySqlPool, PgPool};

use crate::error::DatabaseError;
use crate::sqlite::{OPEN_TIMEOUT, Patience};
use crate::{Database, SqliteDatabase};

/// How long a process waits for another that migrates the same tables.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it pauses between two looks.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A crate's migrations, for each kind of database.
#[derive(Clone, Copy, Debug)]
pub struct Migrations<'a> {
    /// Which migrations ran is kept in a table of this name.
    pub table: &'static str,
    /// For SQLite.
    pub sqlite: &'a Migrator,
    /// For PostgreSQL.
    pub postgres: &'a Migrator,
    /// For MariaDB and MySQL: repeatable, see above.
    pub mysql: &'a Migrator,
}

/// Brings the tables of one crate up to date.
pub async fn migrate(database: &Database, migrations: Migrations<'_>) -> Result<(), DatabaseError> {
    let table = migrations.table;
    let outcome = match database {
        Database::Sqlite(file) => return migrate_sqlite(file, table, migrations.sqlite).await,
        Database::Postgres(pool) => migrate_postgres(pool, table, migrations.postgres).await,
        Database::MySql(pool) => migrate_mysql(pool, table, migrations.mysql).await,
    };
    outcome.map_err(|error| explain(error, database.shown(), |sql| database.explain(sql)))
}

/// Brings the tables of one crate up to date in a SQLite file.
pub async fn migrate_sqlite(
    database: &SqliteDatabase,
    table: &'static str,
    migrator: &Migrator,
) -> Result<(), DatabaseError> {
    let migrator = named(migrator, table);
    let patience = Patience::new(OPEN_TIMEOUT);
    loop {
        let outcome = migrate_sqlite_once(database, &migrator).await;
        let outcome = outcome.map_err(|error| explain(error, database.shown(), |sql| database.explain(sql)));
        if !patience.is_left_after(&outcome).await {
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
        // Closing the connection lets go of the lock, also where we fail or die.
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
        forget_broken_off(&mut connection, table).await?;
        migrator.run_direct(None, &mut connection, false).await?;
    }
    Ok(connection.close().await?)
}

/// The same migrations under our own table, without the driver's lock.
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
    // The name is a literal of the calling crate.
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
    let is_there: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(table)
        .fetch_one(&mut *connection)
        .await?;
    if !is_there {
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

/// A migration that broke off is run again, which those of MariaDB and MySQL allow.
async fn forget_broken_off(connection: &mut MySqlConnection, table: &str) -> Result<(), sqlx::Error> {
    if mysql_table_exists(connection, table).await? {
        let forget = AssertSqlSafe(format!("DELETE FROM {table} WHERE NOT success"));
        let forgotten = sqlx::query(forget).execute(connection).await?.rows_affected();
        if forgotten > 0 {
            tracing::warn!(table, "a migration had broken off, running it again");
        }
    }
    Ok(())
}

async fn lock_postgres(connection: &mut PgConnection, table: &str) -> Result<(), sqlx::Error> {
    let wait = async {
        loop {
            let is_ours: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 0))")
                .bind(format!("rollcall.{table}"))
                .fetch_one(&mut *connection)
                .await?;
            if is_ours {
                return Ok(());
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    };
    tokio::time::timeout(LOCK_TIMEOUT, wait).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

async fn lock_mysql(connection: &mut MySqlConnection, table: &str) -> Result<(), sqlx::Error> {
    // Names of locks are the whole server's, and may be 64 characters long.
    let is_ours: Option<i64> =
        sqlx::query_scalar("SELECT GET_LOCK(CONCAT('rollcall.', SHA1(CONCAT(DATABASE(), '.', ?))), ?)")
            .bind(table)
            .bind(i64::try_from(LOCK_TIMEOUT.as_secs()).unwrap_or(60))
            .fetch_one(connection)
            .await?;
    if is_ours == Some(1) { Ok(()) } else { Err(sqlx::Error::PoolTimedOut) }
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

    /// Whoever opens a database does so in a task of a runtime with several threads.
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
