//! Tasks that run at intervals until the server stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::Whitelist;
use domain::LogThrottle;
use journal::{ConsumerCounters, Journal};
use ledger::Ledger;
use tokio::sync::watch;
use tracing::{info, warn};
use views::{Activity, Rebuild};

use super::stores::system_clock;

/// How often the ledger deletes clients that left long ago.
const PRUNE_INTERVAL: Duration = Duration::from_secs(5);
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// Pause between two steps of a cleanup, for other users of the database.
const CLEANUP_PAUSE: Duration = Duration::from_millis(50);
/// Delay after a failed read of the journal.
const REBUILD_PAUSE: Duration = Duration::from_secs(5);
const SUMMARY_INTERVAL: Duration = Duration::from_secs(300);

/// True if the server stops.
async fn sleep_or_stop(length: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopped| *stopped) => true,
        () = tokio::time::sleep(length) => false,
    }
}

pub async fn prune_periodically(ledger: Arc<Ledger>, mut stopped: watch::Receiver<bool>) {
    while !sleep_or_stop(PRUNE_INTERVAL, &mut stopped).await {
        if let Err(reason) = ledger.prune(system_clock().now()).await {
            warn!(%reason, "cannot delete old clients from the ledger; retrying");
        }
    }
}

pub async fn clean_up_periodically(whitelist: Arc<dyn Whitelist>, mut stopped: watch::Receiver<bool>) {
    let (mut has_more, log) = (false, LogThrottle::new());
    // With pauses, so that other requests to the database do not wait.
    while !sleep_or_stop(if has_more { CLEANUP_PAUSE } else { CLEANUP_INTERVAL }, &mut stopped).await {
        has_more = whitelist.tidy().await.unwrap_or_else(|reason| {
            if let Some(left_out) = log.admit(system_clock().now()) {
                warn!(%reason, lines_left_out = left_out, "cannot delete an old version of the whitelist; retrying");
            }
            false
        });
    }
}

/// Fills new activity lists from the journal. Runs beside the view itself: entries may be applied in any order and
/// more than once.
pub async fn rebuild_activity(
    activity: Activity,
    journal: Arc<dyn Journal>,
    mut stopped: watch::Receiver<bool>,
) {
    let (mut rebuild, log) = (Rebuild::of(activity), LogThrottle::new());
    loop {
        match rebuild.step(&*journal).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(reason) => {
                if let Some(left_out) = log.admit(system_clock().now()) {
                    warn!(
                        %reason,
                        lines_left_out = left_out,
                        "cannot rebuild the activity lists from the journal; retrying"
                    );
                }
                if sleep_or_stop(REBUILD_PAUSE, &mut stopped).await {
                    return;
                }
            }
        }
        if *stopped.borrow() {
            return;
        }
    }
    if rebuild.entries() > 0 {
        info!(entries = rebuild.entries(), "activity lists rebuilt from the journal");
    }
}

pub async fn sweep_periodically(activity: Activity, mut stopped: watch::Receiver<bool>) {
    let log = LogThrottle::new();
    while !sleep_or_stop(SWEEP_INTERVAL, &mut stopped).await {
        if let Err(reason) = activity.sweep().await
            && let Some(left_out) = log.admit(system_clock().now())
        {
            warn!(%reason, lines_left_out = left_out, "cannot remove silent clients from the activity lists; retrying");
        }
    }
}

/// Logs the counters of a view, if they changed.
pub async fn summarise_periodically(
    view: &'static str,
    counters: Arc<ConsumerCounters>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut logged = 0;
    loop {
        let is_stopped = sleep_or_stop(SUMMARY_INTERVAL, &mut stopped).await;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let applied = count(&counters.applied);
        let (dead_letters, failed) = (count(&counters.moved_to_dead_letters), count(&counters.failed));
        if applied + dead_letters + failed != logged {
            logged = applied + dead_letters + failed;
            info!(
                view,
                applied,
                dead_letters,
                skipped = count(&counters.skipped),
                restored = count(&counters.restored),
                failed,
                taken_over = count(&counters.taken_over),
                waits = count(&counters.transient_failures),
                "since start"
            );
        }
        if is_stopped {
            return;
        }
    }
}
