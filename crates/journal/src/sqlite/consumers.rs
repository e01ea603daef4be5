//! The consumers of a group, and the transfer of their pending entries.

use std::time::Duration;

use sqlx::SqliteConnection;

use super::read::{Reader, find_group, upsert_consumer};
use super::{SqliteJournal, limit, no_group, place, to_u64};
use crate::error::JournalError;
use crate::port::{ConsumerInfo, Lane, Stored};

/// A pending entry; without fields if it was deleted meanwhile.
type PendingRow = (i64, Option<Vec<u8>>);

impl SqliteJournal {
    pub(super) async fn list_consumers(
        &self,
        lane: Lane,
        group: &str,
    ) -> Result<Vec<ConsumerInfo>, JournalError> {
        let explain = |error| self.explain(error);
        let mut connection = self.database.pool.acquire().await.map_err(explain)?;
        let group_row = find_group(&mut connection, lane, group).await.map_err(explain)?;
        let group_row = group_row.ok_or_else(|| no_group(group))?;
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT name, seen_ms,
                (SELECT count(*) FROM pending
                 WHERE pending.group_id = consumers.group_id AND pending.consumer_id = consumers.id)
             FROM consumers WHERE group_id = ?1 ORDER BY name",
        )
        .bind(group_row.id)
        .fetch_all(&mut *connection)
        .await
        .map_err(explain)?;
        let now_ms = self.now_ms();
        let info = |(name, seen_ms, pending)| ConsumerInfo {
            name,
            idle: Duration::from_millis(to_u64(now_ms.saturating_sub(seen_ms))),
            pending: to_u64(pending),
        };
        Ok(rows.into_iter().map(info).collect())
    }

    pub(super) async fn touch_consumer(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
    ) -> Result<(), JournalError> {
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let group_row = find_group(&mut writing.transaction, lane, group).await.map_err(explain)?;
        let group_row = group_row.ok_or_else(|| no_group(group))?;
        upsert_consumer(&mut writing.transaction, group_row.id, consumer, self.now_ms())
            .await
            .map_err(explain)?;
        self.commit(writing).await
    }

    pub(super) async fn take_pending(
        &self,
        reader: Reader<'_>,
        from: &str,
    ) -> Result<Vec<Stored>, JournalError> {
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let connection = &mut *writing.transaction;
        let group = find_group(connection, reader.lane, reader.group).await.map_err(explain)?;
        let group = group.ok_or_else(|| no_group(reader.group))?.id;
        let Some(from) = find_consumer(connection, group, from).await.map_err(explain)? else {
            return Ok(Vec::new());
        };
        let rows = loop {
            let rows = pending_of(connection, (group, from), reader.count).await.map_err(explain)?;
            let (remaining, deleted): (Vec<PendingRow>, Vec<PendingRow>) =
                rows.into_iter().partition(|(_, fields)| fields.is_some());
            forget_deleted(connection, group, &deleted).await.map_err(explain)?;
            // A page of deleted entries only does not mean that there are no others.
            if deleted.is_empty() || !remaining.is_empty() {
                break remaining;
            }
        };
        let last = rows.last().map(|(place, _)| *place);
        let given: Vec<Stored> = rows
            .into_iter()
            .filter_map(|(place, fields)| Some(self.stored((place, fields?))))
            .collect::<Result<_, _>>()?;
        if let Some(last) = last {
            let to =
                upsert_consumer(connection, group, reader.consumer, self.now_ms()).await.map_err(explain)?;
            reassign(connection, group, (from, to), last).await.map_err(explain)?;
        }
        self.commit(writing).await?;
        Ok(given)
    }

    pub(super) async fn remove_consumer(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
    ) -> Result<(), JournalError> {
        let mut writing = self.begin().await?;
        sqlx::query(
            "DELETE FROM consumers
             WHERE group_id = (SELECT id FROM groups WHERE lane = ?1 AND name = ?2) AND name = ?3
               AND NOT EXISTS (SELECT 1 FROM pending
                   WHERE pending.group_id = consumers.group_id AND pending.consumer_id = consumers.id)",
        )
        .bind(place::lane_number(lane))
        .bind(group)
        .bind(consumer)
        .execute(&mut *writing.transaction)
        .await
        .map_err(|error| self.explain(error))?;
        self.commit(writing).await
    }
}

async fn find_consumer(
    connection: &mut SqliteConnection,
    group: i64,
    consumer: &str,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT id FROM consumers WHERE group_id = ?1 AND name = ?2")
        .bind(group)
        .bind(consumer)
        .fetch_optional(connection)
        .await
}

async fn pending_of(
    connection: &mut SqliteConnection,
    (group, consumer): (i64, i64),
    count: usize,
) -> Result<Vec<PendingRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT pending.place, entries.fields
         FROM pending LEFT JOIN entries ON entries.place = pending.place
         WHERE pending.group_id = ?1 AND pending.consumer_id = ?2
         ORDER BY pending.place LIMIT ?3",
    )
    .bind(group)
    .bind(consumer)
    .bind(limit(count))
    .fetch_all(connection)
    .await
}

async fn forget_deleted(
    connection: &mut SqliteConnection,
    group: i64,
    deleted: &[PendingRow],
) -> Result<(), sqlx::Error> {
    if deleted.is_empty() {
        return Ok(());
    }
    sqlx::query("DELETE FROM pending WHERE group_id = ?1 AND place IN (SELECT value FROM json_each(?2))")
        .bind(group)
        .bind(place::numbers(deleted.iter().map(|(place, _)| *place)))
        .execute(connection)
        .await?;
    Ok(())
}

/// Assigns the pending entries of one consumer, up to `last`, to another.
async fn reassign(
    connection: &mut SqliteConnection,
    group: i64,
    (from, to): (i64, i64),
    last: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE pending SET consumer_id = ?3 WHERE group_id = ?1 AND place <= ?4 AND consumer_id = ?2",
    )
    .bind(group)
    .bind(from)
    .bind(to)
    .bind(last)
    .execute(connection)
    .await?;
    Ok(())
}
