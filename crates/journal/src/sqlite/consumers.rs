//! The consumers of a group, and the transfer of their pending entries.

use std::time::Duration;

use database::{SqlError, SqliteSession};

use super::absorb::absorb;
use super::read::{Reader, existing_group, upsert_consumer};
use super::{SqliteJournal, all_stored, limit, place, ranges, to_u64};
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
        let group = group.to_owned();
        let list = move |session: &SqliteSession| {
            let group = existing_group(session, lane, &group)?;
            let rows: Vec<(String, i64, i64)> = session.query(
                "SELECT name, seen_ms,
                    (SELECT count(*) FROM pending
                     WHERE pending.group_id = consumers.group_id AND pending.consumer_id = consumers.id)
                    + (SELECT coalesce(sum(entries), 0) FROM pending_ranges AS ranges
                     WHERE ranges.group_id = consumers.group_id AND ranges.consumer_id = consumers.id)
                 FROM consumers WHERE group_id = ?1 ORDER BY name",
                &[group.id.into()],
            )?;
            Ok(rows)
        };
        let rows = self.query(list).await?;
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
        let (group, consumer, now_ms) = (group.to_owned(), consumer.to_owned(), self.now_ms());
        let touch = move |session: &SqliteSession| {
            let group = existing_group(session, lane, &group)?;
            upsert_consumer(session, group.id, &consumer, now_ms)?;
            Ok(())
        };
        self.write(touch).await
    }

    pub(super) async fn take_pending(&self, reader: Reader, from: &str) -> Result<Vec<Stored>, JournalError> {
        let (from, now_ms) = (from.to_owned(), self.now_ms());
        let take = move |session: &SqliteSession| {
            let group = existing_group(session, reader.lane, &reader.group)?.id;
            let Some(from) = find_consumer(session, group, &from)? else {
                return Ok(Vec::new());
            };
            if reader.lane == Lane::Traffic {
                absorb(session)?;
                let to = upsert_consumer(session, group, &reader.consumer, now_ms)?;
                return ranges::take_over(session, group, (from, to), reader.count);
            }
            let rows = loop {
                let rows = pending_of(session, (group, from), reader.count)?;
                let (remaining, deleted): (Vec<PendingRow>, Vec<PendingRow>) =
                    rows.into_iter().partition(|(_, fields)| fields.is_some());
                forget_deleted(session, group, &deleted)?;
                // A page of deleted entries only does not mean that there are no others.
                if deleted.is_empty() || !remaining.is_empty() {
                    break remaining;
                }
            };
            if let Some((last, _)) = rows.last() {
                let to = upsert_consumer(session, group, &reader.consumer, now_ms)?;
                reassign(session, group, (from, to), *last)?;
            }
            all_stored(rows.into_iter().filter_map(|(place, fields)| Some((place, fields?))).collect())
        };
        self.write(take).await
    }

    pub(super) async fn remove_consumer(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
    ) -> Result<(), JournalError> {
        let values = [place::lane_number(lane).into(), group.into(), consumer.into()];
        let remove = "DELETE FROM consumers
             WHERE group_id = (SELECT id FROM groups WHERE lane = ?1 AND name = ?2) AND name = ?3
               AND NOT EXISTS (SELECT 1 FROM pending
                   WHERE pending.group_id = consumers.group_id AND pending.consumer_id = consumers.id)
               AND NOT EXISTS (SELECT 1 FROM pending_ranges AS ranges
                   WHERE ranges.group_id = consumers.group_id AND ranges.consumer_id = consumers.id)";
        self.write(move |session| Ok(session.execute(remove, &values).map(drop)?)).await
    }
}

fn find_consumer(session: &SqliteSession, group: i64, consumer: &str) -> Result<Option<i64>, SqlError> {
    session.query_one(
        "SELECT id FROM consumers WHERE group_id = ?1 AND name = ?2",
        &[group.into(), consumer.into()],
    )
}

fn pending_of(
    session: &SqliteSession,
    (group, consumer): (i64, i64),
    count: usize,
) -> Result<Vec<PendingRow>, SqlError> {
    session.query(
        "SELECT pending.place, entries.fields
         FROM pending LEFT JOIN entries ON entries.place = pending.place
         WHERE pending.group_id = ?1 AND pending.consumer_id = ?2
         ORDER BY pending.place LIMIT ?3",
        &[group.into(), consumer.into(), limit(count).into()],
    )
}

fn forget_deleted(session: &SqliteSession, group: i64, deleted: &[PendingRow]) -> Result<(), SqlError> {
    if deleted.is_empty() {
        return Ok(());
    }
    let places = place::numbers(deleted.iter().map(|(place, _)| *place));
    session.execute(
        "DELETE FROM pending WHERE group_id = ?1 AND place IN (SELECT value FROM json_each(?2))",
        &[group.into(), places.into()],
    )?;
    Ok(())
}

/// Assigns the pending entries of one consumer, up to `last`, to another.
fn reassign(session: &SqliteSession, group: i64, (from, to): (i64, i64), last: i64) -> Result<(), SqlError> {
    session.execute(
        "UPDATE pending SET consumer_id = ?3 WHERE group_id = ?1 AND place <= ?4 AND consumer_id = ?2",
        &[group.into(), from.into(), to.into(), last.into()],
    )?;
    Ok(())
}
