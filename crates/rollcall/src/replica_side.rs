//! What makes this tracker one of many, and its restarts go unnoticed: swarms brought back before anybody is served,
//! the entries of other nodes read behind them, and a snapshot now and then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use database::Database;
use domain::clock::Stopwatch;
use journal::Journal;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};
use tracker::replication::CaughtUp;
use tracker::snapshot::{self, FILE_NAME, Found};
use tracker::{Replication, Tracker};

use crate::config::Config;

/// A start that had to read this many entries writes a snapshot at once: a process that is killed again and again would
/// read all of them each time.
const SNAPSHOT_AT_ONCE: u64 = 5_000;
/// How often the swarms are written to the snapshot file: a start after a crash reads the journal from there.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(300);

/// The tasks that keep this node's swarms like those of the others.
pub struct Replica {
    tracker: Arc<Tracker>,
    file: PathBuf,
    stop: watch::Sender<bool>,
    reading: JoinHandle<()>,
    writing: JoinHandle<()>,
}

impl Replica {
    /// Brings the swarms back, from the snapshot and from what the journal holds behind it; from then on reads what other
    /// nodes write. A journal that is away is waited for a moment, then the tracker serves what it knows.
    pub async fn warm_up(
        config: &Config,
        data: &Path,
        tracker: &Arc<Tracker>,
        journal: &Arc<dyn Journal>,
    ) -> Replica {
        let stopwatch = Stopwatch::start();
        let (keep_s, window_s) =
            (config.journal.keep_s, config.tracker.announce_interval_s + config.tracker.peer_grace_s);
        if keep_s < window_s {
            warn!(
                keep_s,
                window_s,
                "journal.keep_s is less than announce_interval_s + peer_grace_s: without a snapshot, a start brings back \
                 only the peers that announced within keep_s"
            );
        }
        let file = data.join(FILE_NAME);
        let found = read_snapshot(&file, tracker).await;
        let cursor = found.map(|found| found.cursor);
        let mut replication = Replication::new(Arc::clone(tracker), Arc::clone(journal), cursor);
        let caught_up = replication.catch_up().await;
        bring_back_snatches(config, data, tracker).await;
        tell(tracker, found, caught_up, stopwatch.elapsed());
        let (stop, stopped) = watch::channel(false);
        let reading = tokio::spawn(replication.run(stopped.clone()));
        let at_once = caught_up.entries >= SNAPSHOT_AT_ONCE;
        let writing = {
            let (file, tracker) = (file.clone(), Arc::clone(tracker));
            tokio::spawn(async move {
                if at_once {
                    write_snapshot(&file, &tracker).await;
                }
                write_now_and_then(file, tracker, SNAPSHOT_INTERVAL, stopped).await;
            })
        };
        Replica { tracker: Arc::clone(tracker), file, stop, reading, writing }
    }

    /// Ends the tasks; writes the snapshot for the next start, unless another process serves in our place already.
    pub async fn end(self, writes_snapshot: bool) {
        let _ = self.stop.send(true);
        let _ = self.reading.await;
        let _ = self.writing.await;
        if writes_snapshot {
            write_snapshot(&self.file, &self.tracker).await;
        }
    }
}

async fn read_snapshot(file: &Path, tracker: &Arc<Tracker>) -> Option<Found> {
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
            debug!(bytes = written.bytes, seconds, "snapshot of the swarms written");
        }
        Ok(Err(reason)) => {
            counters.snapshot_failures.increment();
            warn!(%reason, "the snapshot of the swarms cannot be written; the next start reads more of the journal");
        }
        Err(_) => counters.snapshot_failures.increment(),
    }
}

async fn write_now_and_then(
    file: PathBuf,
    tracker: Arc<Tracker>,
    every: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    // As long as nobody says that it is the end, each wait takes its whole time.
    while tokio::time::timeout(every, stopped.wait_for(|stopped| *stopped)).await.is_err() {
        write_snapshot(&file, &tracker).await;
    }
}

/// Scrapes tell how often a torrent was completed, also before this start: the accounts know. Where there are none, the
/// swarms' own count has to do.
async fn bring_back_snatches(config: &Config, data: &Path, tracker: &Arc<Tracker>) {
    let Ok(database) = Database::open(&config.database_url(data)).await else { return };
    let mut after = None;
    loop {
        let page = match ledger::completions(&database, after).await {
            Ok(page) => page,
            Err(reason) => {
                debug!(%reason, "no accounts tell how often torrents were completed");
                break;
            }
        };
        for (torrent, count) in &page {
            tracker.note_completions(*torrent, *count);
        }
        after = page.last().map(|(torrent, _)| *torrent);
        if page.len() < ledger::COMPLETIONS_PAGE as usize {
            break;
        }
    }
    database.close().await;
}

fn tell(tracker: &Tracker, found: Option<Found>, caught_up: CaughtUp, elapsed: Duration) {
    let peers = tracker.swarms().totals().peers;
    let from_snapshot = found.map_or(0, |found| found.restored.peers);
    let (entries, seconds) = (caught_up.entries, elapsed.as_secs_f64());
    if caught_up.is_all {
        info!(peers, from_snapshot, entries, seconds, "swarms brought back");
    } else {
        warn!(
            peers,
            from_snapshot,
            entries,
            seconds,
            "the journal is away, or long: serving the swarms as far as they are known; the rest follows"
        );
    }
}
