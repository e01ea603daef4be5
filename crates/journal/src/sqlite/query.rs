//! Queries of entries and status; the notes.

use database::{SqlError, SqliteSession, Value};

use super::{SqliteJournal, all_stored, blocks, limit, place, stored, to_u64};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Notes;
use crate::port::{GroupStatus, Lane, LaneStatus, Stored};

database::rows! {
    struct LaneRow {
        last: i64,
        appended: i64,
        length: i64,
        first: Option<i64>,
    }

    struct GroupRow {
        name: String,
        last_delivered: i64,
        unread: i64,
        pending: i64,
        oldest_pending: Option<i64>,
        consumers: i64,
    }
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
        if lane == Lane::Traffic {
            let places = (place::at_most(lane, after).saturating_add(1), place::end_of(lane));
            return self.query(move |session| blocks::read(session, places, count)).await;
        }
        let select =
            "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3";
        let values = [place::at_most(lane, after), place::end_of(lane), limit(count)].map(Value::from);
        self.query(move |session| all_stored(session.query(select, &values)?)).await
    }

    pub(super) async fn list_before(
        &self,
        lane: Lane,
        before: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        if lane == Lane::Traffic {
            let before = place::at_least(lane, before);
            return self.query(move |session| blocks::read_newest(session, before, count)).await;
        }
        let select =
            "SELECT place, fields FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place DESC LIMIT ?3";
        let values = [place::start_of(lane), place::at_least(lane, before), limit(count)].map(Value::from);
        self.query(move |session| all_stored(session.query(select, &values)?)).await
    }

    pub(super) async fn find(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError> {
        let Some(place) = place::exactly(lane, id) else {
            return Ok(None);
        };
        if lane == Lane::Traffic {
            let find = move |session: &SqliteSession| blocks::read(session, (place, place), 1);
            return Ok(self.query(find).await?.pop());
        }
        let select = "SELECT place, fields FROM entries WHERE place = ?1";
        let find = move |session: &SqliteSession| {
            session.query_one(select, &[place.into()])?.map(stored).transpose()
        };
        self.query(find).await
    }

    pub(super) async fn lane_status(&self, lane: Lane) -> Result<LaneStatus, JournalError> {
        let values = [place::lane_number(lane), place::start_of(lane), place::end_of(lane)].map(Value::from);
        // One transaction, so that all numbers are consistent.
        let read = move |session: &SqliteSession| {
            let mut row: Option<LaneRow> = session.query_one(
                "SELECT last, appended, length, (SELECT min(place) FROM entries WHERE place > ?2 AND place < ?3)
                 FROM lanes WHERE lane = ?1",
                &values,
            )?;
            let mut groups: Vec<GroupRow> = session.query(
                "SELECT name, last_delivered, unread,
                    (SELECT count(*) FROM pending WHERE group_id = groups.id)
                    + (SELECT coalesce(sum(entries), 0) FROM pending_ranges WHERE group_id = groups.id),
                    coalesce((SELECT min(place) FROM pending WHERE group_id = groups.id),
                        (SELECT min(first) FROM pending_ranges WHERE group_id = groups.id)),
                    (SELECT count(*) FROM consumers WHERE group_id = groups.id)
                 FROM groups WHERE lane = ?1 ORDER BY name",
                &values[..1],
            )?;
            if lane == Lane::Traffic {
                let traffic = blocks::lane(session)?;
                for group in &mut groups {
                    group.unread = blocks::unread_after(session, group.last_delivered, &traffic)?;
                }
                if let Some(row) = &mut row {
                    row.first = blocks::first_place(session)?;
                }
            }
            Ok((row.ok_or(SqlError::RowMissing)?, groups))
        };
        let (row, groups) = self.query(read).await?;
        Ok(LaneStatus {
            length: to_u64(row.length),
            first: row.first.map(place::id_of),
            last: (row.appended > 0).then(|| place::id_of(row.last)),
            appended: to_u64(row.appended),
            groups: groups.into_iter().map(GroupRow::into_status).collect(),
        })
    }

    pub(super) async fn write_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError> {
        let (statement, values): (_, Vec<Value>) = match value {
            Some(value) => (
                "INSERT INTO notes (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                vec![name.into(), value.into()],
            ),
            None => ("DELETE FROM notes WHERE name = ?1", vec![name.into()]),
        };
        self.write(move |session| Ok(session.execute(statement, &values).map(drop)?)).await
    }

    pub(super) async fn read_notes(&self) -> Result<Notes, JournalError> {
        let read = |session: &SqliteSession| -> Result<Vec<(String, String)>, _> {
            Ok(session.query("SELECT name, value FROM notes", &[])?)
        };
        Ok(self.query(read).await?.into_iter().collect())
    }
}
