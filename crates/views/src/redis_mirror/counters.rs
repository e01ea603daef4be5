use domain::{Counter, Level, UnixTime};

use super::fold::Folded;
use super::torrents::ChangedState;

/// Since the start of the process.
#[derive(Debug, Default)]
pub struct RedisMirrorCounters {
    pub applied: Counter,
    /// Entries that had been applied before.
    pub repeated: Counter,
    /// Entries of unknown torrents.
    pub unknown_torrent: Counter,
    /// Entries of unknown users.
    pub unknown_user: Counter,
    /// Entries too far in the future.
    pub ahead: Counter,
    /// Entries skipped because a key of their torrent has the wrong type.
    pub damaged: Counter,
    /// Writes skipped because a set of a user or peer has the wrong type.
    pub damaged_sets: Counter,
    /// Peers ended after an expired event of Redis.
    pub reaped_by_message: Counter,
    /// Peers ended because the sweep found them overdue.
    pub reaped_by_sweep: Counter,
    /// Peers whose timeout was renewed because the mirror lagged.
    pub timeouts_deferred: Counter,
    /// Torrents whose watermark was reset because the journal's ids went back.
    pub watermarks_reset: Counter,
    /// Times that another writer had claimed the keys, or Redis had lost them.
    pub superseded: Counter,
    /// Torrents removed by the site whose keys were deleted.
    pub removed_torrents: Counter,
    /// Torrents checked by the sweep.
    pub checked: Counter,
    /// Differences repaired by the sweep.
    pub repaired: Counter,
    /// Completed rounds of the sweep over all torrents.
    pub rounds: Counter,
    /// Peers and users that the writer has in memory.
    pub in_memory: Level,
    /// End of the last round, in Unix seconds; 0 if none.
    pub last_round_at: Level,
}

impl RedisMirrorCounters {
    pub(super) fn applied(&self, folded: &Folded, state: &ChangedState) {
        let offered: usize = folded.torrents.iter().map(|torrent| torrent.entries.len()).sum();
        self.applied.add((offered as u64).saturating_sub(state.repeated + state.damaged));
        self.repeated.add(state.repeated);
        self.unknown_torrent.add(folded.unknown_torrent);
        self.unknown_user.add(folded.unknown_user);
        self.ahead.add(folded.ahead);
        self.damaged.add(state.damaged);
    }

    pub(super) fn found_damaged_sets(&self, count: u64) {
        self.damaged_sets.add(count);
    }

    pub(super) fn timeouts_deferred(&self, peers: u64) {
        self.timeouts_deferred.add(peers);
    }

    pub(super) fn watermarks_reset(&self, torrents: u64) {
        self.watermarks_reset.add(torrents);
    }

    pub(super) fn in_memory(&self, peers_and_users: usize) {
        self.in_memory.set(peers_and_users);
    }

    pub(super) fn superseded(&self) {
        self.superseded.increment();
    }

    pub(super) fn removed(&self, torrents: u64) {
        self.removed_torrents.add(torrents);
    }

    pub(super) fn checked(&self, torrents: u64, repaired: u64) {
        self.checked.add(torrents);
        self.repaired.add(repaired);
    }

    pub(super) fn finished_round(&self, now: UnixTime) {
        self.rounds.add(1);
        self.last_round_at.set(now.0 as usize);
    }
}
