//! Rebuilds the lists from the entries in the journal.

use journal::{Batch, DeliveredEntry, EntryId, Journal, Lane, TrafficEntry, View, ViewError};

use super::Activity;
use crate::error::ViewsError;

/// Entries per step.
const STEP_ENTRIES: usize = 1_000;
/// Not the name of any journal consumer.
const CONSUMER: &str = "rebuild";

/// A running rebuild. Entries may be applied repeatedly and in any order, so the view continues meanwhile.
#[derive(Debug)]
pub struct Rebuild {
    activity: Activity,
    after: EntryId,
    entries: u64,
}

impl Rebuild {
    /// Begins with the oldest entry that has not expired.
    pub fn of(activity: Activity) -> Rebuild {
        // Entry ids use the wall clock, which may have been set. Too many entries do no harm.
        let wall_cutoff = activity.clock.now() - activity.settings.silence.usual();
        let cutoff = activity.window().cutoff().min(wall_cutoff);
        let after = EntryId::at_ms(u64::from(cutoff.0) * 1_000);
        Rebuild { activity, after, entries: 0 }
    }

    /// Applies the next entries; false if there are none. After an error, call it again.
    pub async fn step(&mut self, journal: &dyn Journal) -> Result<bool, ViewsError> {
        let stored = journal.list(Lane::Traffic, self.after, STEP_ENTRIES).await?;
        let Some(last) = stored.last().map(|stored| stored.id) else { return Ok(false) };
        // Malformed entries became dead letters when they were first read.
        let arrival = |stored: &journal::Stored| {
            let entry = TrafficEntry::parse_dated(&stored.fields, &*self.activity.clock).ok()?;
            Some(DeliveredEntry { id: stored.id, origin: stored.id, entry })
        };
        let arrivals: Vec<DeliveredEntry> = stored.iter().filter_map(arrival).collect();
        let batch = Batch {
            lane: Lane::Traffic,
            consumer: CONSUMER,
            taken_from: None,
            is_retry: false,
            arrivals: &arrivals,
        };
        self.activity.apply(&batch).await?;
        self.entries += arrivals.len() as u64;
        self.after = last;
        Ok(true)
    }

    /// Number of applied entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

impl From<ViewError> for ViewsError {
    fn from(error: ViewError) -> ViewsError {
        ViewsError::NotApplied { reason: error.to_string() }
    }
}
