//! Maintenance: trims what every view has acknowledged, after a retention time, and raises an alarm if the journal is
//! too long.

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

const ROUND: Duration = Duration::from_secs(10);
/// Interval of repeated alarms in the log, in rounds.
const ALARM_EVERY: u64 = 30;

/// Nothing is trimmed for this long after entries were skipped.
const KEEP_SKIPPED_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceSettings {
    /// Retention of acknowledged entries.
    pub keep: Seconds,
    /// Retention of risk events.
    pub keep_risks: Seconds,
    /// Length beyond which there is an alarm.
    pub length_alarm: u64,
}

#[derive(Debug, Default)]
pub struct MaintenanceCounters {
    pub trimmed: AtomicU64,
    /// Length of the traffic lane in the last round.
    pub length: AtomicU64,
    /// The configured limit.
    pub length_alarm: AtomicU64,
    /// Rounds that failed because the journal was unavailable.
    pub failures: AtomicU64,
    /// Whether `length` exceeds `length_alarm`.
    pub is_too_long: AtomicBool,
}

/// Runs until stopped.
pub async fn run(
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    settings: watch::Receiver<MaintenanceSettings>,
    counters: Arc<MaintenanceCounters>,
    mut stop: watch::Receiver<bool>,
) {
    for round in 0_u64.. {
        let settings_now = *settings.borrow();
        // An unavailable journal is logged by the queue and the consumers.
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

/// Whether entries were skipped recently that an operator may still requeue (J11).
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
        let held_back_by = trimmed.held_back_by.as_deref().unwrap_or("none");
        let bound = settings.length_alarm;
        warn!(
            length,
            bound, held_back_by, "ALARM: the journal exceeds journal.length_alarm; no entries are dropped"
        );
    }
    if was_too_long && !is_too_long {
        info!(length, "journal length is below the alarm again");
    }
    Ok(())
}
