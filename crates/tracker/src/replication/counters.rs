//! Counters of replication.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Counter, Histogram};
use journal::EntryId;
use parking_lot::Mutex;
use swarm::RemoteOutcome;

#[derive(Debug, Default)]
pub struct ReplicationCounters {
    /// Entries that were the latest of their peer.
    pub applied: Counter,
    /// Entries older than what the swarm already had.
    pub late: Counter,
    /// Entries written by this process.
    pub own: Counter,
    /// Malformed entries, and those of users, torrents or clients that are not admitted here.
    pub skipped: Counter,
    /// Entries of peers that have expired since.
    pub overdue: Counter,
    /// Entries too far ahead of this node's clock.
    pub ahead: Counter,
    /// Entries refused by a bound of the swarms.
    pub no_room: Counter,
    /// Times that entries were missing and the last interval + grace was read again.
    pub resyncs: Counter,
    /// Failed reads.
    pub failures: Counter,
    pub snapshots: Counter,
    pub snapshot_failures: Counter,
    /// From the storing of an entry until it is in the swarms here.
    pub delays: Histogram,
    /// Last time the end of the journal was reached, in milliseconds; zero before the first time.
    caught_up_ms: AtomicU64,
    cursor: Mutex<EntryId>,
}

impl ReplicationCounters {
    /// All entries up to this one are in the swarms.
    pub fn cursor(&self) -> EntryId {
        *self.cursor.lock()
    }

    /// Time since the end of the journal was last reached; none before the first time.
    pub fn lag_ms(&self, now_ms: u64) -> Option<u64> {
        match self.caught_up_ms.load(Ordering::Relaxed) {
            0 => None,
            caught_up_ms => Some(now_ms.saturating_sub(caught_up_ms)),
        }
    }

    pub(super) fn set_cursor(&self, cursor: EntryId) {
        *self.cursor.lock() = cursor;
    }

    pub(super) fn note_caught_up(&self, now_ms: u64) {
        self.caught_up_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(super) fn count(&self, learnt: RemoteOutcome) {
        let counter = match learnt {
            RemoteOutcome::Applied => &self.applied,
            RemoteOutcome::Late => &self.late,
            RemoteOutcome::Overdue => &self.overdue,
            RemoteOutcome::Ahead => &self.ahead,
            RemoteOutcome::NoRoom => &self.no_room,
        };
        counter.increment();
    }
}
