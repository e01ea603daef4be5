//! The change feed: what has changed in the tables of a crate since a position, by commands, the API or the site's SQL.
//!
//! Triggers insert a row into a table of changes, the log. A reader has a position in it and a connection of its own; it
//! reads the rows since its position, and trims the log.
//!
//! # Positions
//!
//! A position is in the database's own terms. SQLite has one writer, and in MariaDB a row that is locked until the commit
//! assigns the numbers, so in both the numbers follow the order of commits, and a position is a number. In PostgreSQL
//! sequence numbers are taken before the commit, so a reader that stored the highest number would miss a transaction with
//! lower numbers that commits later. There a position is a snapshot, which states exactly which transactions it contains:
//! each row is found once, whenever its transaction commits, and writers do not wait for each other. While a transaction
//! stays open for long, each poll reads the rows since its begin again, and they are not trimmed.
//!
//! # Guarantees
//!
//! - No change is missed: what was committed before a call of [`ChangeLogReader::read_after`] is in its result or in an
//!   earlier one, or the result is [`LogRead::Truncated`].
//! - A result is one snapshot, in which the caller can read the tables, too.
//!
//! # Waiting
//!
//! [`ChangeWait`] sleeps while nothing changes. PostgreSQL notifies it. SQLite counts the commits of other connections; the
//! count is read when the write-ahead log has changed. MariaDB has neither, so the pause between polls grows, up to four times the first.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::time::Instant;

use crate::sql::{Row, Session, SqlError, Statement, Value};
use crate::sqlite::CommitProbe;
use crate::{Database, Kind};

/// With more changes than this, reading everything again is faster.
const CHANGES_MAX: i64 = 20_000;
/// Rows deleted at a time, to keep locks short.
const TRIM_ROWS: i64 = 10_000;
/// The longest pause between polls, in multiples of the first.
const PAUSE_GROWTH_MAX: u32 = 4;

/// A table of changes.
#[derive(Clone, Copy, Debug)]
pub struct ChangeLog {
    /// Has a column `seq`, and in PostgreSQL `xid`.
    pub table: &'static str,
    /// The columns that name what changed.
    pub columns: &'static str,
    /// Reads the last number ever assigned: in MariaDB, or in all databases if numbers follow the order of commits in
    /// PostgreSQL, too.
    pub newest: &'static str,
    /// In PostgreSQL: the table that records what was trimmed. None if numbers follow the order of commits.
    pub trimmed_postgres: Option<&'static str>,
    /// In PostgreSQL: the channel that is notified of changes.
    pub channel_postgres: &'static str,
    /// Rows in one result; if there are more, the rest follows. None: more than 20,000 are [`LogRead::Truncated`].
    pub batch: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// All changes up to this number.
    Number(i64),
    /// All changes that this snapshot of PostgreSQL contains.
    Snapshot(String),
}

/// Changes after a position, with the new position.
#[derive(Debug)]
pub enum LogRead {
    UpToDate(Position),
    /// Different rows, in no order.
    Changes(Vec<Row>, Position),
    /// The changes were trimmed, or are too many, or the position is not of this database: everything may have changed.
    Truncated(Position),
}

/// Reads a log over a connection of its own. After an error its state is undefined, and it should be dropped.
#[derive(Debug)]
pub struct ChangeLogReader {
    log: ChangeLog,
    kind: Kind,
    session: Session,
    /// SQLite: its count of commits when the log was last read to its end.
    data_version: Option<i64>,
    probe: Option<CommitProbe>,
    /// Whether there were changes since the log was last found short enough.
    may_be_long: bool,
}

impl ChangeLogReader {
    pub async fn connect(database: &Database, log: ChangeLog) -> Result<ChangeLogReader, SqlError> {
        let session = database.session().await?;
        let probe = match database {
            Database::Sqlite(database) => Some(CommitProbe::of(database.path())),
            Database::Postgres(_) | Database::MySql(_) => None,
        };
        let kind = database.kind();
        Ok(ChangeLogReader { log, kind, session, data_version: None, probe, may_be_long: true })
    }

    /// The connection, for reads in the same snapshot.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The present.
    pub async fn position(&mut self) -> Result<Position, SqlError> {
        match self.has_snapshots() {
            true => self.snapshot().await.map(Position::Snapshot),
            false => self.newest().await.map(Position::Number),
        }
    }

