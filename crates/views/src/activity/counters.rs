use domain::Counter;

use super::fold::Folded;
use super::store::{Applied, Swept};

/// Since the start of the process.
#[derive(Debug, Default)]
pub struct ActivityCounters {
    /// Applied entries.
    pub entries: Counter,
    /// Of these, entries superseded by a later one in the same batch.
    pub superseded: Counter,
    /// Expired entries, which change nothing.
    pub too_old: Counter,
    /// Entries without a passkey, of users that the tracker no longer had.
    pub without_passkey: Counter,
    /// Entries rejected because of their time or a key of the wrong type.
    pub rejected: Counter,
    /// Clients beyond the maximum of one user on one torrent.
    pub clients_evicted: Counter,
    /// Users checked by sweeps.
    pub swept_users: Counter,
    /// Torrents in which sweeps found expired reports.
    pub swept_torrents: Counter,
    /// Users with a key of the wrong type, counted by each sweep.
    pub damaged_users: Counter,
    /// Sweeps that reached a limit.
    pub sweeps_behind: Counter,
}

impl ActivityCounters {
    pub(super) fn applied(&self, folded: &Folded, applied: &Applied, rejected: usize) {
        let offered: usize = folded.users.iter().map(|user| user.indices.len()).sum();
        let refused: usize = applied.refused.iter().map(|user| folded.users[user.user].indices.len()).sum();
        self.entries.add((offered - refused) as u64);
        self.superseded.add(folded.superseded);
        self.too_old.add(folded.too_old);
        self.without_passkey.add(folded.without_passkey);
        self.rejected.add(rejected as u64);
        self.clients_evicted.add(applied.clients_evicted);
    }

    pub(super) fn swept(&self, swept: &Swept) {
        self.swept_users.add(swept.users);
        self.swept_torrents.add(swept.torrents);
        self.damaged_users.add(swept.damaged);
        self.sweeps_behind.add(u64::from(swept.is_behind));
    }
}
