//! Groups: delivery of unread entries, and acknowledgements.

use std::time::Duration;

use sqlx::SqliteConnection;

use super::{SqliteJournal, limit, no_group, place};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Lane, StartAt, Stored};

/// Interval at which a waiting read checks for appends of other processes. Appends of this process wake it up.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// Resolution of `seen_ms` for consumers without new entries, so that an idle server does not write all the time.
const SEEN_RESOLUTION_MS: u64 = 1_000;

#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) lane: Lane,
    pub(super) group: &'a str,
    pub(super) consumer: &'a str,
    pub(super) count: usize,
}

#[derive(sqlx::FromRow)]
pub(super) struct GroupRow {
    pub(super) id: i64,
    last_delivered: i64,
}

impl SqliteJournal {
    pub(super) async fn create_group(
        &self,
        lane: Lane,
        group: &str,
        start: StartAt,
    ) -> Result<bool, JournalError> {
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM groups WHERE lane = ?1 AND name = ?2")
            .bind(place::lane_number(lane))
            .bind(group)
            .fetch_optional(&self.database.pool)
            .await
            .map_err(|error| self.explain(error))?;
        if known.is_some() {
            return Ok(false);
        }
        let last_delivered = match start {
            StartAt::Beginning => place::start_of(lane),
            StartAt::After(id) => place::at_most(lane, id),
        };
        let mut writing = self.begin().await?;
        let made = sqlx::query(
            "INSERT INTO groups (lane, name, last_delivered, unread)
             VALUES (?1, ?2, ?3, (SELECT count(*) FROM entries WHERE place > ?3 AND place < ?4))
             ON CONFLICT DO NOTHING",
        )
        .bind(place::lane_number(lane))
        .bind(group)
        .bind(last_delivered)
        .bind(place::end_of(lane))
        .execute(&mut *writing.transaction)
        .await
        .map_err(|error| self.explain(error))?;
        self.commit(writing).await?;
        Ok(made.rows_affected() > 0)
    }

    pub(super) async fn read_with_wait(
        &self,
        reader: Reader<'_>,
        wait: Duration,
    ) -> Result<Vec<Stored>, JournalError> {
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_seen = false;
        loop {
            // Subscribed before the query, so that no append is missed in between.
            let appended = self.appended_to(reader.lane).notified();
            if self.has_unread(reader, &mut is_seen).await? && reader.count > 0 {
                let given = self.deliver(reader).await?;
                if !given.is_empty() {
                    return Ok(given);
                }
            }
            if wait.is_zero() || reader.count == 0 {
                return Ok(Vec::new());
            }
            tokio::select! {
                () = &mut deadline => return Ok(Vec::new()),
                () = appended => {}
                () = tokio::time::sleep(POLL_PERIOD) => {}
            }
        }
    }

    /// Read-only, except that the consumer's `seen_ms` is updated, once per read and not too often.
    async fn has_unread(&self, reader: Reader<'_>, is_seen: &mut bool) -> Result<bool, JournalError> {
        let row: Option<(i64, Option<i64>)> = sqlx::query_as(
            "SELECT groups.unread, consumers.seen_ms
             FROM groups LEFT JOIN consumers ON consumers.group_id = groups.id AND consumers.name = ?3
             WHERE groups.lane = ?1 AND groups.name = ?2",
        )
        .bind(place::lane_number(reader.lane))
        .bind(reader.group)
        .bind(reader.consumer)
        .fetch_optional(&self.database.pool)
        .await
        .map_err(|error| self.explain(error))?;
        let (unread, seen_ms) = row.ok_or_else(|| no_group(reader.group))?;
        if unread > 0 {
            return Ok(true);
        }
        let is_recent = seen_ms.is_some_and(|seen| seen.abs_diff(self.now_ms()) < SEEN_RESOLUTION_MS);
        if !*is_seen && !is_recent {
            self.touch_consumer(reader.lane, reader.group, reader.consumer).await?;
        }
        *is_seen = true;
        Ok(false)
    }

    async fn deliver(&self, reader: Reader<'_>) -> Result<Vec<Stored>, JournalError> {
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let connection = &mut *writing.transaction;
        let group = find_group(connection, reader.lane, reader.group).await.map_err(explain)?;
        let group = group.ok_or_else(|| no_group(reader.group))?;
        let rows = unread(connection, reader, &group).await.map_err(explain)?;
        let given = self.all_stored(rows)?;
        let consumer =
            upsert_consumer(connection, group.id, reader.consumer, self.now_ms()).await.map_err(explain)?;
        let Some(last) = given.last() else {
            return Ok(given);
        };
        let last = place::at_most(reader.lane, last.id);
        mark_pending(connection, &group, consumer, last).await.map_err(explain)?;
        self.commit(writing).await?;
        Ok(given)
    }

    /// In a commit that does not wait for the disk: if it is undone, the entries are pending again, and views recognise
    /// what they have applied.
    pub(super) async fn remove_pending(
        &self,
        lane: Lane,
        group: &str,
        ids: &[EntryId],
    ) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        let places = place::list(lane, ids.iter().copied());
        let _write_lock = self.write_lock.lock().await;
        sqlx::query(
            "DELETE FROM pending
             WHERE group_id = (SELECT id FROM groups WHERE lane = ?1 AND name = ?2)
               AND place IN (SELECT value FROM json_each(?3))",
        )
        .bind(place::lane_number(lane))
        .bind(group)
        .bind(places)
        .execute(&self.acknowledging.pool)
        .await
        .map_err(|error| self.explain(error))?;
        Ok(())
    }
}

pub(super) async fn find_group(
    connection: &mut SqliteConnection,
    lane: Lane,
    group: &str,
) -> Result<Option<GroupRow>, sqlx::Error> {
    sqlx::query_as("SELECT id, last_delivered FROM groups WHERE lane = ?1 AND name = ?2")
        .bind(place::lane_number(lane))
        .bind(group)
        .fetch_optional(connection)
        .await
}

async fn unread(
    connection: &mut SqliteConnection,
    reader: Reader<'_>,
    group: &GroupRow,
) -> Result<Vec<(i64, Vec<u8>)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3",
    )
    .bind(group.last_delivered)
    .bind(place::end_of(reader.lane))
    .bind(limit(reader.count))
    .fetch_all(connection)
    .await
}

/// Updates `seen_ms`. Returns the consumer's id.
pub(super) async fn upsert_consumer(
    connection: &mut SqliteConnection,
    group_id: i64,
    consumer: &str,
    now_ms: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO consumers (group_id, name, seen_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET seen_ms = excluded.seen_ms RETURNING id",
    )
    .bind(group_id)
    .bind(consumer)
    .bind(now_ms)
    .fetch_one(connection)
    .await
}

/// Everything after the last delivered entry, up to `last`, becomes pending.
async fn mark_pending(
    connection: &mut SqliteConnection,
    group: &GroupRow,
    consumer: i64,
    last: i64,
) -> Result<(), sqlx::Error> {
    let marked = sqlx::query(
        "INSERT INTO pending (group_id, place, consumer_id)
         SELECT ?1, place, ?2 FROM entries WHERE place > ?3 AND place <= ?4",
    )
    .bind(group.id)
    .bind(consumer)
    .bind(group.last_delivered)
    .bind(last)
    .execute(&mut *connection)
    .await?;
    sqlx::query("UPDATE groups SET last_delivered = ?2, unread = unread - ?3 WHERE id = ?1")
        .bind(group.id)
        .bind(last)
        .bind(to_i64(marked.rows_affected()))
        .execute(connection)
        .await?;
    Ok(())
}

fn to_i64(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
