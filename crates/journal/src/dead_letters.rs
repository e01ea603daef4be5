//! Replay and drop of dead letters by an operator (J7).

use domain::UnixTime;

use crate::dead_letter::DeadLetter;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{Journal, Lane, Stored, Transfer};

/// Dead letters per request.
const PAGE: usize = 500;

/// Which dead letters a command applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All that exist now, not those added meanwhile.
    All,
    /// These; missing ones are ignored.
    These(Vec<EntryId>),
}

/// Moves dead letters of a lane back to the lane `dlq`, with no retries counted and due at once. Returns how many.
pub async fn replay(journal: &dyn Journal, lane: Lane, chosen: &Chosen) -> Result<u64, JournalError> {
    let mut replayed = 0;
    let mut pages = Pages::of(journal, lane, chosen).await?;
    while let Some(page) = pages.next(journal).await? {
        let transfers: Vec<Transfer> = page.iter().map(reset_for_retry).collect();
        replayed += journal.transfer(lane, Lane::Dead, None, &transfers).await?;
    }
    Ok(replayed)
}

/// Deletes dead letters of a lane. Returns how many.
pub async fn discard(journal: &dyn Journal, lane: Lane, chosen: &Chosen) -> Result<u64, JournalError> {
    let mut discarded = 0;
    let mut pages = Pages::of(journal, lane, chosen).await?;
    while let Some(page) = pages.next(journal).await? {
        let ids: Vec<EntryId> = page.iter().map(|stored| stored.id).collect();
        discarded += journal.delete(lane, None, &ids).await?;
    }
    Ok(discarded)
}

fn reset_for_retry(stored: &Stored) -> Transfer {
    let dead_letter = DeadLetter::from_fields(&stored.fields);
    let origin = if dead_letter.origin == EntryId::ZERO { stored.id } else { dead_letter.origin };
    let dead_letter = DeadLetter { retry: 0, due_at: UnixTime(0), origin, ..dead_letter };
    Transfer { id: stored.id, fields: dead_letter.to_fields() }
}

/// The chosen dead letters, page by page: there may be millions.
struct Pages<'c> {
    lane: Lane,
    left: Left<'c>,
}

enum Left<'c> {
    /// Those after `after`, up to `newest`.
    Through {
        after: EntryId,
        newest: EntryId,
    },
    Named(std::slice::Chunks<'c, EntryId>),
}

impl<'c> Pages<'c> {
    async fn of(journal: &dyn Journal, lane: Lane, chosen: &'c Chosen) -> Result<Self, JournalError> {
        let left = match chosen {
            Chosen::These(ids) => Left::Named(ids.chunks(PAGE)),
            Chosen::All => {
                let newest = journal.list_newest(lane, EntryId::MAX, 1).await?;
                let newest = newest.first().map_or(EntryId::ZERO, |stored| stored.id);
                Left::Through { after: EntryId::ZERO, newest }
            }
        };
        Ok(Pages { lane, left })
    }

    /// None after the last page.
    async fn next(&mut self, journal: &dyn Journal) -> Result<Option<Vec<Stored>>, JournalError> {
        match &mut self.left {
            Left::Named(pages) => {
                let Some(ids) = pages.next() else { return Ok(None) };
                let mut found = Vec::new();
                for id in ids {
                    found.extend(journal.get(self.lane, *id).await?);
                }
                Ok(Some(found))
            }
            Left::Through { after, newest } => {
                if *after >= *newest {
                    return Ok(None);
                }
                let mut page = journal.list(self.lane, *after, PAGE).await?;
                *after = page.last().map_or(*newest, |last| last.id);
                page.retain(|stored| stored.id <= *newest);
                Ok(Some(page))
            }
        }
    }
}