    /// Begins a snapshot of all tables; returns its position. It lasts until [`ChangeLogReader::end_snapshot`].
    pub async fn begin_snapshot(&mut self) -> Result<Position, SqlError> {
        self.session.begin_snapshot().await?;
        self.position().await
    }

    pub async fn end_snapshot(&mut self) -> Result<(), SqlError> {
        self.session.end_snapshot().await
    }

    /// Unless the result is [`LogRead::UpToDate`], the snapshot it was read in lasts until
    /// [`ChangeLogReader::end_snapshot`].
    pub async fn read_after(&mut self, known: &Position) -> Result<LogRead, SqlError> {
        let read = match (known, self.log.trimmed_postgres) {
            (Position::Snapshot(known), Some(trimmed)) if self.has_snapshots() => {
                self.read_after_snapshot(known, trimmed).await?
            }
            _ if self.has_snapshots() => LogRead::Truncated(self.begin_snapshot().await?),
            _ => self.read_after_number(known).await?,
        };
        self.may_be_long |= !matches!(read, LogRead::UpToDate(_));
        Ok(read)
    }

    fn has_snapshots(&self) -> bool {
        self.kind == Kind::Postgres && self.log.trimmed_postgres.is_some()
    }

    async fn read_after_number(&mut self, known: &Position) -> Result<LogRead, SqlError> {
        let data_version = self.data_version().await?;
        if data_version.is_some() && data_version == self.data_version {
            return Ok(LogRead::UpToDate(known.clone()));
        }
        let newest = Position::Number(self.newest().await?);
        if newest == *known {
            self.data_version = data_version;
            return Ok(LogRead::UpToDate(newest));
        }
        self.session.begin_snapshot().await?;
        let newest = self.newest().await?;
        let Some((after, up_to)) = range_after(known, newest, self.oldest().await?, self.log.batch) else {
            return Ok(LogRead::Truncated(Position::Number(newest)));
        };
        let ChangeLog { table, columns, .. } = self.log;
        let sql = format!("SELECT DISTINCT {columns} FROM {table} WHERE seq > ? AND seq <= ?");
        let rows = self.session.query(&sql, &[after.into(), up_to.into()]).await?;
        Ok(LogRead::Changes(rows, Position::Number(up_to)))
    }

    async fn data_version(&mut self) -> Result<Option<i64>, SqlError> {
        let Some(probe) = &mut self.probe else { return self.session.data_version().await };
        let question = match probe.look() {
            Ok(version) => return Ok(Some(version)),
            Err(question) => question,
        };
        let version = self.session.data_version().await?;
        if let (Some(probe), Some(version)) = (&mut self.probe, version) {
            probe.learn(question, version);
        }
        Ok(version)
    }

    async fn read_after_snapshot(&mut self, known: &str, trimmed: &str) -> Result<LogRead, SqlError> {
        let ChangeLog { table, columns, .. } = self.log;
        let (now, is_anything_new) = self.look(known, trimmed).await?;
        if !is_anything_new {
            return Ok(LogRead::UpToDate(Position::Snapshot(now)));
        }
        let up_to = self.begin_snapshot().await?;
        if self.is_truncated(known, trimmed).await? {
            return Ok(LogRead::Truncated(up_to));
        }
        let sql = format!("SELECT DISTINCT {columns} FROM {table} WHERE {UNSEEN} LIMIT {}", CHANGES_MAX + 1);
        let rows: Vec<Row> = self.session.query(&sql, &[known.into(), known.into()]).await?;
        Ok(match i64::try_from(rows.len()) {
            Ok(0..=CHANGES_MAX) => LogRead::Changes(rows, up_to),
            _ => LogRead::Truncated(up_to),
        })
    }

