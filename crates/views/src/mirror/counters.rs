//! Figures of what was done and what was left out.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::UnixTime;

use super::fold::Folded;
use super::torrents::ChangedState;

/// How often what happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounters {
    /// Entries that were applied.
    pub applied: u64,
    /// Entries that had been applied before.
    pub repeated: u64,
    /// Entries of torrents that nobody knows.
    pub unknown_torrent: u64,
    /// Entries of users whom nobody knows.
    pub unknown_user: u64,
    /// Entries from too far ahead.
    pub ahead: u64,
    /// Entries left out because a key of their torrent holds something else.
    pub damaged: u64,
    /// Keys of users and peers that hold something else, as often as they were to be written.
    pub damaged_sets: u64,
    /// Peers reaped after a message that their timeout ran out.
    pub reaped_by_message: u64,
    /// Peers reaped because the sweep found them overdue.
    pub reaped_by_sweep: u64,
    /// Peers peer_keys timeout could not be judged yet, because the mirror was behind the journal.
    pub timeouts_deferred: u64,
    /// Torrents peer_keys watermark was taken back, because the journal's ids went back.
    pub watermarks_reset: u64,
    /// Torrents that the site removed and that were cleared away.
    pub removed_torrents: u64,
    /// Torrents that the sweep checked at.
    pub checked: u64,
    /// Things that the sweep found wrong and repaired.
    pub repaired: u64,
    /// Rounds over all torrents that the sweep has finished.
    pub rounds: u64,
    /// When the last one was finished; zero if none was.
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
    pub(super) fn applied(&self, folded: &Folded, changed_state: &ChangedState) {
        let offered: usize = folded.torrents.iter().map(|work| work.steps.len()).sum();
        add(&self.applied, (offered as u64).saturating_sub(changed_state.repeated + changed_state.damaged));
        add(&self.repeated, changed_state.repeated);
        add(&self.unknown_torrent, folded.unknown_torrent);
        add(&self.unknown_user, folded.unknown_user);
        add(&self.ahead, folded.ahead);
        add(&self.damaged, changed_state.damaged);
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

    pub(super) fn read(&self) -> MirrorCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MirrorCounters {
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
