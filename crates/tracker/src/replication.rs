//! Announces received by other nodes, read from the journal into the swarms.
//!
//! The journal is the replication log: every node reads the others' entries, so that any node answers any announce
//! from memory. At the start a node first reads the last interval + grace seconds, since every live peer has
//! announced within them; a snapshot shortens that. After ten seconds it serves and continues to read.
//!
//! # Guarantees
//!
//! - An announce never waits for replication: one task reads, and each entry locks one shard.
//! - Repetition and order do not matter (see [`swarm::Swarms::apply_remote`]).
//! - If entries are missing after the cursor (trimmed, or lost in a failover), the last interval + grace seconds are
//!   read again, which is counted and logged.
//! - While the journal is unreachable, the swarms serve what they have.
//!
//! # Deliberately absent
//!
//! A consumer group: this reader acknowledges nothing and prevents no trimming, so a node that is removed permanently
//! leaves nothing behind.

mod counters;
mod learn;

use std::sync::Arc;
use std::time::Duration;

use domain::Backoff;
use domain::clock::Stopwatch;
use journal::{EntryId, Journal, JournalError, Lane, Stored, Tail, TrafficEntry};
use tokio::sync::watch;
use tracing::{debug, info, warn};

pub use counters::ReplicationCounters;

use crate::pipeline::Tracker;

const BATCH: usize = 1_000;
/// Sleep at the end of the journal; it doubles while nothing is added, up to the second value.
const POLL: Duration = Duration::from_millis(25);
const POLL_MAX: Duration = Duration::from_millis(200);
/// Longest wait of a start for an unreachable journal. Afterwards the node serves what it has and catches up.
const START_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest read of a start, so that a long journal does not delay serving.
const CATCH_UP_MAX: Duration = Duration::from_secs(10);
/// How often a window is extended over a step of the wall clock, so that odd entries do not make a start read all.
const CLOCK_STEPS_MAX: usize = 64;
/// Entries per progress log line.
const PROGRESS_EVERY: u64 = 500_000;

pub struct Replication {
    tracker: Arc<Tracker>,
    journal: Arc<dyn Journal>,
    /// All entries up to here are in the swarms.
    cursor: EntryId,
    /// Whether a snapshot covers everything up to the first cursor.
    has_snapshot: bool,
    /// Whether the cursor is the id of an entry, so that missing entries behind it are detectable.
    is_anchored: bool,
    /// Up to this entry own entries are applied too.
    replay_until: EntryId,
    /// Whether the node serves before it has read everything: then peers last received by other nodes do not expire.
    is_behind: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    pub entries: u64,
    /// False if the journal was unreachable or too long.
    pub is_all: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(usize),
    /// Entries were missing.
    Resynced,
}

impl Replication {
    /// Starts behind `cursor` if a snapshot covers everything up to there; otherwise at the earliest moment at which
    /// a live peer can have announced last.
    pub fn new(tracker: Arc<Tracker>, journal: Arc<dyn Journal>, cursor: Option<EntryId>) -> Self {
        let window = window_of(&tracker, tracker.wall_ms());
        // An older entry may have been trimmed, which would not mean that entries are missing.
        let is_anchored = cursor.is_some_and(|cursor| cursor > window);
        let (has_snapshot, cursor) = (cursor.is_some(), cursor.unwrap_or(window));
        tracker.counters().replication.set_cursor(cursor);
        let replay_until = EntryId::ZERO;
        Replication { tracker, journal, cursor, is_anchored, has_snapshot, replay_until, is_behind: false }
    }

    /// Before serving; at most for [`CATCH_UP_MAX`].
    pub async fn catch_up(&mut self) -> CaughtUp {
        let caught_up = self.try_to_catch_up().await;
        self.is_behind = !caught_up.is_all;
        self.tracker.swarms().hold_remote_peers(self.is_behind);
        caught_up
    }

