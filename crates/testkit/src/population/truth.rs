//! What must be credited, and who seeds and leeches.

use std::collections::{BTreeMap, BTreeSet};

use super::client::Client;

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes uploaded.
    pub uploaded: u128,
    /// Bytes downloaded.
    pub downloaded: u128,
}

impl Moved {
    /// Adds to it.
    pub fn add(&mut self, more: Moved) {
        self.uploaded += more.uploaded;
        self.downloaded += more.downloaded;
    }
}

/// What must be credited. Only who announced is in it, also with nothing moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// By user.
    pub users: BTreeMap<u64, Moved>,
    /// By torrent.
    pub torrents: BTreeMap<u64, Moved>,
    /// By user and torrent.
    pub accounts: BTreeMap<(u64, u64), Moved>,
    /// How often each user completed each torrent, where ever.
    pub completions: BTreeMap<(u64, u64), u64>,
}

impl Truth {
    pub(super) fn of<'a>(clients: impl Iterator<Item = &'a Client>) -> Truth {
        let mut truth = Truth::default();
        for client in clients.filter(|client| client.has_announced()) {
            let (user, torrent) = (client.user(), client.torrent());
            truth.add(user, torrent, client.moved());
            if client.completions() > 0 {
                *truth.completions.entry((user, torrent)).or_default() += client.completions();
            }
        }
        truth
    }

    /// Adds what somebody else moved for a user on a torrent.
    pub fn add(&mut self, user: u64, torrent: u64, moved: Moved) {
        self.users.entry(user).or_default().add(moved);
        self.torrents.entry(torrent).or_default().add(moved);
        self.accounts.entry((user, torrent)).or_default().add(moved);
    }
}

/// Pairs of user and torrent. Who does both with two clients seeds (A3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standings {
    /// Who seeds what.
    pub seeding: BTreeSet<(u64, u64)>,
    /// Who leeches what.
    pub leeching: BTreeSet<(u64, u64)>,
}

impl Standings {
    pub(super) fn of<'a>(clients: impl Iterator<Item = &'a Client>) -> Standings {
        let mut standings = Standings::default();
        for client in clients.filter(|client| client.is_running()) {
            let set = if client.is_seeder() { &mut standings.seeding } else { &mut standings.leeching };
            set.insert((client.user(), client.torrent()));
        }
        let Standings { seeding, leeching } = &mut standings;
        leeching.retain(|pair| !seeding.contains(pair));
        standings
    }
}
