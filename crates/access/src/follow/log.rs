//! The change log: reads new entries, and trims old ones.
//!
//! A follower's position depends on the database. SQLite has one writer, and MariaDB numbers entries under a row lock that
//! lasts until the commit, so in both the numbers follow the order of commits, and the position is a number. In PostgreSQL
//! transactions may commit in another order than they took their numbers, so there the position is a snapshot.

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

/// Entries applied at a time.
const BATCH_ROWS: i64 = 2_000;
/// Entries deleted at a time, to keep locks short.
const TRIM_ROWS: i64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Includes all changes up to this number.
    Number(i64),
    /// Includes all changes that this snapshot of PostgreSQL contains.
    Snapshot(String),
}

#[derive(Debug)]
pub(super) enum LogRead {
    /// No changes; the new position.
    UpToDate(Position),
    Batch(Batch),
    /// Entries after the position were trimmed, or the position is not of this database: everything must be read again.
    Truncated,
}

/// The current rows of everything that a range of the log names.
#[derive(Debug)]
pub(super) struct Batch {
    /// The end of that range.
    pub(super) up_to: Position,
    /// None for a row that is removed or cannot be read.
    pub(super) users: Vec<(i64, Option<User>)>,
    /// None for a row that is removed or cannot be read.
    pub(super) torrents: Vec<(i64, Option<Torrent>)>,
    /// Set if one of the lists changed.
    pub(super) lists: Option<Lists>,
}

/// Tables that are short enough to be read completely.
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

/// The log over its own connection. After an error the state of the connection is undefined, and it is dropped.
///
/// # Duties
///
/// - No change is missed: what was committed before a call of `read_after` is in its result or in an earlier one, or the
///   result is [`LogRead::Truncated`].
/// - Each result is one consistent snapshot.
#[async_trait]
pub(super) trait ChangeLog: Send {
    async fn read_after(&mut self, known: &Position) -> Result<LogRead, sqlx::Error>;
    /// Begins a consistent snapshot of all tables; returns its position in the log.
    async fn begin_snapshot(&mut self) -> Result<Position, sqlx::Error>;
    async fn end_snapshot(&mut self) -> Result<(), sqlx::Error>;
    /// Deletes some of the entries beyond `rows_max`, oldest first.
    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error>;
    /// The tables over the same connection.
    fn tables(&mut self) -> &mut dyn Tables;
}

/// The log of a store, over a connection outside of the pool.
pub(super) async fn connect(store: &Store) -> Result<Box<dyn ChangeLog>, sqlx::Error> {
    Ok(match store.database() {
        Database::Sqlite(file) => Box::new(sqlite::SqliteLog::new(file.connect().await?)),
        Database::Postgres(pool) => Box::new(postgres::PgLog::new(pool.acquire().await?.detach())),
        Database::MySql(pool) => Box::new(mysql::MySqlLog::new(pool.acquire().await?.detach())),
    })
}

/// What to read of a log whose numbers follow the order of commits.
#[derive(Debug, PartialEq, Eq)]
enum Range {
    Truncated,
    /// After the first number, up to and including the second.
    Between(i64, i64),
}

/// `newest` is the number of the last change ever, `oldest` that of the oldest entry left.
fn range_after(known: &Position, newest: i64, oldest: Option<i64>) -> Range {
    match known {
        Position::Number(known) if newest >= *known && oldest.is_some_and(|oldest| oldest <= known + 1) => {
            Range::Between(*known, newest.min(known + BATCH_ROWS))
        }
        _ => Range::Truncated,
    }
}

/// The number before which to delete, if there is anything to delete.
fn trim_before(newest: i64, oldest: Option<i64>, rows_max: u32) -> Option<i64> {
    let oldest = oldest?;
    let keep_from = newest + 1 - i64::from(rows_max);
    (oldest < keep_from).then(|| keep_from.min(oldest + TRIM_ROWS))
}

/// Pairs each row with the id in the log.
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
    fn a_log_trimmed_past_the_position_is_truncated() {
        let known = Position::Number(10);
        assert_eq!(range_after(&known, 12, Some(11)), Range::Between(10, 12));
        assert_eq!(range_after(&known, 12, Some(12)), Range::Truncated, "entry 11 was trimmed");
        assert_eq!(range_after(&known, 12, None), Range::Truncated);
        assert_eq!(range_after(&known, 9, Some(1)), Range::Truncated, "another database");
        assert_eq!(range_after(&known, 1 << 40, Some(1)), Range::Between(10, 2_010), "one batch");
        assert_eq!(range_after(&Position::Snapshot("1:1:".into()), 12, Some(1)), Range::Truncated);
    }

    #[test]
    fn a_log_is_trimmed_in_batches() {
        assert_eq!(trim_before(100, Some(1), 100), None);
        assert_eq!(trim_before(101, Some(1), 100), Some(2));
        assert_eq!(trim_before(50_000, Some(1), 100), Some(10_001));
        assert_eq!(trim_before(50_000, None, 100), None);
    }
}
