//! Removing entries that every group has acknowledged.

use sqlx::SqliteConnection;

use super::dead_letters::shorten;
use super::{SqliteJournal, place};
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Lane, Trimmed};

/// Entries removed per transaction: other writers may run in between.
const STEP_ENTRIES: i64 = 2_000;

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
        let explain = |error| self.explain(error);
        let mut removed = 0;
        loop {
            // Without work nothing is written.
            let mut reading = self.database.pool.begin().await.map_err(explain)?;
            let bound = bound_of(&mut reading, lane, before).await.map_err(explain)?;
            let first = first_of(&mut reading, lane).await.map_err(explain)?;
            reading.rollback().await.map_err(explain)?;
            let (Some(bound), Some(first)) = (bound, first) else {
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
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let connection = &mut *writing.transaction;
        let Some(bound) = bound_of(connection, lane, before).await.map_err(explain)? else {
            return Ok(0);
        };
        let removed = remove(connection, lane, bound.place).await.map_err(explain)?;
        shorten(connection, lane, removed).await.map_err(explain)?;
        self.commit(writing).await?;
        Ok(removed)
    }
}

type EntryPlace = i64;

/// None if nothing may be removed: the traffic lane has no group yet.
async fn bound_of(
    connection: &mut SqliteConnection,
    lane: Lane,
    before: EntryPlace,
) -> Result<Option<Bound>, sqlx::Error> {
    let slowest: Option<(String, EntryPlace)> = sqlx::query_as(
        "SELECT name, coalesce((SELECT min(place) FROM pending WHERE group_id = groups.id), last_delivered + 1)
         FROM groups WHERE lane = ?1 ORDER BY 2, name LIMIT 1",
    )
    .bind(place::lane_number(lane))
    .fetch_optional(connection)
    .await?;
    Ok(match slowest {
        Some((name, place)) if place < before => Some(Bound { place, group: Some(name) }),
        None if lane == Lane::Traffic => None,
        _ => Some(Bound { place: before, group: None }),
    })
}

async fn first_of(connection: &mut SqliteConnection, lane: Lane) -> Result<Option<EntryPlace>, sqlx::Error> {
    sqlx::query_scalar("SELECT min(place) FROM entries WHERE place > ?1 AND place < ?2")
        .bind(place::start_of(lane))
        .bind(place::end_of(lane))
        .fetch_one(connection)
        .await
}

async fn remove(
    connection: &mut SqliteConnection,
    lane: Lane,
    bound: EntryPlace,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query(
        "DELETE FROM entries WHERE place > ?1 AND place < min(?2, coalesce(
             (SELECT place FROM entries WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT 1 OFFSET ?3), ?2))",
    )
    .bind(place::start_of(lane))
    .bind(bound)
    .bind(STEP_ENTRIES)
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
