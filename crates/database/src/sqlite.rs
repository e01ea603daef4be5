//! SQLite: one file, opened by any number of processes.
//!
//! # Guarantees
//!
//! - Write-ahead logging: readers never wait; a writer waits for another for up to five seconds.
//! - A new file, and a folder created for it, is accessible to its owner only, because it may contain passkeys. SQLite
//!   creates its side files with the same mode.
//! - [`Durability`] selects what a commit survives.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Sqlite, Transaction};
use tokio::time::Instant;

use crate::error::DatabaseError;

/// How long a writer waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between attempts to open: SQLite does not wait for the switch to write-ahead logging.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
/// How long to wait for processes that open or write.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long [`SqliteDatabase::check_writable`] waits for another writer: less than the five seconds of health checks,
/// so that they can report the reason.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives power loss: each commit waits for the disk.
    #[default]
    PowerLoss,
    /// Survives a kill of the process. A power loss may undo the last commits, in order.
    ProcessCrash,
    /// Survives a kill of the process. A power loss may damage the file: for data that can be rebuilt.
    Rebuildable,
}

impl Durability {
    fn synchronous(self) -> SqliteSynchronous {
        match self {
            Durability::PowerLoss => SqliteSynchronous::Full,
            Durability::ProcessCrash => SqliteSynchronous::Normal,
            Durability::Rebuildable => SqliteSynchronous::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    pub durability: Durability,
    /// One connection writes at a time; the others read.
    pub connections_max: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions { durability: Durability::default(), connections_max: 4 }
    }
}

/// Clones share connections.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    pub pool: SqlitePool,
    path: Arc<Path>,
    is_new: bool,
}

impl SqliteDatabase {
    /// Opens the file; creates it and its folder if missing.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<SqliteDatabase, DatabaseError> {
        create_folder_of(path)?;
        let is_new = create_private(path);
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(options.durability.synchronous())
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .max_connections(options.connections_max.max(1))
            .acquire_timeout(BUSY_TIMEOUT)
            .after_release(|connection, _| Box::pin(is_reusable(connection)))
            .connect_lazy_with(connect);
        let database = SqliteDatabase { pool, path: path.into(), is_new };
        database.open_with_retries().await?;
        Ok(database)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this call created the file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub fn usage(&self) -> crate::PoolUsage {
        crate::usage_of(&self.pool)
    }

    /// For logs and errors.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Begins a write transaction at once (`BEGIN IMMEDIATE`), so that no other process writes between reads and
    /// writes.
    pub async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.pool.begin_with("BEGIN IMMEDIATE").await
    }

    /// A dedicated connection outside the pool.
    pub async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        self.pool.connect_options().connect().await
    }

    /// Rewrites a page of the file unchanged, to check for health checks whether writes succeed. Uses a dedicated
    /// connection, because those of the pool may all be waiting. Does not wait for the disk, so it may be called every
    /// few seconds.
    pub async fn check_writable(&self) -> Result<(), DatabaseError> {
        self.write_page().await.map_err(|error| self.explain(error))
    }

    async fn write_page(&self) -> Result<(), sqlx::Error> {
        let options = self.pool.connect_options().as_ref().clone();
        let options = options.synchronous(SqliteSynchronous::Normal).busy_timeout(CHECK_TIMEOUT);
        let mut connection = options.connect().await?;
        let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        // SQLite writes the first page although the value is unchanged.
        sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA user_version = {version}")))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        connection.close().await
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Converts an error of this file.
    pub fn explain(&self, error: sqlx::Error) -> DatabaseError {
        DatabaseError::from_sqlite(self.path.to_path_buf(), error)
    }

    async fn open_with_retries(&self) -> Result<(), DatabaseError> {
        let deadline = RetryDeadline::new(OPEN_TIMEOUT);
        loop {
            let outcome = self.test_connection().await;
            if !deadline.wait_after(&outcome).await {
                return outcome;
            }
        }
    }

    /// Connects once: switches the file to write-ahead logging, and fails if it is not a database.
    async fn test_connection(&self) -> Result<(), DatabaseError> {
        let explain = |error| self.explain(error);
        let mut connection = self.connect().await.map_err(explain)?;
        sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut connection).await.map_err(explain)?;
        connection.close().await.map_err(explain)
    }
}

/// Whether a connection that was returned to the pool may be used again.
///
/// After a full disk, an I/O error or a lack of memory, SQLite rolls back the whole transaction by itself. The driver's
/// ROLLBACK then fails ("no transaction is active"), its count of open transactions stays at one, and every later BEGIN
/// on that connection is refused. Such a connection is closed.
async fn is_reusable(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // The rollback of a dropped transaction may be queued: a ping returns after it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// How long to retry while other processes open, migrate or write.
///
/// Applies to [`DatabaseError::Busy`] only. Our own work has no limit: on a busy disk a commit takes seconds, and
/// giving up would wrongly report another process.
#[derive(Debug)]
pub(crate) struct RetryDeadline {
    until: Instant,
}

impl RetryDeadline {
    pub(crate) fn new(limit: Duration) -> RetryDeadline {
        RetryDeadline { until: Instant::now() + limit }
    }

    /// Whether to retry; sleeps first if so.
    pub(crate) async fn wait_after(&self, outcome: &Result<(), DatabaseError>) -> bool {
        let may_retry = matches!(outcome, Err(DatabaseError::Busy)) && Instant::now() < self.until;
        if may_retry {
            tokio::time::sleep(OPEN_PAUSE).await;
        }
        may_retry
    }
}

/// Creates the file if missing. Errors are reported when the file is opened.
fn create_private(path: &Path) -> bool {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).is_ok()
}

fn create_folder_of(path: &Path) -> Result<(), DatabaseError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| DatabaseError::Folder { path: folder.to_owned(), source }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    /// On a busy disk, creating the tables took longer than the timeout for other processes, and the start failed with
    /// an error about another process that did not exist.
    #[tokio::test]
    async fn own_work_may_take_longer_than_the_retry_deadline() {
        let deadline = RetryDeadline::new(MOMENT);
        let slow = async {
            tokio::time::sleep(2 * MOMENT).await;
            Ok(())
        };
        assert!(!deadline.wait_after(&slow.await).await, "done");
        assert!(!deadline.wait_after(&Err(DatabaseError::Busy)).await, "the deadline has passed");
    }

    #[tokio::test]
    async fn busy_is_retried_until_the_deadline() {
        assert!(RetryDeadline::new(OPEN_TIMEOUT).wait_after(&Err(DatabaseError::Busy)).await);
        let deadline = RetryDeadline::new(MOMENT);
        while deadline.wait_after(&Err(DatabaseError::Busy)).await {}
        assert!(!RetryDeadline::new(OPEN_TIMEOUT).wait_after(&Err(missing())).await, "not transient");
    }

    fn missing() -> DatabaseError {
        DatabaseError::Missing { shown: String::new(), reason: String::new() }
    }
}
