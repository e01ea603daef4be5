use std::sync::atomic::{AtomicU64, Ordering};

use domain::UnixTime;

use super::fold::Folded;
use super::torrents::ChangedState;

/// Since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisMirrorCounters {
    pub applied: u64,
    /// Entries that had been applied before.
    pub repeated: u64,
    /// Entries of unknown torrents.
    pub unknown_torrent: u64,
    /// Entries of unknown users.
    pub unknown_user: u64,
    /// Entries too far in the future.
    pub ahead: u64,
    /// Entries skipped because a key of their torrent has the wrong type.
    pub damaged: u64,
    /// Writes skipped because a set of a user or peer has the wrong type.
    pub damaged_sets: u64,
    /// Peers ended after an expired event of Redis.
    pub reaped_by_message: u64,
    /// Peers ended because the sweep found them overdue.
    pub reaped_by_sweep: u64,
    /// Peers whose timeout was renewed because the mirror lagged.
    pub timeouts_deferred: u64,
    /// Torrents whose watermark was reset because the journal's ids went back.
    pub watermarks_reset: u64,
    /// Torrents removed by the site whose keys were deleted.
    pub removed_torrents: u64,
    /// Torrents checked by the sweep.
    pub checked: u64,
    /// Differences repaired by the sweep.
    pub repaired: u64,
    /// Completed rounds of the sweep over all torrents.
    pub rounds: u64,
    /// End of the last round, in Unix seconds; 0 if none.
    pub last_round_at: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) applied: AtomicU64,
    pub(super) repeated: AtomicU64,
    unknown_torrent: AtomicU64,
    unknown_user: AtomicU64,
    ahead: AtomicU64,
    damaged: AtomicU64,
    damaged_sets: AtomicU64,
    pub(super) reaped_by_message: AtomicU64,
    pub(super) reaped_by_sweep: AtomicU64,
    timeouts_deferred: AtomicU64,
    watermarks_reset: AtomicU64,
    removed_torrents: AtomicU64,
    checked: AtomicU64,
    repaired: AtomicU64,
    rounds: AtomicU64,
    last_round_at: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counting {
    pub(super) fn applied(&self, folded: &Folded, state: &ChangedState) {
        let offered: usize = folded.torrents.iter().map(|work| work.steps.len()).sum();
        add(&self.applied, (offered as u64).saturating_sub(state.repeated + state.damaged));
        add(&self.repeated, state.repeated);
        add(&self.unknown_torrent, folded.unknown_torrent);
        add(&self.unknown_user, folded.unknown_user);
        add(&self.ahead, folded.ahead);
        add(&self.damaged, state.damaged);
    }

    pub(super) fn found_damaged_sets(&self, count: u64) {
        add(&self.damaged_sets, count);
    }

    pub(super) fn timeouts_deferred(&self, peers: u64) {
        add(&self.timeouts_deferred, peers);
    }

    pub(super) fn watermarks_reset(&self, torrents: u64) {
        add(&self.watermarks_reset, torrents);
    }

    pub(super) fn removed(&self, torrents: u64) {
        add(&self.removed_torrents, torrents);
    }

    pub(super) fn checked(&self, torrents: u64, repaired: u64) {
        add(&self.checked, torrents);
        add(&self.repaired, repaired);
    }

    pub(super) fn finished_round(&self, now: UnixTime) {
        add(&self.rounds, 1);
        self.last_round_at.store(now.0.into(), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> RedisMirrorCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RedisMirrorCounters {
            applied: get(&self.applied),
            repeated: get(&self.repeated),
            unknown_torrent: get(&self.unknown_torrent),
            unknown_user: get(&self.unknown_user),
            ahead: get(&self.ahead),
            damaged: get(&self.damaged),
            damaged_sets: get(&self.damaged_sets),
            reaped_by_message: get(&self.reaped_by_message),
            reaped_by_sweep: get(&self.reaped_by_sweep),
            timeouts_deferred: get(&self.timeouts_deferred),
            watermarks_reset: get(&self.watermarks_reset),
            removed_torrents: get(&self.removed_torrents),
            checked: get(&self.checked),
            repaired: get(&self.repaired),
            rounds: get(&self.rounds),
            last_round_at: get(&self.last_round_at),
        }
    }
}
