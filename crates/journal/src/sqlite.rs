//! The journal in a SQLite file of its own: the embedded default.
//!
//! # Guarantees
//!
//! - What was stored, delivered or moved survives a power loss: each such commit waits for the disk. Acknowledgements
//!   survive a crash of the process; the last ones before a power loss may be undone, and their entries are then
//!   pending again.
//! - Any number of processes may have the file open. Writers of this process queue in order; others wait for up to five
//!   seconds.
//! - Ids rise, also when the clock steps back and when everything was deleted.
//! - A read wakes up at once when this handle appends, within 100 ms when another process does.
//! - A failed call has changed nothing, or returns [`JournalError::Unanswered`].
//!
//! A read that is cancelled may have delivered entries: they are pending, as after a crash of the consumer.
//!
//! # Deliberately absent
//!
//! A bound on the length: trimming and the alarm are up to the caller. The file does not shrink either; the space of
//! trimmed entries is reused.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use database::{DatabaseError, Durability, Schema, SqliteDatabase, SqliteOptions};
use domain::clock::Clock;
use sqlx::migrate::Migrator;
use sqlx::{Sqlite, Transaction};
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::notes::Notes;
use crate::port::{AppendToken, ConsumerInfo, Journal, Lane, LaneStatus, StartAt, Stored, Transfer, Trimmed};

mod append;
mod consumers;
mod dead_letters;
mod place;
mod query;
mod read;
mod trim;

const MIGRATIONS_TABLE: &str = "journal_migrations";
static MIGRATIONS: Migrator = sqlx::migrate!();

/// The expected tables.
pub fn schema() -> Schema {
    Schema::of(MIGRATIONS_TABLE, &MIGRATIONS)
}

/// Rows that SQLite's thread buffers for us: a batch, to avoid a thread switch every few rows.
const ROW_BUFFER: usize = 1_024;

pub struct SqliteJournal {
    /// Commits wait for the disk.
    database: SqliteDatabase,
    /// Commits do not.
    acknowledging: SqliteDatabase,
    clock: Arc<dyn Clock>,
    /// Held by every writer of this process: SQLite's own wait for a writer is unordered.
    write_lock: Mutex<()>,
    /// Notified of appends, by lane.
    appended: [Notify; Lane::ALL.len()],
}

/// A write transaction, and the lock for it.
struct WriteTransaction<'a> {
    transaction: Transaction<'static, Sqlite>,
    _write_lock: MutexGuard<'a, ()>,
}

impl SqliteJournal {
    /// Opens the file; creates it, its folder and its tables if missing.
    pub async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<SqliteJournal, JournalError> {
        let durable = SqliteOptions { durability: Durability::PowerLoss, ..SqliteOptions::default() };
        let database =
            SqliteDatabase::open(path, durable).await.map_err(|error| explain_opening(path, error))?;
        SqliteJournal::on(database, clock).await
    }

    /// Uses a file that is open already, with its durability; creates its tables if missing.
    pub async fn on(database: SqliteDatabase, clock: Arc<dyn Clock>) -> Result<SqliteJournal, JournalError> {
        let path = database.path().to_owned();
        let fast = SqliteOptions { durability: Durability::ProcessCrash, connections_max: 1 };
        let acknowledging =
            SqliteDatabase::open(&path, fast).await.map_err(|error| explain_opening(&path, error))?;
        database::migrate_sqlite(&database, MIGRATIONS_TABLE, &MIGRATIONS)
            .await
            .map_err(|error| explain_opening(&path, error))?;
        let options = database.pool.connect_options().as_ref().clone();
        database.pool.set_connect_options(options.row_buffer_size(ROW_BUFFER));
        let appended = Lane::ALL.map(|_| Notify::new());
        Ok(SqliteJournal { database, acknowledging, clock, write_lock: Mutex::new(()), appended })
    }

    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Completes running transactions and closes the file.
    pub async fn close(&self) {
        self.acknowledging.close().await;
        self.database.close().await;
    }

