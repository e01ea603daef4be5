//! The log of changes: what is new in it, and keeping it short.
//!
//! Where a follower stands in the log is told in the database's own terms. SQLite has one writer, and in MariaDB a row
//! that is locked until the commit gives out the numbers, so in both the numbers follow the order of commits and a
//! follower remembers the last. PostgreSQL lets writers overtake each other, so there a follower remembers a snapshot.

use async_trait::async_trait;
use database::Database;

use crate::clients::ClientRule;
use crate::ports::BannedPorts;
use crate::store::rows::Columns;
use crate::store::tables::Tables;
use crate::store::{Store, Torrent, User};

mod mysql;
mod postgres;
mod sqlite;

/// Entries taken in at a time.
const BATCH_ROWS: i64 = 2_000;
/// Entries deleted at a time, so that other writers need not wait long.
const TRIM_ROWS: i64 = 10_000;

/// How far a follower knows the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// All changes up to this number.
    Number(i64),
    /// All changes that this snapshot of PostgreSQL contains.
    Snapshot(String),
}

/// What the log says to somebody who knows it up to some point.
#[derive(Debug)]
pub(super) enum News {
    /// Nothing new up to here.
    None(Known),
    /// Some changes.
    Batch(Batch),
    /// What followed that point is gone, or the point was never reached: all must be read again.
    Lost,
}

/// The present state of all that a part of the log names.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where that part ends.
    pub(super) up_to: Known,
    /// None stands for a row that is gone or cannot be read.
    pub(super) users: Vec<(i64, Option<User>)>,
    /// None stands for a row that is gone or cannot be read.
    pub(super) torrents: Vec<(i64, Option<Torrent>)>,
    /// The lists that are read whole, if any of them changed.
    pub(super) lists: Option<Lists>,
}

/// What is short enough to be read whole.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) clients: Vec<ClientRule>,
    pub(super) banned_ports: Vec<BannedPorts>,
}

impl Lists {
    async fn read(tables: &mut dyn Tables) -> Result<Lists, sqlx::Error> {
        Ok(Lists { clients: tables.all_clients().await?, banned_ports: tables.all_banned_ports().await? })
    }
}

/// The log over a connection of its own. After an error the connection is in no known state, and is dropped.
///
/// # Duties
///
/// - No change is ever missed: what was committed before a call to `news` is in its answer or in an earlier one, or
///   the answer is [`News::Lost`].
/// - All of one answer is one consistent view.
#[async_trait]
pub(super) trait ChangeLog: Send {
    /// What happened behind `known`.
    async fn news(&mut self, known: &Known) -> Result<News, sqlx::Error>;
    /// Begins one consistent view of all tables; tells how far it knows the log.
    async fn begin_view(&mut self) -> Result<Known, sqlx::Error>;
    /// Ends it.
    async fn end_view(&mut self) -> Result<(), sqlx::Error>;
    /// Deletes a part of what exceeds `rows_max`, oldest first.
    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error>;
    /// The tables, as this connection sees them.
    fn tables(&mut self) -> &mut dyn Tables;
}

/// The log of a store, over a connection outside of the shared ones.
pub(super) async fn connect(store: &Store) -> Result<Box<dyn ChangeLog>, sqlx::Error> {
    Ok(match store.database() {
        Database::Sqlite(file) => Box::new(sqlite::SqliteLog::new(file.connect().await?)),
        Database::Postgres(pool) => Box::new(postgres::PgLog::new(pool.acquire().await?.detach())),
        Database::MySql(pool) => Box::new(mysql::MySqlLog::new(pool.acquire().await?.detach())),
    })
}

/// What is to be read of a log whose numbers follow the order of commits.
#[derive(Debug, PartialEq, Eq)]
enum Stretch {
    Lost,
    /// From behind the first up to the second.
    Between(i64, i64),
}

/// Compares what is known with what is there: the number of the last change ever, and the oldest that is left.
fn stretch_behind(known: &Known, newest: i64, oldest: Option<i64>) -> Stretch {
    match known {
        Known::Number(known) if newest >= *known && oldest.is_some_and(|oldest| oldest <= known + 1) => {
            Stretch::Between(*known, newest.min(known + BATCH_ROWS))
        }
        _ => Stretch::Lost,
    }
}

/// Before which number to delete, if at all.
fn trim_before(newest: i64, oldest: Option<i64>, rows_max: u32) -> Option<i64> {
    let oldest = oldest?;
    let keep_from = newest + 1 - i64::from(rows_max);
    (oldest < keep_from).then(|| keep_from.min(oldest + TRIM_ROWS))
}

/// Pairs each row with the id that the log names.
fn with_subjects<R: Columns, T>(
    rows: &[R],
    read: impl Fn(&R) -> Option<T>,
) -> Result<Vec<(i64, Option<T>)>, sqlx::Error> {
    rows.iter()
        .map(|row| {
            let id = row.maybe_number("id")?;
            Ok((row.number("subject")?, id.and_then(|_| read(row))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_does_not_reach_back_is_lost() {
        let known = Known::Number(10);
        assert_eq!(stretch_behind(&known, 12, Some(11)), Stretch::Between(10, 12));
        assert_eq!(stretch_behind(&known, 12, Some(12)), Stretch::Lost, "the 11th is gone");
        assert_eq!(stretch_behind(&known, 12, None), Stretch::Lost);
        assert_eq!(stretch_behind(&known, 9, Some(1)), Stretch::Lost, "numbers began again");
        assert_eq!(stretch_behind(&known, 1 << 40, Some(1)), Stretch::Between(10, 2_010), "a part at a time");
        assert_eq!(stretch_behind(&Known::Snapshot("1:1:".into()), 12, Some(1)), Stretch::Lost);
    }

    #[test]
    fn a_log_is_trimmed_a_part_at_a_time() {
        assert_eq!(trim_before(100, Some(1), 100), None);
        assert_eq!(trim_before(101, Some(1), 100), Some(2));
        assert_eq!(trim_before(50_000, Some(1), 100), Some(10_001));
        assert_eq!(trim_before(50_000, None, 100), None);
    }
}
