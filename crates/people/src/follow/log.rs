//! The log of changes: what is new in it, and keeping it short.
//!
//! Where a follower stands is told in the database's own terms. SQLite has one writer, and in MariaDB a row that is locked
//! until the commit gives out the numbers, so in both the numbers follow the order of commits and a follower remembers
//! the last. PostgreSQL lets writers overtake each other, so there a follower remembers a snapshot.

use async_trait::async_trait;
use database::Database;

use super::{mysql, postgres, sqlite};

/// With more changes than this it is quicker to read everything again.
pub(super) const NEWS_MAX: i64 = 20_000;
/// Entries deleted at a time, so that other writers need not wait long.
const TRIM_ROWS: i64 = 10_000;

/// Kind, first and second id.
pub(super) type Entry = (String, i64, i64);

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
    /// These, up to here.
    Some(Vec<Entry>, Known),
    /// What followed that point is gone, or too much, or the point was never reached. The present is here.
    Lost(Known),
}

/// The log over a connection of its own. After an error the connection is in no known state, and is dropped.
///
/// # Duties
///
/// - No change is ever missed: what was committed before a call to `news` is in its answer or in an earlier one, or the
///   answer is [`News::Lost`].
#[async_trait]
pub(super) trait ChangeLog: Send {
    /// How far the log goes now.
    async fn present(&mut self) -> Result<Known, sqlx::Error>;
    /// What happened behind `known`.
    async fn news(&mut self, known: &Known) -> Result<News, sqlx::Error>;
    /// Deletes a part of what exceeds `rows_max`, oldest first.
    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error>;
}

/// The log of a database, over a connection outside of the shared ones.
pub(super) async fn connect(database: &Database) -> Result<Box<dyn ChangeLog>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(sqlite::SqliteLog(file.connect().await?)),
        Database::Postgres(pool) => Box::new(postgres::PgLog(pool.acquire().await?.detach())),
        Database::MySql(pool) => Box::new(mysql::MySqlLog(pool.acquire().await?.detach())),
    })
}

/// From behind which number to read a log whose numbers follow the order of commits; none if it does not reach back that
/// far, or if that is too much. To be compared with the number of the last change ever, and the oldest that is left.
pub(super) fn read_behind(known: &Known, newest: i64, oldest: Option<i64>) -> Option<i64> {
    let Known::Number(known) = known else { return None };
    let reaches_back = oldest.is_some_and(|oldest| oldest <= known + 1);
    (newest >= *known && newest - known <= NEWS_MAX && reaches_back).then_some(*known)
}

/// Before which number to delete, if at all.
pub(super) fn trim_before(newest: i64, oldest: Option<i64>, rows_max: u32) -> Option<i64> {
    let oldest = oldest?;
    let keep_from = newest + 1 - i64::from(rows_max);
    (oldest < keep_from).then(|| keep_from.min(oldest + TRIM_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_does_not_reach_back_is_lost() {
        let known = Known::Number(10);
        assert_eq!(read_behind(&known, 12, Some(11)), Some(10));
        assert_eq!(read_behind(&known, 12, Some(12)), None, "the 11th is gone");
        assert_eq!(read_behind(&known, 12, None), None);
        assert_eq!(read_behind(&known, 9, Some(1)), None, "numbers began again");
        assert_eq!(read_behind(&known, 10 + NEWS_MAX, Some(1)), Some(10));
        assert_eq!(read_behind(&known, 11 + NEWS_MAX, Some(1)), None, "too much to tell one by one");
        assert_eq!(read_behind(&Known::Snapshot("1:1:".into()), 12, Some(1)), None);
    }

    #[test]
    fn a_long_log_is_trimmed_a_part_at_a_time() {
        assert_eq!(trim_before(10, Some(1), 10), None);
        assert_eq!(trim_before(11, Some(1), 10), Some(2));
        assert_eq!(trim_before(1 << 30, Some(1), 10), Some(1 + TRIM_ROWS));
        assert_eq!(trim_before(10, None, 0), None);
    }
}
