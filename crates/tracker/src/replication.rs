//! What other nodes heard, read from the journal into the swarms of this one.
//!
//! The journal is the replication log: every node reads it behind the others and learns their entries, so that any node
//! answers any announce from memory. A node that starts reads the last interval + grace seconds first, since every live
//! peer has announced within them; a snapshot makes that shorter. After ten seconds it serves, and reads on.
//!
//! # Guarantees
//!
//! - An announce never waits for this: one task reads, and each entry takes the lock of one shard for itself.
//! - What is read twice, or in another order, does no harm (see [`swarm::Swarms::learn`]).
//! - Where entries are missing between what was read and what is there (they were trimmed, or a failover lost them), the
//!   last interval + grace seconds are read again, and that is counted and logged.
//! - While the journal is away, the swarms serve what they know.
//!
//! # Deliberately absent
//!
//! A consumer group: this reader acknowledges nothing and holds back no trimming, so a node that is gone for good leaves
//! nothing behind.

mod counters;
mod learn;

use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use journal::backoff::Backoff;
use journal::{EntryId, Journal, JournalError, Lane, Stored, Tail, TrafficEntry};
use tokio::sync::watch;
use tracing::{debug, info, warn};

pub use counters::ReplicationCounters;

use crate::pipeline::Tracker;

/// Entries read at a time.
const BATCH: usize = 1_000;
/// How long the reader sleeps once it has read everything.
const POLL: Duration = Duration::from_millis(25);
/// How long a start waits for a journal that does not answer. Then it serves what it knows, and catches up.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a start reads before it serves. Then it serves what it knows, and the rest follows: a journal that has grown
/// for long must not make a start slow.
const CATCH_UP_MAX: Duration = Duration::from_secs(10);
/// Entries between two lines of progress.
const PROGRESS_EVERY: u64 = 500_000;

/// Reads the journal behind the other nodes.
pub struct Replication {
    tracker: Arc<Tracker>,
    journal: Arc<dyn Journal>,
    /// Everything up to here is in the swarms.
    cursor: EntryId,
    /// Whether the swarms were brought back up to the first cursor.
    has_snapshot: bool,
    /// Whether an entry stands at the cursor, so that what is missing behind it can be told.
    is_anchored: bool,
    /// What lies before this is read again, own entries included.
    replay_until: EntryId,
    /// Whether it serves without having read everything: then peers that other nodes heard last do not expire.
    is_behind: bool,
}

/// What the start of a node found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// How many entries were read.
    pub entries: u64,
    /// Whether that was all there was; if not, the journal was away, or there was too much of it.
    pub is_all: bool,
}

/// What one look at the journal led to.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many entries were read.
    Read(usize),
    /// Some were missing.
    BeganAgain,
}

impl Replication {
    /// A reader that begins behind `cursor`, if everything up to there is in the swarms already; otherwise as early as
    /// peers can be alive.
    pub fn new(tracker: Arc<Tracker>, journal: Arc<dyn Journal>, cursor: Option<EntryId>) -> Self {
        let window = window_of(&tracker, tracker.wall_ms());
        // An older one may have been trimmed, which would not mean that entries are missing.
        let is_anchored = cursor.is_some_and(|cursor| cursor > window);
        let (has_snapshot, cursor) = (cursor.is_some(), cursor.unwrap_or(window));
        tracker.counters().replication.set_cursor(cursor);
        let replay_until = EntryId::ZERO;
        Replication { tracker, journal, cursor, is_anchored, has_snapshot, replay_until, is_behind: false }
    }

    /// Reads what is there now, before anything is served; at most for [`CATCH_UP_MAX`].
    pub async fn catch_up(&mut self) -> CaughtUp {
        let caught_up = self.try_to_catch_up().await;
        self.is_behind = !caught_up.is_all;
        self.tracker.swarms().hold_remote_peers(self.is_behind);
        caught_up
    }

    async fn try_to_catch_up(&mut self) -> CaughtUp {
        let reading = Stopwatch::start();
        let mut caught_up = CaughtUp::default();
        let Some(newest) = patiently(|| self.newest()).await else {
            return caught_up;
        };
        self.replay_until = newest.unwrap_or_default();
        self.begin_by_the_clock_of(newest);
        while self.cursor < self.replay_until {
            if reading.elapsed() > CATCH_UP_MAX {
                return caught_up;
            }
            let read = match self.step_patiently().await {
                Some(Step::Read(0)) => break,
                Some(Step::Read(read)) => read as u64,
                Some(Step::BeganAgain) => continue,
                None => return caught_up,
            };
            if (caught_up.entries + read) / PROGRESS_EVERY > caught_up.entries / PROGRESS_EVERY {
                let peers = self.tracker.swarms().totals().peers;
                info!(entries = caught_up.entries + read, peers, "reading the journal");
            }
            caught_up.entries += read;
        }
        CaughtUp { is_all: true, ..caught_up }
    }

