//! Connections of SQLite, each on a thread of its own, which ends with the connection.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::Durability;
use super::session::{Opening, SqliteSession};
use crate::PoolUsage;
use crate::sql::value::{Row, Rows, Value};
use crate::sql::{SqlError, Statement};

type Job = Box<dyn FnOnce(&SqliteSession) + Send>;

/// A thread that owns a connection.
struct SqliteThread {
    jobs: Sender<Job>,
    state: Arc<ThreadState>,
    /// Completes when the connection is closed.
    closed: oneshot::Receiver<()>,
}

/// What a thread's user must know to leave it clean.
#[derive(Default)]
struct ThreadState {
    /// Jobs sent and not finished.
    unfinished: AtomicU32,
    /// Whether the last finished job left a transaction open.
    is_open: AtomicBool,
}

impl ThreadState {
    /// Before the caller gets its answer, so that it sees the new state.
    fn finish(&self, session: &SqliteSession) {
        self.is_open.store(session.is_in_transaction(), Ordering::Relaxed);
        self.unfinished.fetch_sub(1, Ordering::Release);
    }

    fn is_clean(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0 && !self.is_open.load(Ordering::Relaxed)
    }
}

impl SqliteThread {
    async fn start(path: Arc<Path>, opening: Opening) -> Result<SqliteThread, SqlError> {
        let (jobs, work) = channel::<Job>();
        let (open, opened) = oneshot::channel();
        let (closing, closed) = oneshot::channel();
        let run = move || {
            match SqliteSession::open(&path, opening) {
                Ok(session) => {
                    if open.send(Ok(())).is_ok() {
                        run_jobs(&session, &work);
                    }
                }
                Err(error) => drop(open.send(Err(error))),
            }
            drop(closing);
        };
        let spawned = std::thread::Builder::new().name("sqlite".to_owned()).spawn(run);
        spawned.map_err(|error| SqlError::Server(error.into()))?;
        opened.await.map_err(|_| SqlError::Closed)??;
        Ok(SqliteThread { jobs, state: Arc::default(), closed })
    }

    /// Runs `work` on the thread. If the caller is dropped, it still runs to its end.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteSession) -> T + Send + 'static,
    ) -> Result<T, SqlError> {
        let (answer, answered) = oneshot::channel();
        let state = Arc::clone(&self.state);
        self.send(move |session| {
            let done = work(session);
            state.finish(session);
            drop(answer.send(done));
        })?;
        answered.await.map_err(|_| SqlError::Closed)
    }

    /// `job` finishes the thread's state.
    fn send(&self, job: impl FnOnce(&SqliteSession) + Send + 'static) -> Result<(), SqlError> {
        self.state.unfinished.fetch_add(1, Ordering::Relaxed);
        self.jobs.send(Box::new(job)).map_err(|_| SqlError::Closed)
    }

    async fn close(self) {
        drop(self.jobs);
        // Fails when the thread has dropped its end, which is what is waited for.
        let _ = self.closed.await;
    }
}

fn run_jobs(session: &SqliteSession, work: &Receiver<Job>) {
    while let Ok(job) = work.recv() {
        job(session);
    }
}

/// Connections that are lent one caller at a time, in the order in which they asked.
pub(super) struct Pool {
    path: Arc<Path>,
    opening: Opening,
    max: u32,
    wait: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<SqliteThread>>,
    open: AtomicU32,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("path", &self.path).field("max", &self.max).finish_non_exhaustive()
    }
}

impl Pool {
    /// `wait` is how long a caller waits for a connection.
    pub(super) fn new(path: &Arc<Path>, opening: Opening, max: u32, wait: Duration) -> Arc<Pool> {
        Arc::new(Pool {
            path: Arc::clone(path),
            opening,
            max,
            wait,
            permits: Arc::new(Semaphore::new(max as usize)),
            idle: Mutex::default(),
            open: AtomicU32::new(0),
        })
    }

    pub(super) async fn acquire(self: &Arc<Pool>) -> Result<SqliteLease, SqlError> {
        let permit = tokio::time::timeout(self.wait, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| SqlError::TimedOut)?.map_err(|_| SqlError::Closed)?;
        let idle = self.lock_idle().pop();
        let thread = match idle {
            Some(thread) => thread,
            None => {
                let thread = SqliteThread::start(Arc::clone(&self.path), self.opening).await?;
                self.open.fetch_add(1, Ordering::Relaxed);
                thread
            }
        };
        Ok(SqliteLease { thread: Some(thread), home: Some((Arc::clone(self), permit)) })
    }

