//! What was moved in the end, and who took what.

use std::collections::BTreeMap;

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes uploaded.
    pub uploaded: u64,
    /// Bytes downloaded.
    pub downloaded: u64,
}

impl Moved {
    /// Adds to it.
    pub fn add(&mut self, more: Moved) {
        self.uploaded += more.uploaded;
        self.downloaded += more.downloaded;
    }
}

/// What the books must show. Only who announced is in it, also with nothing moved.
///
/// Cheats are left out: what they are credited is the server's decision, not the world's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// By user and torrent.
    pub accounts: BTreeMap<(u64, u64), Moved>,
    /// How often each user completed each torrent, where ever.
    pub completions: BTreeMap<(u64, u64), u64>,
}

impl Truth {
    /// Adds what a client of a user moved of a torrent.
    pub fn add(&mut self, user: u64, torrent: u64, moved: Moved) {
        self.accounts.entry((user, torrent)).or_default().add(moved);
    }

    /// A client of a user completed a torrent.
    pub fn complete(&mut self, user: u64, torrent: u64) {
        *self.completions.entry((user, torrent)).or_default() += 1;
    }

    /// The sum of all accounts.
    pub fn total(&self) -> Moved {
        let mut total = Moved::default();
        self.accounts.values().for_each(|moved| total.add(*moved));
        total
    }
}
