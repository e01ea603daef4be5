//! Removing entries that every group has acknowledged.

use database::{SqlError, SqliteSession};

use super::dead_letters::shorten;
use super::{SqliteJournal, blocks, place};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Lane, Trimmed};

/// Entries removed per transaction: other writers may run in between.
const STEP_ENTRIES: i64 = 2_000;
/// A block of a thousand entries costs as much as a few rows.
const STEP_ENTRIES_OF_BLOCKS: i64 = 20_000;

/// How far trimming may go.
struct Bound {
    /// The first place to keep.
    place: i64,
    /// The group that needs it, unless it is the caller's bound.
    group: Option<String>,
}

impl SqliteJournal {
    pub(super) async fn trim_in_steps(&self, lane: Lane, before: EntryId) -> Result<Trimmed, JournalError> {
        let before = place::at_least(lane, before);
        let mut removed = 0;
        loop {
            // Without work nothing is written.
            let look = move |session: &SqliteSession| {
                Ok((bound_of(session, lane, before)?, first_of(session, lane)?))
            };
            let (Some(bound), Some(first)) = self.query(look).await? else {
                return Ok(Trimmed { removed, held_back_by: None });
            };
            if first >= bound.place {
                let held_back_by = bound.group.filter(|_| first < before);
                return Ok(Trimmed { removed, held_back_by });
            }
            removed += self.trim_step(lane, before).await?;
        }
    }

    async fn trim_step(&self, lane: Lane, before: EntryPlace) -> Result<u64, JournalError> {
        let trim = move |session: &SqliteSession| {
            let Some(bound) = bound_of(session, lane, before)? else {
                return Ok(0);
            };
            if lane == Lane::Traffic {
                return Ok(blocks::trim(session, bound.place, STEP_ENTRIES_OF_BLOCKS)?);
            }
            let removed = remove(session, lane, bound.place)?;
            shorten(session, lane, removed)?;
            Ok(removed)
        };
        self.write(trim).await
    }
}

type EntryPlace = i64;

/// None if nothing may be removed: the traffic lane has no group yet.
fn bound_of(session: &SqliteSession, lane: Lane, before: EntryPlace) -> Result<Option<Bound>, SqlError> {
    let slowest: Option<(String, EntryPlace)> = session.query_one(
        "SELECT name, coalesce((SELECT min(place) FROM pending WHERE group_id = groups.id),
             (SELECT min(first) FROM pending_ranges WHERE group_id = groups.id), last_delivered + 1)
         FROM groups WHERE lane = ?1 ORDER BY 2, name LIMIT 1",
        &[place::lane_number(lane).into()],
    )?;
    Ok(match slowest {
        Some((name, place)) if place < before => Some(Bound { place, group: Some(name) }),
        None if lane == Lane::Traffic => None,
        _ => Some(Bound { place: before, group: None }),
    })
}

fn first_of(session: &SqliteSession, lane: Lane) -> Result<Option<EntryPlace>, SqlError> {
    if lane == Lane::Traffic {
        return blocks::first_place(session);
    }
    let first: Option<Option<EntryPlace>> = session.query_one(
        "SELECT min(place) FROM entries WHERE place > ?1 AND place < ?2",
        &[place::start_of(lane).into(), place::end_of(lane).into()],
    )?;
    Ok(first.flatten())
}

fn remove(session: &SqliteSession, lane: Lane, bound: EntryPlace) -> Result<u64, SqlError> {
    session.execute(
        "DELETE FROM entries WHERE place > ?1 AND place < min(?2, coalesce(
             (SELECT place FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT 1 OFFSET ?3), ?2))",
        &[place::start_of(lane).into(), bound.into(), STEP_ENTRIES.into()],
    )
}