    /// The current snapshot, and whether it contains anything that `known` does not.
    async fn look(&mut self, known: &str, trimmed: &str) -> Result<(String, bool), SqlError> {
        let table = self.log.table;
        let sql = format!(
            "SELECT pg_current_snapshot()::TEXT, EXISTS (SELECT 1 FROM {table} WHERE {UNSEEN})
                 OR EXISTS (SELECT 1 FROM {trimmed}
                            WHERE NOT pg_visible_in_snapshot(trimmed_by, ?::TEXT::PG_SNAPSHOT)
                              AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot()))
                 OR pg_snapshot_xmax(?::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())"
        );
        let known = Value::from(known);
        let row = self.session.query_one(&sql, &[known.clone(), known.clone(), known.clone(), known]).await?;
        row.ok_or(SqlError::RowMissing)
    }

    /// Whether rows were trimmed that `known` does not contain, or the server's transaction ids restarted.
    async fn is_truncated(&mut self, known: &str, trimmed: &str) -> Result<bool, SqlError> {
        let sql = format!(
            "SELECT pg_snapshot_xmax(?::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())
                 OR EXISTS (SELECT 1 FROM {trimmed}
                            WHERE trimmed_to >= pg_snapshot_xmin(?::TEXT::PG_SNAPSHOT)
                              AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot())
                              AND NOT pg_visible_in_snapshot(trimmed_by, ?::TEXT::PG_SNAPSHOT))"
        );
        let known = Value::from(known);
        let row = self.session.query_one(&sql, &[known.clone(), known.clone(), known]).await?;
        row.ok_or(SqlError::RowMissing)
    }

    async fn snapshot(&mut self) -> Result<String, SqlError> {
        let row = self.session.query_one("SELECT pg_current_snapshot()::TEXT", &[]).await?;
        row.ok_or(SqlError::RowMissing)
    }

    /// The last number ever assigned, also if its row was trimmed; 0 if there was none.
    async fn newest(&mut self) -> Result<i64, SqlError> {
        let ChangeLog { table, newest, trimmed_postgres, .. } = self.log;
        let sqlite = format!("SELECT seq FROM sqlite_sequence WHERE name = '{table}'");
        let postgres = format!("SELECT max(seq) FROM {table}");
        let statement = match trimmed_postgres {
            Some(_) => Statement::each(&sqlite, &postgres, newest),
            None => Statement::from(newest),
        };
        let newest: Option<Option<i64>> = self.session.query_one(statement, &[]).await?;
        Ok(newest.flatten().unwrap_or(0))
    }

    async fn oldest(&mut self) -> Result<Option<i64>, SqlError> {
        let sql = format!("SELECT min(seq) FROM {}", self.log.table);
        let oldest: Option<Option<i64>> = self.session.query_one(&sql, &[]).await?;
        Ok(oldest.flatten())
    }

    /// Deletes a part of the rows in excess of `rows_max`, oldest first. Does nothing if there were no changes since.
    pub async fn trim(&mut self, rows_max: u32) -> Result<(), SqlError> {
        if !self.may_be_long {
            return Ok(());
        }
        let (oldest, newest) = (self.oldest().await?, self.newest().await?);
        let Some(before) = trim_before(newest, oldest, rows_max) else {
            self.may_be_long = false;
            return Ok(());
        };
        let delete = format!("DELETE FROM {} WHERE seq < ?", self.log.table);
        // Rows that a reader may not have seen stay: all have seen the transactions older than the oldest open one.
        let delete_postgres = format!(
            "{delete} AND (xid < pg_snapshot_xmin(pg_current_snapshot())
                           OR xid >= pg_snapshot_xmax(pg_current_snapshot()))"
        );
        let delete = Statement::each(&delete, &delete_postgres, &delete);
        self.session.execute(delete, &[before.into()]).await.map(drop)
    }
}

/// PostgreSQL: rows that a snapshot, given twice, does not contain. Rows with transaction ids from the future were copied
/// from another server.
const UNSEEN: &str =
    "xid >= pg_snapshot_xmin(?::TEXT::PG_SNAPSHOT) AND xid < pg_snapshot_xmax(pg_current_snapshot())
     AND NOT pg_visible_in_snapshot(xid, ?::TEXT::PG_SNAPSHOT)";

/// The numbers between which to read, the second included. None if the log does not reach back that far, or has too many
/// rows. `newest` is the last number ever assigned, `oldest` the lowest that is left.
fn range_after(known: &Position, newest: i64, oldest: Option<i64>, batch: Option<i64>) -> Option<(i64, i64)> {
    let Position::Number(known) = *known else { return None };
    let reaches_back = newest >= known && oldest.is_some_and(|oldest| oldest <= known + 1);
    let up_to = newest.min(known.saturating_add(batch.unwrap_or(i64::MAX)));
    (reaches_back && up_to - known <= CHANGES_MAX).then_some((known, up_to))
}

/// The number before which to delete, if there is anything to delete.
fn trim_before(newest: i64, oldest: Option<i64>, rows_max: u32) -> Option<i64> {
    let oldest = oldest?;
    let keep_from = newest + 1 - i64::from(rows_max);
    (oldest < keep_from).then(|| keep_from.min(oldest + TRIM_ROWS))
}

