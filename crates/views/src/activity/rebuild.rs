//! Makes the lists again from the entries that the journal still holds.

use journal::{Arrival, Batch, EntryId, Journal, Lane, TrafficEntry, View, ViewError};

use super::Activity;
use crate::error::ViewsError;

/// Entries applied at once.
const STEP_ENTRIES: usize = 1_000;
/// No reader of the journal has this name.
const CONSUMER: &str = "rebuild";

/// How far the lists have been made again. Entries may be applied more than once and in any order, so the view goes on
/// meanwhile.
#[derive(Debug)]
pub struct Rebuild {
    activity: Activity,
    after: EntryId,
    entries: u64,
}

impl Rebuild {
    /// Begins with the oldest entry that still counts.
    pub fn of(activity: Activity) -> Rebuild {
        // Places in the journal go by the wall clock, which may have been set back or forward. Too many entries do no harm.
        let wall_cutoff = activity.clock.now() - activity.settings.silence.usual();
        let cutoff = activity.window().cutoff().min(wall_cutoff);
        let after = EntryId::at_ms(u64::from(cutoff.0) * 1_000);
        Rebuild { activity, after, entries: 0 }
    }

    /// Applies the next entries; false if there were none. After an error the same step is tried again.
    pub async fn step(&mut self, journal: &dyn Journal) -> Result<bool, ViewsError> {
        let stored = journal.list(Lane::Traffic, self.after, STEP_ENTRIES).await?;
        let Some(last) = stored.last().map(|stored| stored.id) else { return Ok(false) };
        // What cannot be read was dealt with when it was first read.
        let arrival = |stored: &journal::Stored| {
            let entry = TrafficEntry::parse_dated(&stored.fields, &*self.activity.clock).ok()?;
            Some(Arrival { id: stored.id, origin: stored.id, entry })
        };
        let arrivals: Vec<Arrival> = stored.iter().filter_map(arrival).collect();
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

    /// How many entries were applied.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

impl From<ViewError> for ViewsError {
    fn from(error: ViewError) -> ViewsError {
        ViewsError::NotApplied { reason: error.to_string() }
    }
}
