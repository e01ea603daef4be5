//! Groups: delivery of unread entries, and acknowledgements.

use std::time::Duration;

use database::{Durability, SqlError, SqliteSession};
use tokio::time::Instant;

use super::absorb::absorb;
use super::ranges::{self, Range};
use super::{Failure, SqliteJournal, all_stored, blocks, limit, place};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Lane, StartAt, Stored};

/// Interval at which a waiting read checks for appends of other processes. Appends of this process wake it up.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// Resolution of `seen_ms` for consumers without new entries, so that an idle server does not write all the time.
const SEEN_RESOLUTION_MS: u64 = 1_000;

#[derive(Clone)]
pub(super) struct Reader {
    pub(super) lane: Lane,
    pub(super) group: String,
    pub(super) consumer: String,
    pub(super) count: usize,
}

database::rows! {
    pub(super) struct GroupRow {
        pub(super) id: i64,
        last_delivered: i64,
    }
}

impl SqliteJournal {
    pub(super) async fn create_group(
        &self,
        lane: Lane,
        group: &str,
        start: StartAt,
    ) -> Result<bool, JournalError> {
        let name = group.to_owned();
        if self.query(move |session| Ok(find_group(session, lane, &name)?)).await?.is_some() {
            return Ok(false);
        }
        let last_delivered = match start {
            StartAt::Beginning => place::start_of(lane),
            StartAt::After(id) => place::at_most(lane, id),
        };
        let values = [
            place::lane_number(lane).into(),
            group.into(),
            last_delivered.into(),
            place::end_of(lane).into(),
        ];
        let create = "INSERT INTO groups (lane, name, last_delivered, unread)
             VALUES (?1, ?2, ?3, (SELECT count(*) FROM entries WHERE place > ?3 AND place < ?4))
             ON CONFLICT DO NOTHING";
        let created = self.write(move |session| Ok(session.execute(create, &values)?)).await?;
        Ok(created > 0)
    }

    pub(super) async fn read_with_wait(
        &self,
        reader: Reader,
        wait: Duration,
    ) -> Result<Vec<Stored>, JournalError> {
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_seen = false;
        let (mut known_commits, mut was_notified) = (None, false);
        loop {
            // Subscribed before the query, so that no append is missed in between.
            let appended = self.appended_to(reader.lane).notified();
            let commits = Some(self.commits().await?);
            let may_have_unread = std::mem::replace(&mut known_commits, commits) != commits;
            let may_have_unread = may_have_unread && reader.count > 0;
            if may_have_unread && (was_notified || self.has_unread(&reader, &mut is_seen).await?) {
                let given = self.deliver(reader.clone()).await?;
                if !given.is_empty() {
                    return Ok(given);
                }
            }
            if wait.is_zero() || reader.count == 0 {
                return Ok(Vec::new());
            }
            tokio::select! {
                () = &mut deadline => return Ok(Vec::new()),
                () = appended => (known_commits, was_notified) = (None, true),
                () = tokio::time::sleep(POLL_PERIOD) => was_notified = false,
            }
        }
    }

    /// The count of commits of all processes, at most a [`POLL_PERIOD`] old.
    async fn commits(&self) -> Result<i64, JournalError> {
        let mut known = self.commits.lock().await;
        match *known {
            Some((at, commits)) if at.elapsed() < POLL_PERIOD => Ok(commits),
            _ => {
                let read = self.database.data_version().await;
                let commits = read.map_err(|error| self.explain(error.into()))?;
                *known = Some((Instant::now(), commits));
                Ok(commits)
            }
        }
    }

    /// Read-only, except that the consumer's `seen_ms` is updated, once per read and not too often.
    async fn has_unread(&self, reader: &Reader, is_seen: &mut bool) -> Result<bool, JournalError> {
        let values = [
            place::lane_number(reader.lane).into(),
            reader.group.as_str().into(),
            reader.consumer.as_str().into(),
        ];
        // In the traffic lane unread entries are not counted along.
        let select = "SELECT CASE WHEN groups.lane = 0 THEN lanes.last > groups.last_delivered
                 ELSE groups.unread > 0 END, consumers.seen_ms
             FROM groups JOIN lanes USING (lane) LEFT JOIN consumers ON consumers.group_id = groups.id AND consumers.name = ?3
             WHERE groups.lane = ?1 AND groups.name = ?2";
        let row: Option<(bool, Option<i64>)> =
            self.query(move |session| Ok(session.query_one(select, &values)?)).await?;
        let no_group = || JournalError::NoGroup { group: reader.group.clone() };
        let (has_unread, seen_ms) = row.ok_or_else(no_group)?;
        if has_unread {
            return Ok(true);
        }
        let is_recent = seen_ms.is_some_and(|seen| seen.abs_diff(self.now_ms()) < SEEN_RESOLUTION_MS);
        if !*is_seen && !is_recent {
            self.touch_consumer(reader.lane, &reader.group, &reader.consumer).await?;
        }
        *is_seen = true;
        Ok(false)
    }

