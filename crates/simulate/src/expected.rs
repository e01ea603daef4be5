//! The accounts that the server must have.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    pub uploaded: u64,
    pub downloaded: u64,
}

impl Transferred {
    pub fn add(&mut self, more: Transferred) {
        self.uploaded += more.uploaded;
        self.downloaded += more.downloaded;
    }
}

/// The accounts that the ledger must show: one for each user and torrent that announced, also without transfers.
///
/// Cheating clients are left out: the server decides what they are credited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedAccounts {
    /// By user and torrent.
    pub accounts: BTreeMap<(u64, u64), Transferred>,
    /// Completions by user and torrent.
    pub completions: BTreeMap<(u64, u64), u64>,
}

impl ExpectedAccounts {
    pub fn add(&mut self, user: u64, torrent: u64, transferred: Transferred) {
        self.accounts.entry((user, torrent)).or_default().add(transferred);
    }

    pub fn complete(&mut self, user: u64, torrent: u64) {
        *self.completions.entry((user, torrent)).or_default() += 1;
    }

    pub fn total(&self) -> Transferred {
        let mut total = Transferred::default();
        self.accounts.values().for_each(|transferred| total.add(*transferred));
        total
    }
}