    /// Without a snapshot the reader begins as early as peers can be alive. Entries are numbered by the clock of whoever
    /// keeps the journal, so that is counted back from the newest one: this node's wall clock may have been set since.
    fn begin_by_the_clock_of(&mut self, newest: Option<EntryId>) {
        if let Some(newest) = newest.filter(|_| !self.has_snapshot) {
            self.cursor = window_of(&self.tracker, newest.ms);
            self.counters().set_cursor(self.cursor);
        }
    }

    /// Reads until told to stop.
    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
        let (mut is_away, mut was_away) = (false, self.is_behind);
        loop {
            let pause = match self.step().await {
                Ok(step) => {
                    backoff.reset();
                    if std::mem::take(&mut is_away) {
                        was_away = true;
                        info!("the journal is back; what other nodes heard meanwhile is being read");
                    }
                    let is_all = matches!(step, Step::Read(read) if read < BATCH);
                    if is_all && std::mem::take(&mut was_away) {
                        self.tracker.swarms().hold_remote_peers(false);
                    }
                    if is_all { POLL } else { Duration::ZERO }
                }
                Err(reason) => {
                    self.counters().failures.increment();
                    if !std::mem::replace(&mut is_away, true) {
                        self.tracker.swarms().hold_remote_peers(true);
                        warn!(%reason, "the journal is away; what other nodes hear is read once it is back");
                    }
                    backoff.pause()
                }
            };
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reads one batch.
    async fn step(&mut self) -> Result<Step, JournalError> {
        let tail = self.tail().await?;
        if !tail.is_whole {
            self.begin_again().await?;
            return Ok(Step::BeganAgain);
        }
        for stored in &tail.entries {
            self.take(stored);
        }
        if let Some(last) = tail.entries.last() {
            self.cursor = last.id;
            self.is_anchored = true;
            self.counters().set_cursor(last.id);
        }
        if tail.entries.len() < BATCH {
            self.counters().note_caught_up(self.tracker.now_ms());
        }
        Ok(Step::Read(tail.entries.len()))
    }

    async fn tail(&self) -> Result<Tail, JournalError> {
        if self.is_anchored {
            return self.journal.tail(Lane::Traffic, self.cursor, BATCH).await;
        }
        // No entry stands at a moment in time.
        let entries = self.journal.list(Lane::Traffic, self.cursor, BATCH).await?;
        Ok(Tail { entries, is_whole: true })
    }

    /// Entries are missing: what peers alive now have said is read again.
    async fn begin_again(&mut self) -> Result<(), JournalError> {
        let newest = self.newest().await?;
        self.replay_until = newest.unwrap_or_default();
        let missing_behind = self.cursor;
        self.cursor = window_of(&self.tracker, newest.map_or(self.tracker.wall_ms(), |newest| newest.ms));
        self.is_anchored = false;
        self.counters().set_cursor(self.cursor);
        self.counters().resyncs.increment();
        warn!(%missing_behind, from = %self.cursor, "entries of the journal are missing; reading again what peers alive now have said");
        Ok(())
    }

    fn take(&self, stored: &Stored) {
        let counters = self.counters();
        let is_replay = stored.id <= self.replay_until;
        // Read again, own entries count too: an older one of another node may have undone what they said.
        if !is_replay && TrafficEntry::node_of(&stored.fields) == Some(self.tracker.node()) {
            return counters.own.increment();
        }
        let Ok(entry) = TrafficEntry::parse(&stored.fields) else {
            // The ledger buries it, with the reason.
            debug!(id = %stored.id, "an entry that cannot be read was skipped");
            return counters.skipped.increment();
        };
        match self.tracker.learn(&entry) {
            Some(learnt) => counters.count(learnt),
            None => counters.skipped.increment(),
        }
        if !is_replay {
            let delay_ms = self.tracker.wall_ms().saturating_sub(stored.id.ms);
            counters.delays.record(Duration::from_millis(delay_ms));
        }
    }

    async fn newest(&self) -> Result<Option<EntryId>, JournalError> {
        let newest = self.journal.list_newest(Lane::Traffic, EntryId::MAX, 1).await?;
        Ok(newest.first().map(|stored| stored.id))
    }

    async fn step_patiently(&mut self) -> Option<Step> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
        let trying = async {
            loop {
                match self.step().await {
                    Ok(step) => return step,
                    Err(reason) => debug!(%reason, "the journal is away"),
                }
                tokio::time::sleep(backoff.pause()).await;
            }
        };
        tokio::time::timeout(PATIENCE, trying).await.ok()
    }

    fn counters(&self) -> &ReplicationCounters {
        &self.tracker.counters().replication
    }
}

/// Asks again until there is an answer, for as long as a start may wait.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, JournalError>>,
{
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
    let asking = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(reason) => debug!(%reason, "the journal is away"),
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.ok()
}

/// The moment before which no peer that is alive at `now_ms` can have announced last.
fn window_of(tracker: &Tracker, now_ms: u64) -> EntryId {
    let silence_max = tracker.expiry_rules(tracker.now()).silence_max;
    EntryId::at_ms(now_ms.saturating_sub(u64::from(silence_max.0) * 1_000))
}
