//! What is counted about other nodes' entries.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Counter, Histogram};
use journal::EntryId;
use parking_lot::Mutex;
use swarm::RemoteOutcome;

/// What became of the entries that were read.
#[derive(Debug, Default)]
pub struct ReplicationCounters {
    /// Entries that were the last word on their peer.
    pub applied: Counter,
    /// Entries that came behind a later one.
    pub late: Counter,
    /// Entries of this process, which knew them already.
    pub own: Counter,
    /// Entries of users, torrents or clients that are not let in here, or that cannot be read.
    pub skipped: Counter,
    /// Entries of peers that would have expired by now.
    pub overdue: Counter,
    /// Entries that lie too far ahead of this node's clock.
    pub ahead: Counter,
    /// Entries for whose peer or torrent there was no room.
    pub no_room: Counter,
    /// Times that entries were missing, and the last interval + grace was read again.
    pub resyncs: Counter,
    /// Attempts to read that failed.
    pub failures: Counter,
    /// Snapshots of the swarms that were written.
    pub snapshots: Counter,
    /// Snapshots that could not be written.
    pub snapshot_failures: Counter,
    /// From the moment an entry was stored until it was in the swarms here.
    pub delays: Histogram,
    /// When the journal was last read to its end, in milliseconds since 1970; zero before the first time.
    caught_up_ms: AtomicU64,
    /// Everything up to here is in the swarms.
    cursor: Mutex<EntryId>,
}

impl ReplicationCounters {
    /// Everything up to this entry is in the swarms.
    pub fn cursor(&self) -> EntryId {
        *self.cursor.lock()
    }

    /// How long ago the journal was last read to its end, in milliseconds; none before the first time.
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
