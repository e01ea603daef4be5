//! Keeps the journal short: removes what every view has, after a while, and raises an alarm when it grows too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::Seconds;
use domain::clock::Clock;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Skipped;
use crate::port::{Journal, Lane, Trimmed};

/// How often the journal is looked at.
const ROUND: Duration = Duration::from_secs(10);
/// How often an alarm is repeated in the log, in rounds.
const ALARM_EVERY: u64 = 30;

/// How long nothing is removed after entries were skipped.
const KEEP_SKIPPED_MS: u64 = 24 * 60 * 60 * 1000;

/// What maintenance goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceSettings {
    /// How long entries are kept that every view has.
    pub keep: Seconds,
    /// How long reports of risks are kept.
    pub keep_risks: Seconds,
    /// With more entries than this, there is an alarm.
    pub length_alarm: u64,
}

/// What maintenance found.
#[derive(Debug, Default)]
pub struct MaintenanceCounters {
    /// Entries removed.
    pub trimmed: AtomicU64,
    /// Entries in the traffic lane, when last looked at.
    pub length: AtomicU64,
    /// How many entries there may be before there is an alarm.
    pub length_alarm: AtomicU64,
    /// Rounds that could not be finished, since the journal was away.
    pub failures: AtomicU64,
    /// Whether that is more than the bound.
    pub is_too_long: AtomicBool,
}

/// Looks after the journal until told to stop.
pub async fn run(
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    settings: watch::Receiver<MaintenanceSettings>,
    counters: Arc<MaintenanceCounters>,
    mut stop: watch::Receiver<bool>,
) {
    for round in 0_u64.. {
        let settings_now = *settings.borrow();
        // A journal that is away is told of where entries wait for it.
        if run_round(&*journal, clock.now_ms(), settings_now, &counters, round).await.is_err() {
            counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(ROUND) => {}
        }
    }
}

/// Whether entries were skipped lately that an operator may still want to take (J11).
async fn has_recent_skips(journal: &dyn Journal, now_ms: u64) -> Result<bool, JournalError> {
    let skipped_ms = Skipped::latest_ms(&journal.notes().await?);
    Ok(skipped_ms.is_some_and(|skipped_ms| now_ms.saturating_sub(skipped_ms) < KEEP_SKIPPED_MS))
}

async fn run_round(
    journal: &dyn Journal,
    now_ms: u64,
    settings: MaintenanceSettings,
    counters: &MaintenanceCounters,
    round: u64,
) -> Result<(), JournalError> {
    let before = |keep: Seconds| EntryId::at_ms(now_ms.saturating_sub(u64::from(keep.0) * 1000));
    let trimmed = match has_recent_skips(journal, now_ms).await? {
        true => Trimmed::default(),
        false => journal.trim(Lane::Traffic, before(settings.keep)).await?,
    };
    journal.trim(Lane::Risk, before(settings.keep_risks)).await?;
    counters.trimmed.fetch_add(trimmed.removed, Ordering::Relaxed);
    let length = journal.status(Lane::Traffic).await?.length;
    counters.length.store(length, Ordering::Relaxed);
    counters.length_alarm.store(settings.length_alarm, Ordering::Relaxed);
    let is_too_long = length > settings.length_alarm;
    let was_too_long = counters.is_too_long.swap(is_too_long, Ordering::Relaxed);
    if is_too_long && (!was_too_long || round.is_multiple_of(ALARM_EVERY)) {
        let held_back_by = trimmed.held_back_by.as_deref().unwrap_or("nobody");
        let bound = settings.length_alarm;
        warn!(
            length,
            bound, held_back_by, "ALARM: the journal is longer than it should be; nothing is removed for it"
        );
    }
    if was_too_long && !is_too_long {
        info!(length, "the journal is short enough again");
    }
    Ok(())
}
