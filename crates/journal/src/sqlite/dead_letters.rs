//! Moving and deleting dead letters.

use std::collections::HashSet;
use std::sync::Arc;

use database::{SqlError, SqliteSession};

use super::absorb::absorb;
use super::append::{Encoded, store};
use super::read::{existing_group, find_group};
use super::{Failure, SqliteJournal, place, ranges};
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
        let (group, dead_letters) = (group.map(str::to_owned), dead_letters.to_vec());
        let clock = Arc::clone(&self.clock);
        let transfer = move |session: &SqliteSession| {
            let group = group_of(session, from, group.as_deref())?;
            let asked = dead_letters.iter().map(|dead_letter| dead_letter.id);
            let mut waiting: HashSet<i64> = match (from, group) {
                (Lane::Traffic, Some(group)) => {
                    absorb(session)?;
                    // Stays in the lane: no more than an acknowledgement.
                    ranges::acknowledge(session, group, &place::sorted(from, asked))?.into_iter().collect()
                }
                (Lane::Traffic, None) => HashSet::new(),
                _ => stored_among(session, &place::list(from, asked))?,
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
            if from != Lane::Traffic {
                let places = place::numbers(places);
                remove_pending(session, group, &places)?;
                remove_entries(session, from, &places)?;
            }
            store(session, to, &Encoded::new(to, &fields), clock.now_ms())?;
            Ok(fields.len() as u64)
        };
        let moved = self.write(transfer).await?;
        if moved > 0 {
            self.notify_append(to);
        }
        Ok(moved)
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
        let (group, places) = (group.map(str::to_owned), place::list(lane, ids.iter().copied()));
        let delete = move |session: &SqliteSession| {
            let group = group_of(session, lane, group.as_deref())?;
            remove_pending(session, group, &places)?;
            Ok(remove_entries(session, lane, &places)?)
        };
        self.write(delete).await
    }
}

/// In other lanes than traffic a group need not exist: its view may never have had a dead letter.
fn group_of(session: &SqliteSession, lane: Lane, group: Option<&str>) -> Result<Option<i64>, Failure> {
    let Some(name) = group else { return Ok(None) };
    match lane {
        Lane::Traffic => Ok(Some(existing_group(session, lane, name)?.id)),
        _ => Ok(find_group(session, lane, name)?.map(|group| group.id)),
    }
}

fn stored_among(session: &SqliteSession, places: &str) -> Result<HashSet<i64>, SqlError> {
    let select = "SELECT place FROM entries WHERE place IN (SELECT value FROM json_each(?1))";
    Ok(session.query(select, &[places.into()])?.into_iter().collect())
}

fn remove_pending(session: &SqliteSession, group: Option<i64>, places: &str) -> Result<(), SqlError> {
    session.execute(
        "DELETE FROM pending WHERE group_id = ?1 AND place IN (SELECT value FROM json_each(?2))",
        &[group.into(), places.into()],
    )?;
    Ok(())
}

/// Deletes entries of a lane and adjusts the unread counts of its groups. Returns how many existed.
fn remove_entries(session: &SqliteSession, lane: Lane, places: &str) -> Result<u64, SqlError> {
    session.execute(
        "UPDATE groups SET unread = unread - (SELECT count(*) FROM entries
             WHERE place IN (SELECT value FROM json_each(?2)) AND place > groups.last_delivered)
         WHERE lane = ?1",
        &[place::lane_number(lane).into(), places.into()],
    )?;
    let removed = session
        .execute("DELETE FROM entries WHERE place IN (SELECT value FROM json_each(?1))", &[places.into()])?;
    shorten(session, lane, removed)?;
    Ok(removed)
}

pub(super) fn shorten(session: &SqliteSession, lane: Lane, removed: u64) -> Result<(), SqlError> {
    let removed = i64::try_from(removed).unwrap_or(i64::MAX);
    session.execute(
        "UPDATE lanes SET length = length - ?2 WHERE lane = ?1",
        &[place::lane_number(lane).into(), removed.into()],
    )?;
    Ok(())
}
