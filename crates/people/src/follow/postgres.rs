//! The log in PostgreSQL: what is new is what the snapshot of the last look did not contain.
//!
//! Numbers from a sequence are taken before the commit, so a follower that remembered the highest number would never
//! see a transaction that took lower ones and committed later. A snapshot says exactly which transactions it contains:
//! each entry is found once, whenever its transaction commits, and no writer waits for another.

use async_trait::async_trait;
use sqlx::postgres::PgConnection;

use super::log::{ChangeLog, Entry, Known, NEWS_MAX, News, trim_before};

/// The entries that the snapshot `$1` does not contain. Those of transactions yet to come are left over from another
/// server, whose tables were copied.
macro_rules! unseen {
    () => {
        "FROM people_changes
         WHERE xid >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT) AND xid < pg_snapshot_xmax(pg_current_snapshot())
           AND NOT pg_visible_in_snapshot(xid, $1::TEXT::PG_SNAPSHOT)"
    };
}

/// Whether anything was taken out of the log that the snapshot `$1` does not contain, or the server's transactions
/// begin again.
const LOST: &str = "SELECT pg_snapshot_xmax($1::TEXT::PG_SNAPSHOT) > pg_snapshot_xmax(pg_current_snapshot())
        OR EXISTS (SELECT 1 FROM people_trimmed
                   WHERE trimmed_to >= pg_snapshot_xmin($1::TEXT::PG_SNAPSHOT)
                     AND trimmed_by < pg_snapshot_xmax(pg_current_snapshot())
                     AND NOT pg_visible_in_snapshot(trimmed_by, $1::TEXT::PG_SNAPSHOT))";

/// The log over a connection of its own.
pub(super) struct PgLog(pub(super) PgConnection);

impl PgLog {
    /// One look: the snapshot it is made in, and whether that contains anything that `known` does not.
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

    /// One more than is told one by one, if there are so many.
    async fn read(&mut self, known: &str) -> Result<Vec<Entry>, sqlx::Error> {
        sqlx::query_as(concat!("SELECT DISTINCT kind, user_a, user_b ", unseen!(), " LIMIT $2"))
            .bind(known)
            .bind(NEWS_MAX + 1)
            .fetch_all(&mut self.0)
            .await
    }
}

#[async_trait]
impl ChangeLog for PgLog {
    async fn present(&mut self) -> Result<Known, sqlx::Error> {
        self.snapshot().await.map(Known::Snapshot)
    }

    async fn news(&mut self, known: &Known) -> Result<News, sqlx::Error> {
        let Known::Snapshot(known) = known else { return Ok(News::Lost(self.present().await?)) };
        let (now, is_anything_new) = self.look(known).await?;
        if !is_anything_new {
            return Ok(News::None(Known::Snapshot(now)));
        }
        // One view for what is said to be known and what is read.
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut self.0).await?;
        let up_to = Known::Snapshot(self.snapshot().await?);
        let news = if self.is_lost(known).await? {
            News::Lost(up_to)
        } else {
            let entries = self.read(known).await?;
            match i64::try_from(entries.len()) {
                Ok(0) => News::None(up_to),
                Ok(1..=NEWS_MAX) => News::Some(entries, up_to),
                _ => News::Lost(up_to),
            }
        };
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await?;
        Ok(news)
    }

    async fn trim(&mut self, rows_max: u32) -> Result<(), sqlx::Error> {
        let (oldest, newest): (Option<i64>, Option<i64>) =
            sqlx::query_as("SELECT min(seq), max(seq) FROM people_changes").fetch_one(&mut self.0).await?;
        let Some(before) = trim_before(newest.unwrap_or(0), oldest, rows_max) else { return Ok(()) };
        // What some follower may not have seen yet stays: an entry is surely seen by all who have looked since the
        // oldest transaction that is still open began.
        let delete = sqlx::query(
            "DELETE FROM people_changes WHERE seq < $1
               AND (xid < pg_snapshot_xmin(pg_current_snapshot()) OR xid >= pg_snapshot_xmax(pg_current_snapshot()))",
        );
        delete.bind(before).execute(&mut self.0).await.map(|_| ())
    }
}