    async fn try_to_catch_up(&mut self) -> CaughtUp {
        let reading = Stopwatch::start();
        let mut caught_up = CaughtUp::default();
        let Some(newest) = with_retries(|| self.newest()).await else {
            return caught_up;
        };
        self.replay_until = newest.unwrap_or_default();
        if !self.has_snapshot {
            let Some(start) = with_retries(|| self.window_start(newest)).await else {
                return caught_up;
            };
            self.cursor = start;
            self.counters().set_cursor(start);
        }
        while self.cursor < self.replay_until {
            if reading.elapsed() > CATCH_UP_MAX {
                return caught_up;
            }
            let read = match self.step_with_retries().await {
                Some(Step::Read(0)) => break,
                Some(Step::Read(read)) => read as u64,
                Some(Step::Resynced) => continue,
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

    /// Where to read from so that every live peer is found. Counted back from the newest entry, not from this node's
    /// wall clock: entry ids use the clock of the journal. If that clock was set forward, entries before the step may
    /// be recent although their ids are not: the start moves back until the entry before it is old in steady time.
    async fn window_start(&self, newest: Option<EntryId>) -> Result<EntryId, JournalError> {
        let now = self.tracker.now();
        let oldest_live = now - self.tracker.expiry_rules(now).silence_max;
        let mut start = window_of(&self.tracker, newest.map_or(self.tracker.wall_ms(), |newest| newest.ms));
        for _ in 0..CLOCK_STEPS_MAX {
            let before = self.journal.list_newest(Lane::Traffic, start, 1).await?;
            let Some(stored) = before.first() else { break };
            let is_recent = TrafficEntry::parse(&stored.fields)
                .is_ok_and(|entry| self.tracker.steady_time_of(&entry, now) >= oldest_live);
            if !is_recent {
                break;
            }
            start = window_of(&self.tracker, stored.id.ms);
        }
        Ok(start)
    }

    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
        let (mut is_unreachable, mut was_unreachable) = (false, self.is_behind);
        let mut poll = POLL;
        loop {
            let pause = match self.step().await {
                Ok(step) => {
                    backoff.reset();
                    if std::mem::take(&mut is_unreachable) {
                        was_unreachable = true;
                        info!("the journal is reachable again; reading the entries of other nodes");
                    }
                    let is_all = matches!(step, Step::Read(read) if read < BATCH);
                    if is_all && std::mem::take(&mut was_unreachable) {
                        self.tracker.swarms().hold_remote_peers(false);
                    }
                    poll = if matches!(step, Step::Read(0)) { (2 * poll).min(POLL_MAX) } else { POLL };
                    if is_all { poll } else { Duration::ZERO }
                }
                Err(reason) => {
                    self.counters().failures.increment();
                    if !std::mem::replace(&mut is_unreachable, true) {
                        self.tracker.swarms().hold_remote_peers(true);
                        warn!(%reason, "the journal is unreachable; entries of other nodes are read once it returns");
                    }
                    backoff.next_delay()
                }
            };
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn step(&mut self) -> Result<Step, JournalError> {
        let tail = self.tail().await?;
        if !tail.is_whole {
            self.resync().await?;
            return Ok(Step::Resynced);
        }
        for stored in &tail.entries {
            self.apply(stored);
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
        // A point in time is not the id of an entry.
        let entries = self.journal.list(Lane::Traffic, self.cursor, BATCH).await?;
        Ok(Tail { entries, is_whole: true })
    }

    /// Reads the last interval + grace again after entries were lost.
    async fn resync(&mut self) -> Result<(), JournalError> {
        let newest = self.newest().await?;
        self.replay_until = newest.unwrap_or_default();
        let missing_behind = self.cursor;
        self.cursor = self.window_start(newest).await?;
        self.is_anchored = false;
        self.counters().set_cursor(self.cursor);
        self.counters().resyncs.increment();
        warn!(%missing_behind, from = %self.cursor, "journal entries are missing; reading the last interval + grace again");
        Ok(())
    }

    fn apply(&self, stored: &Stored) {
        let counters = self.counters();
        let is_replay = stored.id <= self.replay_until;
        // While replaying, own entries are applied too: an older entry of another node may have overwritten them.
        if !is_replay && TrafficEntry::node_of(&stored.fields) == Some(self.tracker.node()) {
            return counters.own.increment();
        }
        let Ok(entry) = TrafficEntry::parse(&stored.fields) else {
            // The ledger moves it to the dead letters, with the reason.
            debug!(id = %stored.id, "skipped a malformed entry");
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

    async fn step_with_retries(&mut self) -> Option<Step> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
        let trying = async {
            loop {
                match self.step().await {
                    Ok(step) => return step,
                    Err(reason) => debug!(%reason, "the journal is unreachable"),
                }
                tokio::time::sleep(backoff.next_delay()).await;
            }
        };
        tokio::time::timeout(START_TIMEOUT, trying).await.ok()
    }

    fn counters(&self) -> &ReplicationCounters {
        &self.tracker.counters().replication
    }
}

/// Retries until success, up to [`START_TIMEOUT`].
async fn with_retries<T, F>(request: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, JournalError>>,
{
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
    let retrying = async {
        loop {
            match request().await {
                Ok(reply) => return reply,
                Err(reason) => debug!(%reason, "the journal is unreachable"),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    };
    tokio::time::timeout(START_TIMEOUT, retrying).await.ok()
}

/// The earliest moment at which a peer that is alive at `now_ms` can have announced last.
fn window_of(tracker: &Tracker, now_ms: u64) -> EntryId {
    let silence_max = tracker.expiry_rules(tracker.now()).silence_max;
    EntryId::at_ms(now_ms.saturating_sub(u64::from(silence_max.0) * 1_000))
}