    async fn begin(&self) -> Result<WriteTransaction<'_>, JournalError> {
        let write_lock = self.write_lock.lock().await;
        let transaction = self.database.begin_write().await.map_err(|error| self.explain(error))?;
        Ok(WriteTransaction { transaction, _write_lock: write_lock })
    }

    async fn commit(&self, writing: WriteTransaction<'_>) -> Result<(), JournalError> {
        writing.transaction.commit().await.map_err(|error| match error {
            // The disk did not confirm: after a crash, the commit may turn out to be complete.
            sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => self.unanswered(error),
            sqlx::Error::Database(ref error_of_sqlite) if is_io_error(error_of_sqlite.as_ref()) => {
                self.unanswered(error)
            }
            error => self.explain(error),
        })
    }

    fn unanswered(&self, error: sqlx::Error) -> JournalError {
        JournalError::Unanswered { reason: self.database.explain(error).to_string() }
    }

    fn explain(&self, error: sqlx::Error) -> JournalError {
        let may_pass = database::is_retryable(&error) || matches!(error, sqlx::Error::PoolClosed);
        let reason = self.database.explain(error).to_string();
        if may_pass {
            JournalError::Unavailable { reason }
        } else {
            JournalError::Damaged { what: self.path().display().to_string(), reason }
        }
    }

    fn stored(&self, (place, fields): (i64, Vec<u8>)) -> Result<Stored, JournalError> {
        let id = place::id_of(place);
        let fields = Fields::from_bytes(fields).ok_or_else(|| JournalError::Damaged {
            what: format!("entry {id} in {}", self.path().display()),
            reason: format!(
                "its fields cannot be read; restore a backup, or save and delete the row with place {place} of table entries"
            ),
        })?;
        Ok(Stored { id, fields })
    }

    fn all_stored(&self, rows: Vec<(i64, Vec<u8>)>) -> Result<Vec<Stored>, JournalError> {
        rows.into_iter().map(|row| self.stored(row)).collect()
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX)
    }

    fn notify_append(&self, lane: Lane) {
        self.appended_to(lane).notify_waiters();
    }

    fn appended_to(&self, lane: Lane) -> &Notify {
        &self.appended[lane as usize]
    }
}

/// SQLITE_IOERR and its extended codes.
fn is_io_error(error: &dyn sqlx::error::DatabaseError) -> bool {
    const IO_ERROR: i32 = 10;
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.is_some_and(|code| code & 0xff == IO_ERROR)
}

fn explain_opening(path: &Path, error: DatabaseError) -> JournalError {
    let is_damage = matches!(
        error,
        DatabaseError::NotADatabase { .. } | DatabaseError::Damaged { .. } | DatabaseError::Schema { .. }
    );
    let reason = error.to_string();
    if is_damage {
        JournalError::Damaged { what: path.display().to_string(), reason }
    } else {
        JournalError::Unavailable { reason }
    }
}

fn no_group(group: &str) -> JournalError {
    JournalError::NoGroup { group: group.to_owned() }
}

/// For counts, which are never negative.
fn to_u64(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(&self, lane: Lane, batch: &[Fields], token: &AppendToken) -> Result<(), JournalError> {
        self.append_batch(lane, batch, token).await
    }

    async fn ensure_group(&self, lane: Lane, group: &str, start: StartAt) -> Result<bool, JournalError> {
        self.create_group(lane, group, start).await
    }

    async fn read(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Stored>, JournalError> {
        let reader = read::Reader { lane, group, consumer, count };
        self.read_with_wait(reader, wait).await
    }

    async fn acknowledge(&self, lane: Lane, group: &str, ids: &[EntryId]) -> Result<(), JournalError> {
        self.remove_pending(lane, group, ids).await
    }

    async fn consumers(&self, lane: Lane, group: &str) -> Result<Vec<ConsumerInfo>, JournalError> {
        self.list_consumers(lane, group).await
    }

    async fn keep_alive(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError> {
        self.touch_consumer(lane, group, consumer).await
    }

    async fn take_over(
        &self,
        lane: Lane,
        group: &str,
        from: &str,
        to: &str,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        let reader = read::Reader { lane, group, consumer: to, count };
        self.take_pending(reader, from).await
    }

    async fn delete_consumer(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError> {
        self.remove_consumer(lane, group, consumer).await
    }

    async fn transfer(
        &self,
        from: Lane,
        to: Lane,
        group: Option<&str>,
        dead_letters: &[Transfer],
    ) -> Result<u64, JournalError> {
        self.move_dead_letters(from, to, group, dead_letters).await
    }

    async fn list(&self, lane: Lane, after: EntryId, count: usize) -> Result<Vec<Stored>, JournalError> {
        self.list_after(lane, after, count).await
    }

    async fn list_newest(
        &self,
        lane: Lane,
        before: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        self.list_before(lane, before, count).await
    }

    async fn get(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError> {
        self.find(lane, id).await
    }

    async fn delete(&self, lane: Lane, group: Option<&str>, ids: &[EntryId]) -> Result<u64, JournalError> {
        self.delete_dead_letters(lane, group, ids).await
    }

    async fn trim(&self, lane: Lane, before: EntryId) -> Result<Trimmed, JournalError> {
        self.trim_in_steps(lane, before).await
    }

    async fn status(&self, lane: Lane) -> Result<LaneStatus, JournalError> {
        self.lane_status(lane).await
    }

    async fn check_writable(&self) -> Result<(), JournalError> {
        let _write_lock = self.write_lock.lock().await;
        let outcome = self.database.check_writable().await;
        outcome.map_err(|error| JournalError::Unavailable { reason: error.to_string() })
    }

    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError> {
        self.write_note(name, value).await
    }

    async fn notes(&self) -> Result<Notes, JournalError> {
        self.read_notes().await
    }
}
