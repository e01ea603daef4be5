//! The part of the accounts that a batch touches, in memory.

use std::collections::{BTreeMap, BTreeSet};

use domain::{TorrentId, UnixTime, UserId};

use crate::bucket::UserBucket;
use crate::figures::{Account, AccountKey, Figures, Stamp};
use crate::run::{ClientRef, Run, RunKey};
use crate::sums::Sums;

/// What a client is doing, by its latest entry (L3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientState {
    /// It said goodbye, fell silent, or was removed.
    #[default]
    Inactive,
    /// It has everything.
    Seeding,
    /// It wants more.
    Leeching,
}

/// What is kept of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// What it is doing.
    pub state: ClientState,
    /// Its latest entry.
    pub latest: Stamp,
    /// Runs that ended until then may have been put away: see [`crate::settle`].
    pub settled_until: UnixTime,
    /// What it contribution of which no run tells.
    pub sums: Sums,
    /// Its runs.
    pub runs: Vec<Run>,
}

/// Rows, by their keys. What is missing has never been heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// The users.
    pub users: BTreeMap<UserId, Figures>,
    /// What all clients of each user together may still be credited.
    pub user_buckets: BTreeMap<UserId, UserBucket>,
    /// The torrents.
    pub torrents: BTreeMap<TorrentId, Figures>,
    /// The users on torrents.
    pub accounts: BTreeMap<AccountKey, Account>,
    /// The clients.
    pub clients: BTreeMap<ClientRef, Client>,
}

/// Which rows are to be written.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Users whose figures changed.
    pub users: BTreeSet<UserId>,
    /// Torrents whose figures changed.
    pub torrents: BTreeSet<TorrentId>,
    /// Accounts that changed.
    pub accounts: BTreeSet<AccountKey>,
    /// Clients that changed.
    pub clients: BTreeSet<ClientRef>,
    /// Runs that are new or changed.
    pub runs: Vec<(ClientRef, Run)>,
    /// Runs that were put away.
    pub removed_runs: Vec<(ClientRef, RunKey)>,
    /// Clients that are forgotten, with all their runs.
    pub removed_clients: BTreeSet<ClientRef>,
}

impl Account {
    /// Notes that one of its clients does something else now.
    pub(crate) fn move_client(&mut self, from: ClientState, to: ClientState) {
        match from {
            ClientState::Inactive => {}
            ClientState::Seeding => self.seeding_clients = self.seeding_clients.saturating_sub(1),
            ClientState::Leeching => self.leeching_clients = self.leeching_clients.saturating_sub(1),
        }
        match to {
            ClientState::Inactive => {}
            ClientState::Seeding => self.seeding_clients += 1,
            ClientState::Leeching => self.leeching_clients += 1,
        }
    }
}
