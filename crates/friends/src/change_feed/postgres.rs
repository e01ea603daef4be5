//! The change log in PostgreSQL: new rows are those that the snapshot of the previous poll does not contain.
//!
//! Sequence numbers are taken before the commit, so a feed that stored the highest number would miss a transaction that
//! took lower numbers and committed later. A snapshot states exactly which transactions it contains: each row is found
//! once, whenever its transaction commits, and writers do not wait for each other.

use async_trait::async_trait;
use sqlx::postgres::PgConnection;

use super::log::{CHANGES_MAX, ChangeLog, Changes, Entry, Position, trim_before};

/// Rows that the snapshot `$1` does not contain. Rows with transaction ids from the future were copied from another
/// server.
macro_rules! unseen {
    () => {
        "FROM people_changes
         WHERE xid >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT) AND xid < pg_snapshot_xmax(pg_current_snapshot())
           AND NOT pg_visible_in_snapshot(xid, $1::TEXT::PG_SNAPSHOT)"
    };
}

/// Whether rows were trimmed that the snapshot `$1` does not contain, or the server's transaction ids restarted.
const LOST: &str = "SELECT pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())
        OR EXISTS (SELECT 1 FROM people_trimmed
                   WHERE trimmed_to >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT)
                     AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot())
                     AND NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT))";

pub(super) struct PgLog(pub(super) PgConnection);

impl PgLog {
    /// The current snapshot, and whether it contains anything that `known` does not.
    async fn look(&mut self, known: &str) -> Result<(String, bool), sqlx::Error> {
        sqlx::query_as(concat!(
            "SELECT pg_current_snapshot()::TEXT, EXISTS (SELECT 1 ",
            unseen!(),
            ") OR EXISTS (SELECT 1 FROM people_trimmed
                          WHERE NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT)
                            AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot()))
               OR pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())"
        ))
        .bind(known)
        .fetch_one(&mut self.0)
        .await
    }

    async fn snapshot(&mut self) -> Result<String, sqlx::Error> {
        sqlx::query_scalar("SELECT pg_current_snapshot()::TEXT").fetch_one(&mut self.0).await
    }

    async fn is_lost(&mut self, known: &str) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(LOST).bind(known).fetch_one(&mut self.0).await
    }

    /// Reads up to one row more than [`CHANGES_MAX`].
    async fn read(&mut self, known: &str) -> Result<Vec<Entry>, sqlx::Error> {
        sqlx::query_as(concat!("SELECT DISTINCT kind, user_a, user_b ", unseen!(), " LIMIT $2"))
            .bind(known)
            .bind(CHANGES_MAX + 1)
            .fetch_all(&mut self.0)
            .await
    }
}

#[async_trait]
impl ChangeLog for PgLog {
    async fn position(&mut self) -> Result<Position, sqlx::Error> {
        self.snapshot().await.map(Position::Snapshot)
    }

    async fn changes_since(&mut self, known: &Position) -> Result<Changes, sqlx::Error> {
        let Position::Snapshot(known) = known else { return Ok(Changes::Lost(self.position().await?)) };
        let (now, is_anything_new) = self.look(known).await?;
        if !is_anything_new {
            return Ok(Changes::None(Position::Snapshot(now)));
        }
        // One snapshot for the position and the rows.
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut self.0).await?;
        let up_to = Position::Snapshot(self.snapshot().await?);
        let changes = if self.is_lost(known).await? {
            Changes::Lost(up_to)
        } else {
            let entries = self.read(known).await?;
            match i64::try_from(entries.len()) {
                Ok(0) => Changes::None(up_to),
                Ok(1..=CHANGES_MAX) => Changes::Some(entries, up_to),
                _ => Changes::Lost(up_to),
            }
        };
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await?;
        Ok(changes)
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let (oldest, newest): (Option<i64>, Option<i64>) =
            sqlx::query_as("SELECT min(seq), max(seq) FROM people_changes").fetch_one(&mut self.0).await?;
        let Some(before) = trim_before(newest.unwrap_or(0), oldest, rows_max) else { return Ok(()) };
        // Keep rows that a feed may not have seen: all feeds have seen the transactions older than the oldest open one.
        let delete = sqlx::query(
            "DELETE FROM people_changes WHERE seq < $1
               AND (xid < pg_snapshot_xmin(pg_current_snapshot()) OR xid >= pg_snapshot_xmax(pg_current_snapshot()))",
        );
        delete.bind(before).execute(&mut self.0).await.map(|_| ())
    }
}
