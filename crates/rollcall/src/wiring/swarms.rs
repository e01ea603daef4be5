//! Swarms across restarts and nodes: restored before serving, kept current from the journal, saved to a snapshot.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use database::Database;
use domain::clock::Stopwatch;
use journal::Journal;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};
use tracker::snapshot::{self, FILE_NAME, LoadedSnapshot};
use tracker::{CaughtUp, Replication, Tracker};

use crate::config::Config;

/// After reading this many entries, a start writes a snapshot immediately: a process that crashes repeatedly would
/// otherwise read them each time.
const SNAPSHOT_NOW_MIN: u64 = 5_000;
/// A start after a crash reads the journal from the last snapshot.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(300);

pub struct SwarmTasks {
    tracker: Arc<Tracker>,
    file: PathBuf,
    stop: watch::Sender<bool>,
    replication_task: JoinHandle<()>,
    snapshot_task: JoinHandle<()>,
}

impl SwarmTasks {
    /// Restores the swarms from the snapshot and the journal behind it, then follows other nodes' entries. An
    /// unreachable journal is waited for briefly; then the tracker serves what it has.
    pub async fn restore(
        config: &Config,
        data: &Path,
        tracker: &Arc<Tracker>,
        journal: &Arc<dyn Journal>,
    ) -> SwarmTasks {
        let stopwatch = Stopwatch::start();
        let (keep_s, window_s) =
            (config.journal.keep_s, config.tracker.announce_interval_s + config.tracker.peer_grace_s);
        if keep_s < window_s {
            warn!(
                keep_s,
                window_s,
                "journal.keep_s is less than announce_interval_s + peer_grace_s: without a snapshot, a start restores \
                 only the peers that announced within keep_s"
            );
        }
        let file = data.join(FILE_NAME);
        let found = read_snapshot(&file, tracker).await;
        let cursor = found.map(|found| found.cursor);
        let mut replication = Replication::new(Arc::clone(tracker), Arc::clone(journal), cursor);
        let caught_up = replication.catch_up().await;
        restore_completed_counts(config, data, tracker).await;
        log_restored(tracker, found, caught_up, stopwatch.elapsed());
        let (stop, stopped) = watch::channel(false);
        let replication_task = tokio::spawn(replication.run(stopped.clone()));
        let write_now = caught_up.entries >= SNAPSHOT_NOW_MIN;
        let snapshot_task = {
            let (file, tracker) = (file.clone(), Arc::clone(tracker));
            tokio::spawn(async move {
                if write_now {
                    write_snapshot(&file, &tracker).await;
                }
                write_periodically(file, tracker, SNAPSHOT_INTERVAL, stopped).await;
            })
        };
        SwarmTasks { tracker: Arc::clone(tracker), file, stop, replication_task, snapshot_task }
    }

    /// `writes_snapshot`: false if another process serves already.
    pub async fn stop(self, writes_snapshot: bool) {
        let _ = self.stop.send(true);
        let _ = self.replication_task.await;
        let _ = self.snapshot_task.await;
        if writes_snapshot {
            write_snapshot(&self.file, &self.tracker).await;
        }
    }
}

async fn read_snapshot(file: &Path, tracker: &Arc<Tracker>) -> Option<LoadedSnapshot> {
    let (file, tracker) = (file.to_owned(), Arc::clone(tracker));
    tokio::task::spawn_blocking(move || snapshot::read(&file, &tracker)).await.ok().flatten()
}

async fn write_snapshot(file: &Path, tracker: &Arc<Tracker>) {
    let stopwatch = Stopwatch::start();
    let (path, swarms) = (file.to_owned(), Arc::clone(tracker));
    let written = tokio::task::spawn_blocking(move || snapshot::write(&path, &swarms)).await;
    let counters = &tracker.counters().replication;
    match written {
        Ok(Ok(written)) => {
            counters.snapshots.increment();
            let seconds = stopwatch.elapsed().as_secs_f64();
            debug!(bytes = written.bytes, seconds, "swarm snapshot written");
        }
        Ok(Err(reason)) => {
            counters.snapshot_failures.increment();
            warn!(%reason, "cannot write the swarm snapshot; the next start reads more of the journal");
        }
        Err(_) => counters.snapshot_failures.increment(),
    }
}

async fn write_periodically(
    file: PathBuf,
    tracker: Arc<Tracker>,
    every: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    // Times out every interval until the server stops.
    while tokio::time::timeout(every, stopped.wait_for(|stopped| *stopped)).await.is_err() {
        write_snapshot(&file, &tracker).await;
    }
}

/// Completed counts for scrapes, from the ledger. Without a ledger, the swarms count from zero.
async fn restore_completed_counts(config: &Config, data: &Path, tracker: &Arc<Tracker>) {
    let Ok(database) = Database::open(&config.database_url(data)).await else { return };
    let mut after = None;
    loop {
        let page = match ledger::completions(&database, after).await {
            Ok(page) => page,
            Err(reason) => {
                debug!(%reason, "cannot read completed counts from the ledger");
                break;
            }
        };
        for (torrent, count) in &page {
            tracker.raise_completions(*torrent, *count);
        }
        after = page.last().map(|(torrent, _)| *torrent);
        if page.len() < ledger::COMPLETIONS_PAGE as usize {
            break;
        }
    }
    database.close().await;
}

fn log_restored(tracker: &Tracker, found: Option<LoadedSnapshot>, caught_up: CaughtUp, elapsed: Duration) {
    let peers = tracker.swarms().totals().peers;
    let from_snapshot = found.map_or(0, |found| found.restored.peers);
    let (entries, seconds) = (caught_up.entries, elapsed.as_secs_f64());
    if caught_up.is_all {
        info!(peers, from_snapshot, entries, seconds, "swarms restored");
    } else {
        warn!(
            peers,
            from_snapshot,
            entries,
            seconds,
            "the journal is unreachable or long: serving the swarms restored so far; the rest follows"
        );
    }
}
