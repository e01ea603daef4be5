//! Tasks that run at intervals until the server stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::Whitelist;
use domain::LogThrottle;
use journal::{ConsumerCounters, Journal};
use ledger::Ledger;
use tokio::sync::{Mutex, watch};
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
/// Interval at which a copy of activity lists is brought up to date.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
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

/// Brings activity lists in memory up to what their group has received. Runs beside the view itself: entries may be
/// applied in any order and more than once.
pub async fn rebuild_activity(
    rebuild: Arc<Mutex<Rebuild>>,
    journal: Arc<dyn Journal>,
    mut stopped: watch::Receiver<bool>,
) {
    let (mut rebuild, log) = (rebuild.lock().await, LogThrottle::new());
    let before = rebuild.entries();
    loop {
        let caught_up = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return,
            caught_up = rebuild.catch_up(&*journal) => caught_up,
        };
        let Err(reason) = caught_up else { break };
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
    if rebuild.entries() > before {
        info!(entries = rebuild.entries() - before, "activity lists rebuilt from the journal");
    }
}

/// Keeps a copy of activity lists in memory that another process on this data folder keeps.
pub async fn follow_activity(
    activity: Activity,
    journal: Arc<dyn Journal>,
    mut stopped: watch::Receiver<bool>,
) {
    let rebuild = Arc::new(Mutex::new(Rebuild::of(activity.clone())));
    let sweeps = tokio::spawn(sweep_periodically(activity, None, stopped.clone()));
    loop {
        rebuild_activity(Arc::clone(&rebuild), Arc::clone(&journal), stopped.clone()).await;
        if sleep_or_stop(FOLLOW_INTERVAL, &mut stopped).await {
            break;
        }
    }
    let _ = sweeps.await;
}

/// With a journal, how far back a rebuild has to read is noted there.
pub async fn sweep_periodically(
    activity: Activity,
    journal: Option<Arc<dyn Journal>>,
    mut stopped: watch::Receiver<bool>,
) {
    let log = LogThrottle::new();
    while !sleep_or_stop(SWEEP_INTERVAL, &mut stopped).await {
        let swept = async {
            activity.sweep().await?;
            match &journal {
                Some(journal) => activity.note_reach(&**journal).await,
                None => Ok(()),
            }
        };
        if let Err(reason) = swept.await
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
