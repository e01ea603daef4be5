//! Moving and deleting dead letters.

use std::collections::HashSet;

use sqlx::SqliteConnection;

use super::append::store;
use super::read::find_group;
use super::{SqliteJournal, no_group, place};
use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::port::{Lane, Transfer};

impl SqliteJournal {
    pub(super) async fn move_dead_letters(
        &self,
        from: Lane,
        to: Lane,
        group: Option<&str>,
        dead_letters: &[Transfer],
    ) -> Result<u64, JournalError> {
        if dead_letters.is_empty() {
            return Ok(0);
        }
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let connection = &mut *writing.transaction;
        let group_id = self.group_of(connection, from, group).await?;
        let asked = place::list(from, dead_letters.iter().map(|dead_letter| dead_letter.id));
        let mut waiting = match from {
            Lane::Traffic => pending_among(connection, group_id, &asked).await.map_err(explain)?,
            _ => stored_among(connection, &asked).await.map_err(explain)?,
        };
        // Removed as they are found, so that an id given twice is moved once.
        let moved: Vec<(i64, &Fields)> = dead_letters
            .iter()
            .filter_map(|dead_letter| Some((place::exactly(from, dead_letter.id)?, &dead_letter.fields)))
            .filter(|(place, _)| waiting.remove(place))
            .collect();
        if moved.is_empty() {
            return Ok(0);
        }
        let (places, fields): (Vec<i64>, Vec<&Fields>) = moved.into_iter().unzip();
        let places = place::numbers(places);
        remove_pending(connection, group_id, &places).await.map_err(explain)?;
        if from != Lane::Traffic {
            remove_entries(connection, from, &places).await.map_err(explain)?;
        }
        store(connection, to, &fields, self.clock.now_ms()).await.map_err(explain)?;
        self.commit(writing).await?;
        self.notify_append(to);
        Ok(fields.len() as u64)
    }

    /// Entries of the traffic lane are not deleted: other groups may have to read them.
    pub(super) async fn delete_dead_letters(
        &self,
        lane: Lane,
        group: Option<&str>,
        ids: &[EntryId],
    ) -> Result<u64, JournalError> {
        if ids.is_empty() || lane == Lane::Traffic {
            return Ok(0);
        }
        let places = place::list(lane, ids.iter().copied());
        let explain = |error| self.explain(error);
        let mut writing = self.begin().await?;
        let connection = &mut *writing.transaction;
        let group_id = self.group_of(connection, lane, group).await?;
        remove_pending(connection, group_id, &places).await.map_err(explain)?;
        let removed = remove_entries(connection, lane, &places).await.map_err(explain)?;
        self.commit(writing).await?;
        Ok(removed)
    }

    /// In other lanes than traffic a group need not exist: its view may never have had a dead letter.
    async fn group_of(
        &self,
        connection: &mut SqliteConnection,
        lane: Lane,
        group: Option<&str>,
    ) -> Result<Option<i64>, JournalError> {
        let Some(name) = group else { return Ok(None) };
        let found = find_group(connection, lane, name).await.map_err(|error| self.explain(error))?;
        match found {
            None if lane == Lane::Traffic => Err(no_group(name)),
            found => Ok(found.map(|group| group.id)),
        }
    }
}

async fn pending_among(
    connection: &mut SqliteConnection,
    group: Option<i64>,
    places: &str,
) -> Result<HashSet<i64>, sqlx::Error> {
    let found: Vec<i64> = sqlx::query_scalar(
        "SELECT place FROM pending WHERE group_id = ?1 AND place IN (SELECT value FROM json_each(?2))",
    )
    .bind(group)
    .bind(places)
    .fetch_all(connection)
    .await?;
    Ok(found.into_iter().collect())
}

async fn stored_among(connection: &mut SqliteConnection, places: &str) -> Result<HashSet<i64>, sqlx::Error> {
    let found: Vec<i64> =
        sqlx::query_scalar("SELECT place FROM entries WHERE place IN (SELECT value FROM json_each(?1))")
            .bind(places)
            .fetch_all(connection)
            .await?;
    Ok(found.into_iter().collect())
}

async fn remove_pending(
    connection: &mut SqliteConnection,
    group: Option<i64>,
    places: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM pending WHERE group_id = ?1 AND place IN (SELECT value FROM json_each(?2))")
        .bind(group)
        .bind(places)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes entries of a lane and adjusts the unread counts of its groups. Returns how many existed.
async fn remove_entries(
    connection: &mut SqliteConnection,
    lane: Lane,
    places: &str,
) -> Result<u64, sqlx::Error> {
    sqlx::query(
        "UPDATE groups SET unread = unread - (SELECT count(*) FROM entries
             WHERE place IN (SELECT value FROM json_each(?2)) AND place > groups.last_delivered)
         WHERE lane = ?1",
    )
    .bind(place::lane_number(lane))
    .bind(places)
    .execute(&mut *connection)
    .await?;
    let removed = sqlx::query("DELETE FROM entries WHERE place IN (SELECT value FROM json_each(?1))")
        .bind(places)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    shorten(connection, lane, removed).await?;
    Ok(removed)
}

pub(super) async fn shorten(
    connection: &mut SqliteConnection,
    lane: Lane,
    removed: u64,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE lanes SET length = length - ?2 WHERE lane = ?1")
        .bind(place::lane_number(lane))
        .bind(i64::try_from(removed).unwrap_or(i64::MAX))
        .execute(connection)
        .await?;
    Ok(())
}
