use std::sync::atomic::{AtomicU64, Ordering};

use super::fold::Folded;
use super::store::{Applied, Swept};

/// Since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityCounters {
    /// Applied entries.
    pub entries: u64,
    /// Of these, entries superseded by a later one in the same batch.
    pub superseded: u64,
    /// Expired entries, which change nothing.
    pub too_old: u64,
    /// Entries without a passkey, of users that the tracker no longer had.
    pub without_passkey: u64,
    /// Entries rejected because of their time or a key of the wrong type.
    pub rejected: u64,
    /// Clients beyond the maximum of one user on one torrent.
    pub clients_evicted: u64,
    /// Users checked by sweeps.
    pub swept_users: u64,
    /// Torrents in which sweeps found expired reports.
    pub swept_torrents: u64,
    /// Users with a key of the wrong type, counted by each sweep.
    pub damaged_users: u64,
    /// Sweeps that reached a limit.
    pub sweeps_behind: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counting {
    entries: AtomicU64,
    superseded: AtomicU64,
    too_old: AtomicU64,
    without_passkey: AtomicU64,
    rejected: AtomicU64,
    clients_evicted: AtomicU64,
    swept_users: AtomicU64,
    swept_torrents: AtomicU64,
    damaged_users: AtomicU64,
    sweeps_behind: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counting {
    pub(super) fn applied(&self, folded: &Folded, applied: &Applied, rejected: usize) {
        let offered: usize = folded.users.iter().map(|user| user.indices.len()).sum();
        let refused: usize = applied.refused.iter().map(|user| folded.users[user.user].indices.len()).sum();
        add(&self.entries, (offered - refused) as u64);
        add(&self.superseded, folded.superseded);
        add(&self.too_old, folded.too_old);
        add(&self.without_passkey, folded.without_passkey);
        add(&self.rejected, rejected as u64);
        add(&self.clients_evicted, applied.clients_evicted);
    }

    pub(super) fn swept(&self, swept: &Swept) {
        add(&self.swept_users, swept.users);
        add(&self.swept_torrents, swept.torrents);
        add(&self.damaged_users, swept.damaged);
        add(&self.sweeps_behind, u64::from(swept.is_behind));
    }

    pub(super) fn read(&self) -> ActivityCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ActivityCounters {
            entries: get(&self.entries),
            superseded: get(&self.superseded),
            too_old: get(&self.too_old),
            without_passkey: get(&self.without_passkey),
            rejected: get(&self.rejected),
            clients_evicted: get(&self.clients_evicted),
            swept_users: get(&self.swept_users),
            swept_torrents: get(&self.swept_torrents),
            damaged_users: get(&self.damaged_users),
            sweeps_behind: get(&self.sweeps_behind),
        }
    }
}
