//! Rebuilds the lists from the entries in the journal.
//!
//! Every listed client has an entry in the last interval + grace of the journal, or, with a longer interval of its own,
//! in that interval + grace. How far the longest reaches is a note in the journal.

use domain::Seconds;
use journal::{
    Batch, DeliveredEntry, EntryId, Journal, JournalError, Lane, Stored, TrafficEntry, View, ViewError,
};

use super::{Activity, GROUP};
use crate::error::ViewsError;

/// Entries per step.
const STEP_ENTRIES: usize = 1_000;
/// Not the name of any journal consumer.
const CONSUMER: &str = "rebuild";
/// Name of the note.
const REACH: &str = "reach activity";

/// A running rebuild. Entries may be applied repeatedly and in any order, so the view may continue meanwhile.
#[derive(Debug)]
pub struct Rebuild {
    activity: Activity,
    /// None before the first step.
    after: Option<EntryId>,
    entries: u64,
}

impl Rebuild {
    /// Until [`Rebuild::catch_up`] has returned once, lists of `activity` cannot be read.
    pub fn of(activity: Activity) -> Rebuild {
        activity.set_complete(false);
        Rebuild { activity, after: None, entries: 0 }
    }

    /// Applies what the view's group has received and this rebuild has not yet applied. So a paused view stays where it
    /// is. After an error, or if it was cancelled, call it again.
    pub async fn catch_up(&mut self, journal: &dyn Journal) -> Result<(), ViewsError> {
        let groups = journal.status(Lane::Traffic).await?.groups;
        // Without a group nothing has been applied yet.
        let received = groups.iter().find(|group| group.name == GROUP).map(|group| group.last_delivered);
        if let Some(last) = received {
            while self.step(journal, last).await? {}
        }
        self.activity.set_complete(true);
        Ok(())
    }

    /// Applies the next entries up to `last`; false if there are none.
    async fn step(&mut self, journal: &dyn Journal, last: EntryId) -> Result<bool, ViewsError> {
        let after = match self.after {
            Some(after) => after,
            None => self.beginning(journal).await?,
        };
        self.after = Some(after);
        if after >= last {
            return Ok(false);
        }
        let mut stored = journal.list(Lane::Traffic, after, STEP_ENTRIES).await?;
        let is_end = stored.len() < STEP_ENTRIES;
        let read_until = stored.last().map_or(last, |stored| stored.id.min(last));
        stored.retain(|stored| stored.id <= last);
        // Malformed entries became dead letters when they were first read.
        let arrivals: Vec<DeliveredEntry> = stored.iter().filter_map(|stored| self.parse(stored)).collect();
        let batch = Batch {
            lane: Lane::Traffic,
            consumer: CONSUMER,
            taken_from: None,
            is_retry: false,
            arrivals: &arrivals,
        };
        self.activity.apply(&batch).await?;
        self.entries += arrivals.len() as u64;
        self.after = Some(read_until);
        Ok(!is_end)
    }

    fn parse(&self, stored: &Stored) -> Option<DeliveredEntry> {
        let entry = TrafficEntry::parse_dated(&stored.fields, &*self.activity.clock).ok()?;
        Some(DeliveredEntry { id: stored.id, origin: stored.id, entry })
    }

    /// The entry before the oldest that may not have expired.
    async fn beginning(&self, journal: &dyn Journal) -> Result<EntryId, ViewsError> {
        let reach = noted_reach(journal).await?;
        // Entry ids use the wall clock, which may have been set. Too many entries do no harm.
        let wall_cutoff = self.activity.clock.now() - self.activity.settings.silence.usual();
        let cutoff = self.activity.window().cutoff().min(wall_cutoff) - reach;
        Ok(EntryId::at_ms(u64::from(cutoff.0) * 1_000))
    }

    /// Number of applied entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

impl Activity {
    /// Notes in the journal how far back a rebuild must read. Call it after each sweep.
    pub async fn note_reach(&self, journal: &dyn Journal) -> Result<(), ViewsError> {
        let reach = self.store.longest_extra_silence();
        if noted_reach(journal).await? != reach {
            let text = (reach.0 > 0).then(|| reach.0.to_string());
            journal.set_note(REACH, text.as_deref()).await?;
        }
        Ok(())
    }
}

async fn noted_reach(journal: &dyn Journal) -> Result<Seconds, JournalError> {
    let notes = journal.notes().await?;
    Ok(Seconds(notes.get(REACH).and_then(|text| text.parse().ok()).unwrap_or(0)))
}

impl From<ViewError> for ViewsError {
    fn from(error: ViewError) -> ViewsError {
        ViewsError::NotApplied { reason: error.to_string() }
    }
}