/// Waits until there may be changes.
#[derive(Debug)]
pub struct ChangeWait {
    database: Database,
    channel: &'static str,
    first_pause: Duration,
    /// Polls since the last change.
    idle: u32,
    /// The end of a wait that has begun.
    until: Option<Instant>,
    /// PostgreSQL, unless it cannot be reached.
    listener: Option<PgListener>,
}

impl ChangeWait {
    /// `first_pause` is the time between two polls while there are changes.
    pub fn new(database: &Database, log: ChangeLog, first_pause: Duration) -> ChangeWait {
        ChangeWait::on_channel(database, log.channel_postgres, first_pause)
    }

    /// For a log that is read otherwise.
    pub fn on_channel(database: &Database, channel: &'static str, first_pause: Duration) -> ChangeWait {
        let first_pause = first_pause.max(Duration::from_millis(1));
        ChangeWait { database: database.clone(), channel, first_pause, idle: 0, until: None, listener: None }
    }

    /// Cancel safe: a call after a cancelled one continues it. `had_changes` is whether the last poll found any.
    pub async fn wait(&mut self, had_changes: bool) {
        let until = match self.until {
            Some(until) => until,
            None => Instant::now() + self.next_pause(had_changes),
        };
        self.until = Some(until);
        match &self.database {
            Database::Postgres(pool) => {
                let pool = pool.clone();
                // On failure, polling remains.
                let notified = self.wait_for_notification(&pool, until);
                if tokio::time::timeout_at(until, notified).await.is_ok_and(|notified| notified.is_err()) {
                    self.listener = None;
                    tokio::time::sleep_until(until).await;
                }
            }
            Database::Sqlite(_) | Database::MySql(_) => tokio::time::sleep_until(until).await,
        }
        self.until = None;
    }

    fn next_pause(&mut self, had_changes: bool) -> Duration {
        self.idle = if had_changes { 0 } else { self.idle.saturating_add(1) };
        match self.database {
            Database::Sqlite(_) => self.first_pause,
            _ => self.first_pause * self.idle.clamp(1, PAUSE_GROWTH_MAX),
        }
    }

    async fn wait_for_notification(&mut self, pool: &PgPool, until: Instant) -> Result<(), sqlx::Error> {
        let listener = match &mut self.listener {
            Some(listener) => {
                listener.recv().await?;
                listener
            }
            // A change may have been made before: it is looked for at once.
            None => self.listener.insert(listen(pool, self.channel).await?),
        };
        // Changes that follow at once are read together.
        let soon = until.min(Instant::now() + self.first_pause / 10);
        self.until = Some(soon);
        tokio::time::sleep_until(soon).await;
        while listener.next_buffered().is_some() {}
        Ok(())
    }
}

/// On a connection outside of the pool.
async fn listen(pool: &PgPool, channel: &str) -> Result<PgListener, sqlx::Error> {
    let own = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let own = own.connect_lazy_with(pool.connect_options().as_ref().clone());
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen(channel).await?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_does_not_reach_back_is_truncated() {
        let known = Position::Number(10);
        let range = |newest, oldest| range_after(&known, newest, oldest, None);
        assert_eq!(range(12, Some(11)), Some((10, 12)));
        assert_eq!(range(12, Some(12)), None, "the 11th is gone");
        assert_eq!(range(12, None), None);
        assert_eq!(range(9, Some(1)), None, "numbers began again");
        assert_eq!(range(10 + CHANGES_MAX, Some(1)), Some((10, 10 + CHANGES_MAX)));
        assert_eq!(range(11 + CHANGES_MAX, Some(1)), None, "too many to read one by one");
        assert_eq!(range_after(&known, 1 << 40, Some(1), Some(2_000)), Some((10, 2_010)), "one batch");
        assert_eq!(range_after(&Position::Snapshot("1:1:".into()), 12, Some(1), None), None);
    }

    #[test]
    fn a_long_log_is_trimmed_a_part_at_a_time() {
        assert_eq!(trim_before(10, Some(1), 10), None);
        assert_eq!(trim_before(11, Some(1), 10), Some(2));
        assert_eq!(trim_before(1 << 30, Some(1), 10), Some(1 + TRIM_ROWS));
        assert_eq!(trim_before(10, None, 0), None);
    }
}
