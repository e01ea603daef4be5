//! What the server must have: accounts, completions, and which users seed and leech.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub uploaded: u128,
    pub downloaded: u128,
}

impl Moved {
    pub fn add(&mut self, more: Moved) {
        self.uploaded += more.uploaded;
        self.downloaded += more.downloaded;
    }
}

/// What must be credited. Contains each user that announced, also without transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub users: BTreeMap<u64, Moved>,
    pub torrents: BTreeMap<u64, Moved>,
    pub accounts: BTreeMap<(u64, u64), Moved>,
    /// How often each user completed each torrent, where ever.
    pub completions: BTreeMap<(u64, u64), u64>,
}

impl Truth {
    /// Adds a transfer, perhaps of nothing.
    pub fn add(&mut self, user: u64, torrent: u64, moved: Moved) {
        self.users.entry(user).or_default().add(moved);
        self.torrents.entry(torrent).or_default().add(moved);
        self.accounts.entry((user, torrent)).or_default().add(moved);
    }

    pub fn complete(&mut self, user: u64, torrent: u64) {
        *self.completions.entry((user, torrent)).or_default() += 1;
    }

    pub fn total(&self) -> Moved {
        let mut total = Moved::default();
        self.users.values().for_each(|moved| total.add(*moved));
        total
    }
}

/// Pairs of user and torrent. A user that does both with two clients seeds (A3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityLists {
    pub seeding: BTreeSet<(u64, u64)>,
    pub leeching: BTreeSet<(u64, u64)>,
}
