//! SQLite: one file that any number of processes may have open.
//!
//! # Guarantees
//!
//! - Write-ahead logging: readers never wait, a writer waits for another for up to five seconds.
//! - A new file is readable by its owner only, and so is a folder that is made for it: it may hold everybody's passkeys.
//!   SQLite gives its side files the same mode.
//! - What a commit survives is chosen by [`Durability`].

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
/// Opening a new file switches it to write-ahead logging, for which SQLite does not wait by itself.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
/// How long an opener waits for others that open or write.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long [`SqliteDatabase::check_writable`] waits for another writer: less than the five seconds within which health
/// checks want an answer, so that they are told the reason.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// The machine losing power: each commit waits for the disk.
    #[default]
    PowerLoss,
    /// This process being killed, at any moment. The last commits before a power loss may be undone, in order.
    ProcessCrash,
    /// This process being killed; a power loss may leave a damaged file. For what can be rebuilt from elsewhere.
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

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// What a commit survives.
    pub durability: Durability,
    /// How many connections there may be. One writes at a time anyway; the rest are for readers.
    pub connections_max: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions { durability: Durability::default(), connections_max: 4 }
    }
}

/// An open file. Clones share its connections.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    /// The connections.
    pub pool: SqlitePool,
    path: Arc<Path>,
    is_new: bool,
}

impl SqliteDatabase {
    /// Opens the file; makes it and its folder where they are missing.
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
        database.open_repeatedly().await?;
        Ok(database)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was no file yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// How many of its connections are in use.
    pub fn usage(&self) -> crate::PoolUsage {
        crate::usage_of(&self.pool)
    }

    /// The address, as it is shown.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Begins to write at once, so that nobody else can write between our reading and our writing.
    pub async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.pool.begin_with("BEGIN IMMEDIATE").await
    }

    /// A connection of one's own, outside the shared ones.
    pub async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        self.pool.connect_options().connect().await
    }

    /// Writes a page of the file as it is, to find out whether writes succeed: for health checks. Over a connection of its
    /// own, since the shared ones may all be waiting. Does not wait for the disk, so it can be called every few seconds.
    pub async fn check_writable(&self) -> Result<(), DatabaseError> {
        self.write_a_page().await.map_err(|error| self.explain(error))
    }

    async fn write_a_page(&self) -> Result<(), sqlx::Error> {
        let options = self.pool.connect_options().as_ref().clone();
        let options = options.synchronous(SqliteSynchronous::Normal).busy_timeout(CHECK_TIMEOUT);
        let mut connection = options.connect().await?;
        let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        // SQLite writes the first page, though the value stays the same.
        sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA user_version = {version}")))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        connection.close().await
    }

    /// Finishes what is under way and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Puts what SQLite says into our words.
    pub fn explain(&self, error: sqlx::Error) -> DatabaseError {
        DatabaseError::from_sqlite(self.path.to_path_buf(), error)
    }

    async fn open_repeatedly(&self) -> Result<(), DatabaseError> {
        let patience = Patience::new(OPEN_TIMEOUT);
        loop {
            let outcome = self.try_out().await;
            if !patience.is_left_after(&outcome).await {
                return outcome;
            }
        }
    }

    /// Opens the file once: this switches it to write-ahead logging, and finds out whether it is a database at all.
    async fn try_out(&self) -> Result<(), DatabaseError> {
        let explain = |error| self.explain(error);
        let mut connection = self.connect().await.map_err(explain)?;
        sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut connection).await.map_err(explain)?;
        connection.close().await.map_err(explain)
    }
}

/// Whether a connection that was returned to the pool may be used again.
///
/// When a statement fails because the disk is full, cannot be read or written, or memory is short, SQLite rolls the whole
/// transaction back by itself. The driver's own ROLLBACK then fails ("no transaction is active"), its count of open
/// transactions stays at one, and every later BEGIN on that connection is refused. Such a connection is closed.
async fn is_reusable(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // The rollback of a dropped transaction may be on its way: a ping returns after it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// For how long to try again while others open, migrate or write.
///
/// Only what others do counts. How long our own work takes does not: a disk that has much else to do takes seconds for a
/// commit, and giving up then would blame a process that there is not.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Patience {
        Patience { until: Instant::now() + limit }
    }

    /// Whether to try once more; if so, after a pause.
    pub(crate) async fn is_left_after(&self, outcome: &Result<(), DatabaseError>) -> bool {
        let is_left = matches!(outcome, Err(DatabaseError::Busy)) && Instant::now() < self.until;
        if is_left {
            tokio::time::sleep(OPEN_PAUSE).await;
        }
        is_left
    }
}

/// Makes the file where it is missing. What goes wrong here is told when the file is opened.
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

    /// A demo was started while the disk was busy with what a build had written: its tables took longer to make than one
    /// waits for others, and it ended with a word about another process, of which there was none.
    #[tokio::test]
    async fn our_own_work_may_take_longer_than_one_waits_for_others() {
        let patience = Patience::new(MOMENT);
        let slow = async {
            tokio::time::sleep(2 * MOMENT).await;
            Ok(())
        };
        assert!(!patience.is_left_after(&slow.await).await, "it is done");
        assert!(!patience.is_left_after(&Err(DatabaseError::Busy)).await, "the time for others is over");
    }

    #[tokio::test]
    async fn others_are_waited_for_but_not_for_ever() {
        assert!(Patience::new(OPEN_TIMEOUT).is_left_after(&Err(DatabaseError::Busy)).await);
        let patience = Patience::new(MOMENT);
        while patience.is_left_after(&Err(DatabaseError::Busy)).await {}
        assert!(
            !Patience::new(OPEN_TIMEOUT).is_left_after(&Err(missing())).await,
            "that does not pass by itself"
        );
    }

    fn missing() -> DatabaseError {
        DatabaseError::Missing { shown: String::new(), reason: String::new() }
    }
}
