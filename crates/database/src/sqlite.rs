//! SQLite: one file, opened by any number of processes.
//!
//! # Guarantees
//!
//! - Write-ahead logging: readers never wait; a writer waits for another for up to five seconds.
//! - A new file, and a folder created for it, is accessible to its owner only, because it may contain passkeys. SQLite
//!   creates its side files with the same mode.
//! - [`Durability`] selects what a commit survives.
//! - Each connection belongs to a thread. One connection writes, and its callers queue in order; the others read.
//!
//! # Threads of our own
//!
//! [`SqliteDatabase::write`] runs a whole transaction on the thread of the connection: one hop, where sqlx' driver needs
//! one for each statement. Measured with the statements of the journal for a batch (append, deliver, acknowledge; two
//! cores under load, commits that do not wait for the disk), processor time and context switches per batch:
//!
//! | entries | sqlx | here |
//! |---|---|---|
//! | 1 | 495 µs, 52 | 72 µs, 3 |
//! | 100 | 627 µs, 54 | 200 µs, 3 |
//! | 1,000 | 2,275 µs, 68 | 1,450 µs, 4 |

mod commit_probe;
mod pool;
mod session;

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::DatabaseError;
use crate::sql::SqlError;
pub(crate) use commit_probe::CommitProbe;
use pool::Pool;
pub use pool::SqliteLease;
use session::Opening;
pub use session::SqliteSession;

/// How long a writer waits for one of another process, and a reader for a connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a writer waits for the others of this process.
const WRITER_TIMEOUT: Duration = Duration::from_secs(10);
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
    const fn synchronous(self) -> &'static str {
        match self {
            Durability::PowerLoss => "FULL",
            Durability::ProcessCrash => "NORMAL",
            Durability::Rebuildable => "OFF",
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

#[derive(Debug)]
struct Watcher {
    /// Opened when it is asked for.
    lease: Option<SqliteLease>,
    probe: CommitProbe,
}

/// Clones share connections.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    writer: Arc<Pool>,
    readers: Arc<Pool>,
    /// Reads the count of commits.
    watcher: Arc<Mutex<Watcher>>,
    durability: Durability,
    path: Arc<Path>,
    is_new: bool,
}

impl SqliteDatabase {
    /// Opens the file; creates it and its folder if missing.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<SqliteDatabase, DatabaseError> {
        create_folder_of(path)?;
        let is_new = create_private(path);
        let path: Arc<Path> = path.into();
        let readers = options.connections_max.saturating_sub(1).max(1);
        let opening = Opening { durability: options.durability, create: true, is_writer: false };
        let database = SqliteDatabase {
            writer: Pool::new(&path, Opening { is_writer: true, ..opening }, 1, WRITER_TIMEOUT),
            readers: Pool::new(&path, opening, readers, BUSY_TIMEOUT),
            watcher: Arc::new(Mutex::new(Watcher { lease: None, probe: CommitProbe::of(&path) })),
            durability: options.durability,
            path,
            is_new,
        };
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
        let (writer, readers) = (self.writer.usage(), self.readers.usage());
        let (open, idle) = (writer.open + readers.open, writer.idle + readers.idle);
        crate::PoolUsage { open, idle, max: writer.max + readers.max }
    }

    /// For logs and errors.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The connection that writes.
    pub(crate) async fn writer(&self) -> Result<SqliteLease, SqlError> {
        self.writer.acquire().await
    }

    pub(crate) async fn reader(&self) -> Result<SqliteLease, SqlError> {
        self.readers.acquire().await
    }

    /// Begins a write transaction at once, so that no other process writes between reads and writes.
    pub(crate) async fn begin(&self) -> Result<SqliteLease, SqlError> {
        let lease = self.writer().await?;
        lease.batch("BEGIN IMMEDIATE").await?;
        Ok(lease)
    }

    pub(crate) async fn begin_read(&self) -> Result<SqliteLease, SqlError> {
        let lease = self.reader().await?;
        lease.batch("BEGIN").await?;
        Ok(lease)
    }

    /// A connection outside of the pool.
    pub(crate) async fn session(&self) -> Result<SqliteLease, SqlError> {
        SqliteLease::open(&self.path, self.durability).await
    }

    /// Runs a whole write transaction on the thread of the connection: committed if `work` succeeds, else rolled back.
    /// If the caller is dropped, it still runs to its end.
    pub async fn write<T, E>(
        &self,
        work: impl FnOnce(&SqliteSession) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SqlError> + Send + 'static,
    {
        self.write_with(self.durability, work).await
    }

    /// As [`SqliteDatabase::write`]; its commit survives this.
    pub async fn write_with<T, E>(
        &self,
        durability: Durability,
        work: impl FnOnce(&SqliteSession) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SqlError> + Send + 'static,
    {
        let usual = self.durability;
        let transaction = move |session: &SqliteSession| {
            if durability == usual {
                return session.transaction("BEGIN IMMEDIATE", work);
            }
            session.set_durability(durability)?;
            let outcome = session.transaction("BEGIN IMMEDIATE", work);
            session.set_durability(usual)?;
            outcome
        };
        self.writer().await?.call(transaction).await?
    }

    /// Runs reads on one snapshot, on the thread of a connection.
    pub async fn read<T, E>(
        &self,
        work: impl FnOnce(&SqliteSession) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SqlError> + Send + 'static,
    {
        self.reader().await?.call(move |session| session.transaction("BEGIN", work)).await?
    }

    /// SQLite's count of the commits of all processes: while it is the same, nothing has changed. Costs a few
    /// microseconds; while nothing changes, one system call.
    pub async fn data_version(&self) -> Result<i64, SqlError> {
        let mut watcher = self.watcher.lock().await;
        let question = match watcher.probe.look() {
            Ok(version) => return Ok(version),
            Err(question) => question,
        };
        let lease = match watcher.lease.take() {
            Some(lease) => lease,
            None => self.session().await?,
        };
        let version = lease.call(SqliteSession::data_version).await??;
        watcher.lease = Some(lease);
        watcher.probe.learn(question, version);
        Ok(version)
    }

    /// Rewrites a page of the file unchanged, to check for health checks whether writes succeed. Does not wait for the
    /// disk, so it may be called every few seconds.
    pub async fn check_writable(&self) -> Result<(), DatabaseError> {
        let usual = self.durability;
        let write_page = move |session: &SqliteSession| {
            session.set_durability(Durability::ProcessCrash)?;
            let outcome = session.write_page();
            session.set_durability(usual)?;
            outcome
        };
        let check = async { self.writer().await?.call(write_page).await? };
        let outcome = tokio::time::timeout(CHECK_TIMEOUT, check).await;
        outcome.unwrap_or(Err(SqlError::TimedOut)).map_err(|error| self.explain(error))
    }

    pub async fn close(&self) {
        if let Some(watcher) = self.watcher.lock().await.lease.take() {
            watcher.close().await;
        }
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Converts an error of this file.
    pub fn explain(&self, error: impl Into<SqlError>) -> DatabaseError {
        DatabaseError::from_sqlite(self.path.to_path_buf(), error.into())
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
        let tested = async {
            let connection = self.session().await?;
            let outcome = connection.call(SqliteSession::use_write_ahead_log).await;
            connection.close().await;
            outcome?
        };
        tested.await.map_err(|error| self.explain(error))
    }
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
