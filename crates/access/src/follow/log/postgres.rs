//! The change log in PostgreSQL: new entries are those that the snapshot of the last poll did not contain.
//!
//! Sequence numbers are assigned before the commit, so a follower that stored the highest number would miss a transaction
//! with lower numbers that commits later. A snapshot defines exactly which transactions it contains: each entry is found
//! once, whenever its transaction commits, and writers do not wait for each other.
//!
//! While a transaction stays open for long, each poll reads the entries since its begin again, and they are not trimmed.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::{Batch, ChangeLog, Lists, LogRead, Position, trim_before, with_subjects};
use crate::store::postgres::PgTables;
use crate::store::rows::{read_torrent, read_user, readable};
use crate::store::tables::Tables;

/// With more subjects than this, a full reload is cheaper.
const SUBJECTS_MAX: usize = 20_000;

/// The entries that the snapshot `$1` does not contain. Entries of future transactions come from another server, whose
/// tables were copied.
macro_rules! unseen {
    () => {
        "FROM access_changes
         WHERE xid >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT) AND xid < pg_snapshot_xmax(pg_current_snapshot())
           AND NOT pg_visible_in_snapshot(xid, $1::TEXT::PG_SNAPSHOT)"
    };
}

/// Whether entries that the snapshot `$1` does not contain were trimmed, or transaction ids went back.
const TRUNCATED: &str =
    "SELECT pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())
        OR EXISTS (SELECT 1 FROM access_trimmed
                   WHERE trimmed_to >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT)
                     AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot())
                     AND NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT))";

pub(super) struct PgLog {
    tables: PgTables<Box<PgConnection>>,
}

/// The ids in a range of the log.
#[derive(Debug, Default)]
struct Subjects {
    users: Vec<i64>,
    torrents: Vec<i64>,
    lists: bool,
}

impl PgLog {
    pub(super) fn new(connection: PgConnection) -> Self {
        PgLog { tables: PgTables(Box::new(connection)) }
    }

    fn connection(&mut self) -> &mut PgConnection {
        &mut self.tables.0
    }

    /// The current snapshot, and whether it contains anything that `known` does not.
    async fn poll(&mut self, known: &str) -> Result<(String, bool), sqlx::Error> {
        sqlx::query_as(concat!(
            "SELECT pg_current_snapshot()::TEXT, EXISTS (SELECT 1 ",
            unseen!(),
            ") OR EXISTS (SELECT 1 FROM access_trimmed
                          WHERE NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT)
                            AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot()))
               OR pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())"
        ))
        .bind(known)
        .fetch_one(self.connection())
        .await
    }

    async fn is_truncated(&mut self, known: &str) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(TRUNCATED).bind(known).fetch_one(self.connection()).await
    }

    async fn begin(&mut self) -> Result<String, sqlx::Error> {
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(self.connection()).await?;
        sqlx::query_scalar("SELECT pg_current_snapshot()::TEXT").fetch_one(self.connection()).await
    }

    /// None if there are too many.
    async fn subjects(&mut self, known: &str) -> Result<Option<Subjects>, sqlx::Error> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as(concat!("SELECT DISTINCT kind, subject ", unseen!(), " LIMIT $2"))
                .bind(known)
                .bind(SUBJECTS_MAX as i64 + 1)
                .fetch_all(self.connection())
                .await?;
        if rows.len() > SUBJECTS_MAX {
            return Ok(None);
        }
        let mut subjects = Subjects::default();
        for (kind, subject) in rows {
            match kind.as_str() {
                "user" => subjects.users.push(subject),
                "torrent" => subjects.torrents.push(subject),
                _ => subjects.lists = true,
            }
        }
        Ok(Some(subjects))
    }

    async fn read(&mut self, subjects: Subjects, up_to: String) -> Result<Batch, sqlx::Error> {
        let users = sqlx::query(
            "SELECT subject, users.* FROM unnest($1::BIGINT[]) AS subject LEFT JOIN users ON id = subject",
        )
        .bind(subjects.users)
        .fetch_all(self.connection())
        .await?;
        let torrents = sqlx::query(
            "SELECT subject, torrents.* FROM unnest($1::BIGINT[]) AS subject LEFT JOIN torrents ON id = subject",
        )
        .bind(subjects.torrents)
        .fetch_all(self.connection())
        .await?;
        Ok(Batch {
            up_to: Position::Snapshot(up_to),
            users: with_subjects(&users, |row| readable(read_user(row)))?,
            torrents: with_subjects(&torrents, |row| readable(read_torrent(row)))?,
            lists: if subjects.lists { Some(Lists::read(&mut self.tables).await?) } else { None },
        })
    }
}

#[async_trait]
impl ChangeLog for PgLog {
    async fn read_after(&mut self, known: &Position) -> Result<LogRead, sqlx::Error> {
        let Position::Snapshot(known) = known else { return Ok(LogRead::Truncated) };
        let (now, has_changes) = self.poll(known).await?;
        if !has_changes {
            return Ok(LogRead::UpToDate(Position::Snapshot(now)));
        }
        // One snapshot for the log and the rows it names.
        let up_to = self.begin().await?;
        let read = if self.is_truncated(known).await? {
            LogRead::Truncated
        } else {
            match self.subjects(known).await? {
                Some(subjects) => LogRead::Batch(self.read(subjects, up_to).await?),
                None => LogRead::Truncated,
            }
        };
        self.end_snapshot().await?;
        Ok(read)
    }

    async fn begin_snapshot(&mut self) -> Result<Position, sqlx::Error> {
        self.begin().await.map(Position::Snapshot)
    }

    async fn end_snapshot(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(self.connection()).await.map(|_| ())
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let ends = sqlx::query("SELECT min(seq) AS oldest, max(seq) AS newest FROM access_changes");
        let ends = ends.fetch_one(self.connection()).await?;
        let (oldest, newest): (Option<i64>, Option<i64>) = (ends.try_get("oldest")?, ends.try_get("newest")?);
        let Some(before) = trim_before(newest.unwrap_or(0), oldest, rows_max) else { return Ok(()) };
        // Entries that some follower may not have read stay: those of transactions as recent as the oldest open one.
        let delete = sqlx::query(
            "DELETE FROM access_changes WHERE seq < $1
               AND (xid < pg_snapshot_xmin(pg_current_snapshot()) OR xid >= pg_snapshot_xmax(pg_current_snapshot()))",
        );
        delete.bind(before).execute(self.connection()).await.map(|_| ())
    }

    fn tables(&mut self) -> &mut dyn Tables {
        &mut self.tables
    }
}