    /// Waits for connections in use, then closes all.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.permits.acquire_many(self.max).await {
            self.permits.close();
            all.forget();
        }
        let idle = std::mem::take(&mut *self.lock_idle());
        for thread in idle {
            thread.close().await;
        }
        self.open.store(0, Ordering::Relaxed);
    }

    pub(super) fn usage(&self) -> PoolUsage {
        let idle = u32::try_from(self.lock_idle().len()).unwrap_or(u32::MAX);
        PoolUsage { open: self.open.load(Ordering::Relaxed), idle, max: self.max }
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteThread>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that one caller has. A transaction that it leaves open is rolled back.
pub struct SqliteLease {
    /// Present until it is dropped or closed.
    thread: Option<SqliteThread>,
    /// None for a connection outside of a pool.
    home: Option<(Arc<Pool>, OwnedSemaphorePermit)>,
}

impl fmt::Debug for SqliteLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLease").finish_non_exhaustive()
    }
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let Some((pool, _permit)) = self.home.take() else { return };
        // Waking the thread costs more than most statements: it is left alone if there is nothing to roll back.
        if thread.state.is_clean() {
            pool.lock_idle().push(thread);
            return;
        }
        let state = Arc::clone(&thread.state);
        // Runs before the jobs of the next caller.
        let reset = move |session: &SqliteSession| {
            session.reset();
            state.finish(session);
        };
        if thread.send(reset).is_ok() {
            pool.lock_idle().push(thread);
        } else {
            pool.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl SqliteLease {
    /// A connection outside of a pool.
    pub(super) async fn open(path: &Arc<Path>, durability: Durability) -> Result<SqliteLease, SqlError> {
        let thread =
            SqliteThread::start(Arc::clone(path), Opening { durability, create: true, is_writer: false })
                .await?;
        Ok(SqliteLease { thread: Some(thread), home: None })
    }

    /// A connection to a file that exists.
    pub(crate) async fn open_existing(path: &Path) -> Result<SqliteLease, SqlError> {
        let opening = Opening { durability: Durability::PowerLoss, create: false, is_writer: false };
        let thread = SqliteThread::start(path.into(), opening).await?;
        Ok(SqliteLease { thread: Some(thread), home: None })
    }

    /// Closes a connection outside of a pool.
    pub(crate) async fn close(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.close().await;
        }
    }

    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteSession) -> T + Send + 'static,
    ) -> Result<T, SqlError> {
        match &self.thread {
            Some(thread) => thread.call(work).await,
            None => Err(SqlError::Closed),
        }
    }

    pub(crate) async fn read(
        &self,
        statement: Statement<'_>,
        values: &[Value],
    ) -> Result<Vec<Row>, SqlError> {
        let (sql, values) = (statement.render(crate::Kind::Sqlite, values), values.to_vec());
        self.call(move |session| session.query(&sql, &values)).await?
    }

    pub(crate) async fn find(&self, statement: Statement<'_>, keys: Rows) -> Result<Vec<Row>, SqlError> {
        let sql = statement.sqlite_text().to_owned();
        self.call(move |session| session.find(Statement::from(sql.as_str()), keys)).await?
    }

    /// The rows of a query, in batches.
    pub(crate) fn stream(
        &self,
        sql: &str,
        batch_rows: usize,
    ) -> tokio::sync::mpsc::Receiver<Result<Vec<Row>, SqlError>> {
        let (batches, received) = tokio::sync::mpsc::channel(1);
        let Some(thread) = &self.thread else { return received };
        let (sql, state) = (sql.to_owned(), Arc::clone(&thread.state));
        let read = move |session: &SqliteSession| {
            // Fails when the reader has gone.
            let send = |batch| batches.blocking_send(batch).is_ok();
            if let Err(error) = session.for_each_batch(&sql, batch_rows, |rows| send(Ok(rows))) {
                send(Err(error));
            }
            state.finish(session);
        };
        // A thread that has ended drops the job, which ends the stream.
        let _ = thread.send(read);
        received
    }

    pub(crate) async fn execute(&self, statement: Statement<'_>, values: &[Value]) -> Result<u64, SqlError> {
        let (sql, values) = (statement.render(crate::Kind::Sqlite, values), values.to_vec());
        self.call(move |session| session.execute(&sql, &values)).await?
    }

    pub(crate) async fn write_rows(&self, statement: Statement<'_>, rows: &Rows) -> Result<u64, SqlError> {
        let sql = statement.sqlite_text().to_owned();
        let rows = rows.clone();
        self.call(move |session| session.write_rows(Statement::from(sql.as_str()), &rows)).await?
    }

    /// All rows or none.
    pub(crate) async fn attempt_rows(&self, statement: Statement<'_>, rows: &Rows) -> Result<u64, SqlError> {
        let sql = statement.sqlite_text().to_owned();
        let rows = rows.clone();
        let write = move |session: &SqliteSession| {
            session.batch("SAVEPOINT attempt")?;
            let written = session.write_rows(Statement::from(sql.as_str()), &rows);
            match written {
                Ok(_) => session.batch("RELEASE attempt")?,
                // Fails if SQLite has rolled back the whole transaction; the cause is in `written`.
                Err(_) => session.batch("ROLLBACK TO attempt; RELEASE attempt").unwrap_or(()),
            }
            written
        };
        self.call(write).await?
    }

    pub(crate) async fn batch(&self, sql: &str) -> Result<(), SqlError> {
        let sql = sql.to_owned();
        self.call(move |session| session.batch(&sql)).await?
    }
}
