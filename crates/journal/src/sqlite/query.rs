//! Queries of entries and status; the notes.

use super::{SqliteJournal, limit, place, to_u64};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Notes;
use crate::port::{GroupStatus, Lane, LaneStatus, Stored};

#[derive(sqlx::FromRow)]
struct LaneRow {
    last: i64,
    appended: i64,
    length: i64,
    first: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct GroupRow {
    name: String,
    last_delivered: i64,
    unread: i64,
    pending: i64,
    oldest_pending: Option<i64>,
    consumers: i64,
}

impl GroupRow {
    fn into_status(self) -> GroupStatus {
        GroupStatus {
            name: self.name,
            unread: to_u64(self.unread),
            pending: to_u64(self.pending),
            oldest_pending: self.oldest_pending.map(place::id_of),
            last_delivered: place::id_of(self.last_delivered),
            consumers: to_u64(self.consumers),
        }
    }
}

impl SqliteJournal {
    pub(super) async fn list_after(
        &self,
        lane: Lane,
        after: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        let rows = sqlx::query_as(
            "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3",
        )
        .bind(place::at_most(lane, after))
        .bind(place::end_of(lane))
        .bind(limit(count))
        .fetch_all(&self.database.pool)
        .await
        .map_err(|error| self.explain(error))?;
        self.all_stored(rows)
    }

    pub(super) async fn list_before(
        &self,
        lane: Lane,
        before: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        let rows = sqlx::query_as(
            "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place DESC LIMIT ?3",
        )
        .bind(place::start_of(lane))
        .bind(place::at_least(lane, before))
        .bind(limit(count))
        .fetch_all(&self.database.pool)
        .await
        .map_err(|error| self.explain(error))?;
        self.all_stored(rows)
    }

    pub(super) async fn find(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError> {
        let Some(place) = place::exactly(lane, id) else {
            return Ok(None);
        };
        let row = sqlx::query_as("SELECT place, fields FROM entries WHERE place = ?1")
            .bind(place)
            .fetch_optional(&self.database.pool)
            .await
            .map_err(|error| self.explain(error))?;
        row.map(|row| self.stored(row)).transpose()
    }

    pub(super) async fn lane_status(&self, lane: Lane) -> Result<LaneStatus, JournalError> {
        let explain = |error| self.explain(error);
        // One transaction, so that all numbers are consistent.
        let mut reading = self.database.pool.begin().await.map_err(explain)?;
        let row: LaneRow = sqlx::query_as(
            "SELECT last, appended, length,
                (SELECT min(place) FROM entries WHERE place > ?2 AND place < ?3) AS first
             FROM lanes WHERE lane = ?1",
        )
        .bind(place::lane_number(lane))
        .bind(place::start_of(lane))
        .bind(place::end_of(lane))
        .fetch_one(&mut *reading)
        .await
        .map_err(explain)?;
        let groups: Vec<GroupRow> = sqlx::query_as(
            "SELECT name, last_delivered, unread,
                (SELECT count(*) FROM pending WHERE group_id = groups.id) AS pending,
                (SELECT min(place) FROM pending WHERE group_id = groups.id) AS oldest_pending,
                (SELECT count(*) FROM consumers WHERE group_id = groups.id) AS consumers
             FROM groups WHERE lane = ?1 ORDER BY name",
        )
        .bind(place::lane_number(lane))
        .fetch_all(&mut *reading)
        .await
        .map_err(explain)?;
        reading.rollback().await.map_err(explain)?;
        Ok(LaneStatus {
            length: to_u64(row.length),
            first: row.first.map(place::id_of),
            last: (row.appended > 0).then(|| place::id_of(row.last)),
            appended: to_u64(row.appended),
            groups: groups.into_iter().map(GroupRow::into_status).collect(),
        })
    }

    pub(super) async fn write_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError> {
        let statement = match value {
            Some(value) => sqlx::query(
                "INSERT INTO notes (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            )
            .bind(name)
            .bind(value),
            None => sqlx::query("DELETE FROM notes WHERE name = ?1").bind(name),
        };
        let mut writing = self.begin().await?;
        statement.execute(&mut *writing.transaction).await.map_err(|error| self.explain(error))?;
        self.commit(writing).await
    }

    pub(super) async fn read_notes(&self) -> Result<Notes, JournalError> {
        let notes: Vec<(String, String)> = sqlx::query_as("SELECT name, value FROM notes")
            .fetch_all(&self.database.pool)
            .await
            .map_err(|error| self.explain(error))?;
        Ok(notes.into_iter().collect())
    }
}