    async fn deliver(&self, reader: Reader) -> Result<Vec<Stored>, JournalError> {
        let now_ms = self.now_ms();
        let deliver = move |session: &SqliteSession| {
            let group = existing_group(session, reader.lane, &reader.group)?;
            if reader.lane == Lane::Traffic {
                return deliver_blocks(session, &group, &reader, now_ms);
            }
            let unread = session.query(
                "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3",
                &[group.last_delivered.into(), place::end_of(reader.lane).into(), limit(reader.count).into()],
            )?;
            let given = all_stored(unread)?;
            let consumer = upsert_consumer(session, group.id, &reader.consumer, now_ms)?;
            if let Some(last) = given.last() {
                mark_pending(session, &group, consumer, place::at_most(reader.lane, last.id))?;
            }
            Ok(given)
        };
        self.write(deliver).await
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
        if lane == Lane::Traffic {
            return self.acknowledge_traffic(group, place::sorted(lane, ids.iter().copied())).await;
        }
        let places = place::list(lane, ids.iter().copied());
        let values = [place::lane_number(lane).into(), group.into(), places.into()];
        let remove = "DELETE FROM pending
             WHERE group_id = (SELECT id FROM groups WHERE lane = ?1 AND name = ?2)
               AND place IN (SELECT value FROM json_each(?3))";
        let acknowledge = move |session: &SqliteSession| -> Result<(), Failure> {
            Ok(session.execute(remove, &values).map(drop)?)
        };
        let acknowledged = self.database.write_with(Durability::ProcessCrash, acknowledge).await;
        acknowledged.map_err(|failure| self.explain(failure))
    }
}

impl SqliteJournal {
    async fn acknowledge_traffic(&self, group: &str, places: Vec<i64>) -> Result<(), JournalError> {
        let group = group.to_owned();
        let acknowledge = move |session: &SqliteSession| -> Result<(), Failure> {
            match find_group(session, Lane::Traffic, &group)? {
                Some(group) => Ok(ranges::acknowledge(session, group.id, &places).map(drop)?),
                None => Ok(()),
            }
        };
        let acknowledged = self.database.write_with(Durability::ProcessCrash, acknowledge).await;
        acknowledged.map_err(|failure| self.explain(failure))
    }
}

fn deliver_blocks(
    session: &SqliteSession,
    group: &GroupRow,
    reader: &Reader,
    now_ms: i64,
) -> Result<Vec<Stored>, Failure> {
    absorb(session)?;
    let unread = (group.last_delivered.saturating_add(1), place::end_of(Lane::Traffic));
    let given = blocks::read(session, unread, reader.count)?;
    let consumer = upsert_consumer(session, group.id, &reader.consumer, now_ms)?;
    if let Some(range) = Range::of(&given, consumer) {
        ranges::insert(session, group.id, &range)?;
        let update = "UPDATE groups SET last_delivered = ?2 WHERE id = ?1";
        session.execute(update, &[group.id.into(), range.last.into()])?;
    }
    Ok(given)
}

pub(super) fn find_group(
    session: &SqliteSession,
    lane: Lane,
    group: &str,
) -> Result<Option<GroupRow>, SqlError> {
    session.query_one(
        "SELECT id, last_delivered FROM groups WHERE lane = ?1 AND name = ?2",
        &[place::lane_number(lane).into(), group.into()],
    )
}

pub(super) fn existing_group(session: &SqliteSession, lane: Lane, group: &str) -> Result<GroupRow, Failure> {
    find_group(session, lane, group)?.ok_or_else(|| Failure::NoGroup(group.to_owned()))
}

/// Updates `seen_ms`. Returns the consumer's id.
pub(super) fn upsert_consumer(
    session: &SqliteSession,
    group_id: i64,
    consumer: &str,
    now_ms: i64,
) -> Result<i64, SqlError> {
    let id = session.query_one(
        "INSERT INTO consumers (group_id, name, seen_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET seen_ms = excluded.seen_ms RETURNING id",
        &[group_id.into(), consumer.into(), now_ms.into()],
    )?;
    id.ok_or(SqlError::RowMissing)
}

/// Everything after the last delivered entry, up to `last`, becomes pending.
fn mark_pending(session: &SqliteSession, group: &GroupRow, consumer: i64, last: i64) -> Result<(), SqlError> {
    let marked = session.execute(
        "INSERT INTO pending (group_id, place, consumer_id)
         SELECT ?1, place, ?2 FROM entries WHERE place > ?3 AND place <= ?4",
        &[group.id.into(), consumer.into(), group.last_delivered.into(), last.into()],
    )?;
    let marked = i64::try_from(marked).unwrap_or(i64::MAX);
    session.execute(
        "UPDATE groups SET last_delivered = ?2, unread = unread - ?3 WHERE id = ?1",
        &[group.id.into(), last.into(), marked.into()],
    )?;
    Ok(())
}
