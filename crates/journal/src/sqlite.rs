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
//! - A read wakes up at once when this handle appends, within 200 ms when another process does.
//! - A failed call has changed nothing, or returns [`JournalError::Unanswered`].
//!
//! # Layout
//!
//! The traffic lane is stored in [blocks](blocks): each append is one, with all its entries packed in one value. What
//! was delivered and not acknowledged is [ranges]. Entries of the other lanes are rows, so that they can be moved and
//! deleted one by one. Rows that earlier versions stored in the traffic lane are [absorbed](absorb).
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
use database::{
    DatabaseError, Durability, Kind, Migrations, Schema, SqlError, SqliteDatabase, SqliteOptions,
    SqliteSession,
};
use domain::clock::Clock;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::notes::Notes;
use crate::packed::PackedEvents;
use crate::port::{AppendToken, ConsumerInfo, Journal, Lane, LaneStatus, StartAt, Stored, Transfer, Trimmed};

mod absorb;
mod append;
mod blocks;
mod consumers;
mod dead_letters;
mod place;
mod query;
mod ranges;
mod read;
mod trim;

static MIGRATIONS: Migrations = database::migrations!("journal_migrations" in "migrations":
    sqlite "0001_journal", sqlite "0002_notes", sqlite "0003_blocks");

/// The expected tables.
pub fn schema() -> Schema {
    MIGRATIONS.schema(Kind::Sqlite)
}

pub struct SqliteJournal {
    /// Commits wait for the disk, except those of acknowledgements.
    database: SqliteDatabase,
    clock: Arc<dyn Clock>,
    /// Notified of appends, by lane.
    appended: [Notify; Lane::ALL.len()],
    /// The count of commits when it was last read, for all waiting reads.
    commits: Mutex<Option<(Instant, i64)>>,
}

/// Why a transaction was rolled back.
enum Failure {
    Sql(SqlError),
    NoGroup(String),
    /// The fields of the entry at this place cannot be read.
    DamagedEntry(i64),
    /// The block that begins at this place is not as it was written.
    DamagedBlock(i64),
    IdsExhausted,
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Sql(error)
    }
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
        let migrated = database::migrate_sqlite(&database, MIGRATIONS).await;
        migrated.map_err(|error| explain_opening(database.path(), error))?;
        let appended = Lane::ALL.map(|_| Notify::new());
        let journal = SqliteJournal { database, clock, appended, commits: Mutex::default() };
        journal.absorb_rows().await?;
        Ok(journal)
    }

    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Completes running transactions and closes the file.
    pub async fn close(&self) {
        self.database.close().await;
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteSession) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.database.write(work).await.map_err(|failure| self.explain(failure))
    }

    async fn query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteSession) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.database.read(work).await.map_err(|failure| self.explain(failure))
    }

    fn explain(&self, failure: Failure) -> JournalError {
        let path = self.path().display();
        match failure {
            // The disk did not confirm: after a crash, the commit may turn out to be complete.
            Failure::Sql(error @ SqlError::Commit(_)) if error.is_io_error() => {
                JournalError::Unanswered { reason: self.database.explain(error).to_string() }
            }
            Failure::Sql(error) if error.is_retryable() || matches!(error, SqlError::Closed) => {
                JournalError::Unavailable { reason: self.database.explain(error).to_string() }
            }
            Failure::Sql(error) => JournalError::Damaged {
                what: path.to_string(),
                reason: self.database.explain(error).to_string(),
            },
            Failure::NoGroup(group) => JournalError::NoGroup { group },
            Failure::DamagedEntry(place) => JournalError::Damaged {
                what: format!("entry {} in {path}", place::id_of(place)),
                reason: format!(
                    "its fields cannot be read; restore a backup, or save and delete the row with place {place} of table entries"
                ),
            },
            Failure::DamagedBlock(first) => JournalError::Damaged {
                what: format!("the block of entries from {} on in {path}", place::id_of(first)),
                reason: format!(
                    "it is not as it was written; restore a backup, or save and delete the row with first {first} of table blocks"
                ),
            },
            Failure::IdsExhausted => JournalError::Unavailable {
                reason: "the clock is beyond the year 2248: no ids are left".to_owned(),
            },
        }
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

fn stored((place, fields): (i64, Vec<u8>)) -> Result<Stored, Failure> {
    let fields = Fields::from_bytes(fields).ok_or(Failure::DamagedEntry(place))?;
    Ok(Stored { id: place::id_of(place), fields })
}

fn all_stored(rows: Vec<(i64, Vec<u8>)>) -> Result<Vec<Stored>, Failure> {
    rows.into_iter().map(stored).collect()
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

    async fn append_events(&self, events: &[PackedEvents], token: &AppendToken) -> Result<(), JournalError> {
        self.append_packed(events, token).await
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
        let reader = read::Reader { lane, group: group.to_owned(), consumer: consumer.to_owned(), count };
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
        let reader = read::Reader { lane, group: group.to_owned(), consumer: to.to_owned(), count };
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
