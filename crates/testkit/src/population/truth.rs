//! Expected credit, and which users seed and leech.

use std::collections::{BTreeMap, BTreeSet};

use super::client::Client;

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

    /// Adds another writer's transfers.
    pub fn add(&mut self, user: u64, torrent: u64, moved: Moved) {
        self.users.entry(user).or_default().add(moved);
        self.torrents.entry(torrent).or_default().add(moved);
        self.accounts.entry((user, torrent)).or_default().add(moved);
    }
}

/// Pairs of user and torrent. A user that does both with two clients seeds (A3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityLists {
    pub seeding: BTreeSet<(u64, u64)>,
    pub leeching: BTreeSet<(u64, u64)>,
}

impl ActivityLists {
    pub(super) fn of<'a>(clients: impl Iterator<Item = &'a Client>) -> ActivityLists {
        let mut activity_lists = ActivityLists::default();
        for client in clients.filter(|client| client.is_running()) {
            let set =
                if client.is_seeder() { &mut activity_lists.seeding } else { &mut activity_lists.leeching };
            set.insert((client.user(), client.torrent()));
        }
        let ActivityLists { seeding, leeching } = &mut activity_lists;
        leeching.retain(|pair| !seeding.contains(pair));
        activity_lists
    }
}
