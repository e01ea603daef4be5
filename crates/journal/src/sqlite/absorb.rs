//! Moves entries that an earlier version stored as rows into blocks, and what was pending of them into ranges.
//!
//! When the journal is opened, step by step. An earlier version may still run during an upgrade (`serve --take-over`)
//! and store rows, so every transaction that appends, delivers or takes over looks for rows first. A row and its copy
//! in a block are never both visible: each step is one transaction.

use database::{SqlError, SqliteSession};

use super::blocks::{self, Extent};
use super::ranges::{self, Range};
use super::{Failure, SqliteJournal, place, stored};
use crate::block::blocks_of_fields;
use crate::error::JournalError;
use crate::fields::Fields;
use crate::port::{Lane, Stored};

/// Rows per transaction.
const STEP_ROWS: i64 = 5_000;
const TRAFFIC: i64 = place::lane_number(Lane::Traffic);
const TRAFFIC_END: i64 = place::end_of(Lane::Traffic);

impl SqliteJournal {
    /// Moves all rows.
    pub(super) async fn absorb_rows(&self) -> Result<(), JournalError> {
        let mut moved = 0;
        loop {
            if !self.query(|session| Ok(has_rows(session)?)).await? {
                break;
            }
            let step = self.write(move_step).await?;
            moved += step;
            if step > 0 {
                let path = self.path().display();
                tracing::info!(%path, moved, "entries of an earlier version moved into blocks");
            }
        }
        Ok(())
    }
}

/// Moves all rows in one transaction: there are few, if any.
pub(super) fn absorb(session: &SqliteSession) -> Result<(), Failure> {
    while has_rows(session)? {
        move_step(session)?;
    }
    Ok(())
}

fn has_rows(session: &SqliteSession) -> Result<bool, SqlError> {
    let found: Option<bool> = session.query_one(
        "SELECT EXISTS (SELECT 1 FROM entries WHERE place < ?2) OR EXISTS (SELECT 1 FROM groups
             WHERE lane = ?1 AND EXISTS (SELECT 1 FROM pending WHERE group_id = groups.id))",
        &[TRAFFIC.into(), TRAFFIC_END.into()],
    )?;
    Ok(found.unwrap_or(false))
}

/// Moves some entries, or what is pending of them once there are no entries left; returns the number of entries.
fn move_step(session: &SqliteSession) -> Result<u64, Failure> {
    let rows: Vec<(i64, Vec<u8>)> = session.query(
        "SELECT place, fields FROM entries WHERE place < ?1 ORDER BY place LIMIT ?2",
        &[TRAFFIC_END.into(), STEP_ROWS.into()],
    )?;
    let places: Vec<i64> = rows.iter().map(|(place, _)| *place).collect();
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        move_pending(session)?;
        return Ok(0);
    };
    let mut ordinal = first_ordinal(session, *first)?;
    let entries: Vec<Stored> = rows.into_iter().map(stored).collect::<Result<_, Failure>>()?;
    let numbered: Vec<(i64, &Fields)> =
        places.iter().copied().zip(entries.iter().map(|stored| &stored.fields)).collect();
    for run in numbered.chunk_by(|one, next| one.0 + 1 == next.0) {
        let mut first = run[0].0;
        let fields: Vec<&Fields> = run.iter().map(|(_, fields)| *fields).collect();
        for block in blocks_of_fields(&fields) {
            let extent = Extent { first, ordinal, entries: blocks::count_of(block.entries) };
            blocks::insert(session, extent, &block.data)?;
            first += extent.entries;
            ordinal += extent.entries;
        }
    }
    session.execute("DELETE FROM entries WHERE place <= ?1", &[(*last).into()])?;
    Ok(entries.len() as u64)
}

/// Entries appended before the oldest row.
fn first_ordinal(session: &SqliteSession, place: i64) -> Result<i64, SqlError> {
    let before = "SELECT ordinal + entries FROM blocks WHERE first < ?1 ORDER BY first DESC LIMIT 1";
    if let Some(ordinal) = session.query_one(before, &[place.into()])? {
        return Ok(ordinal);
    }
    let lane = blocks::lane(session)?;
    Ok(lane.appended - lane.length)
}

fn move_pending(session: &SqliteSession) -> Result<(), Failure> {
    let rows: Vec<(i64, i64, i64)> = session.query(
        "SELECT group_id, place, consumer_id FROM pending
         WHERE group_id IN (SELECT id FROM groups WHERE lane = ?1) ORDER BY group_id, place",
        &[TRAFFIC.into()],
    )?;
    let follows = |(group, place, consumer): &(i64, i64, i64), next: &(i64, i64, i64)| {
        (*group, place + 1, *consumer) == *next
    };
    for run in rows.chunk_by(follows) {
        let ((group, first, consumer), (_, last, _)) = (run[0], run[run.len() - 1]);
        // Entries that do not exist any more are not pending.
        for extent in blocks::extents(session, first, last)? {
            let (first, last) = (first.max(extent.first), last.min(extent.last()));
            ranges::insert(session, group, &Range { first, last, entries: last - first + 1, consumer })?;
        }
    }
    session.execute(
        "DELETE FROM pending WHERE group_id IN (SELECT id FROM groups WHERE lane = ?1)",
        &[TRAFFIC.into()],
    )?;
    Ok(())
}
