//! The change log: reading from a position, and trimming.
//!
//! A position is in the database's own terms. SQLite has one writer, and in MariaDB a row that is locked until the
//! commit assigns the numbers, so in both the numbers follow the commit order and a position is a number. In PostgreSQL
//! transactions may commit in another order than they took their numbers, so there a position is a snapshot.

use async_trait::async_trait;
use database::Database;

use super::{mysql, postgres, sqlite};

/// With more changes than this, reading everything again is faster.
pub(super) const CHANGES_MAX: i64 = 20_000;
/// Rows deleted at a time, which bounds how long other writers wait.
const TRIM_ROWS: i64 = 10_000;

/// Kind, first id, second id.
pub(super) type Entry = (String, i64, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Number(i64),
    /// All changes that this PostgreSQL snapshot contains.
    Snapshot(String),
}

/// Changes after a position, with the new position.
#[derive(Debug)]
pub(super) enum Changes {
    None(Position),
    Some(Vec<Entry>, Position),
    /// The changes were trimmed, or are too many, or the position is ahead of the log.
    Lost(Position),
}

/// The change log on a dedicated connection. After an error the connection is in an unknown state and is dropped.
///
/// # Duties
///
/// - No change is missed: a change committed before a call to `changes_since` is in its result or in an earlier one, or
///   the result is [`Changes::Lost`].
#[async_trait]
pub(super) trait ChangeLog: Send {
    async fn position(&mut self) -> Result<Position, sqlx::Error>;
    async fn changes_since(&mut self, known: &Position) -> Result<Changes, sqlx::Error>;
    /// Deletes a part of the rows in excess of `rows_max`, oldest first.
    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error>;
}

/// Opens the change log on a connection outside of the pool.
pub(super) async fn connect(database: &Database) -> Result<Box<dyn ChangeLog>, sqlx::Error> {
    Ok(match database {
        Database::Sqlite(file) => Box::new(sqlite::SqliteLog(file.connect().await?)),
        Database::Postgres(pool) => Box::new(postgres::PgLog(pool.acquire().await?.detach())),
        Database::MySql(pool) => Box::new(mysql::MySqlLog(pool.acquire().await?.detach())),
    })
}

/// The number after which to read a log whose numbers follow the commit order. None if the log does not reach back that
/// far, or has too many rows. `newest` is the last number ever assigned, `oldest` the lowest that is left.
pub(super) fn readable_after(known: &Position, newest: i64, oldest: Option<i64>) -> Option<i64> {
    let Position::Number(known) = known else { return None };
    let reaches_back = oldest.is_some_and(|oldest| oldest <= known + 1);
    (newest >= *known && newest - known <= CHANGES_MAX && reaches_back).then_some(*known)
}

/// The number before which to delete, if there is anything to delete.
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
        let known = Position::Number(10);
        assert_eq!(readable_after(&known, 12, Some(11)), Some(10));
        assert_eq!(readable_after(&known, 12, Some(12)), None, "the 11th is gone");
        assert_eq!(readable_after(&known, 12, None), None);
        assert_eq!(readable_after(&known, 9, Some(1)), None, "numbers began again");
        assert_eq!(readable_after(&known, 10 + CHANGES_MAX, Some(1)), Some(10));
        assert_eq!(readable_after(&known, 11 + CHANGES_MAX, Some(1)), None, "too much to tell one by one");
        assert_eq!(readable_after(&Position::Snapshot("1:1:".into()), 12, Some(1)), None);
    }

    #[test]
    fn a_long_log_is_trimmed_a_part_at_a_time() {
        assert_eq!(trim_before(10, Some(1), 10), None);
        assert_eq!(trim_before(11, Some(1), 10), Some(2));
        assert_eq!(trim_before(1 << 30, Some(1), 10), Some(1 + TRIM_ROWS));
        assert_eq!(trim_before(10, None, 0), None);
    }
}
