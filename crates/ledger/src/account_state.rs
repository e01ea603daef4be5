//! The part of the accounts that a batch touches, in memory.

use std::collections::{BTreeMap, BTreeSet};

use domain::{ClientId, TorrentId, UnixTime, UserId};

use crate::bucket::UserBucket;
use crate::figures::{Account, AccountKey, Figures, Stamp};
use crate::run::{ClientRef, Run};
use crate::sums::Sums;

/// State of a client by its latest entry (L3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientState {
    /// Stopped, expired or removed.
    #[default]
    Inactive,
    Seeding,
    Leeching,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub state: ClientState,
    pub latest: Stamp,
    /// Runs that ended until then may have been settled: see [`crate::settle`].
    pub settled_until: UnixTime,
    /// Contributions that no run accounts for.
    pub sums: Sums,
    pub runs: Vec<Run>,
}

/// The clients of one account.
pub type Clients = Vec<(ClientId, Client)>;

/// Rows by their keys. Missing rows belong to users, torrents and clients without entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    pub users: BTreeMap<UserId, Figures>,
    /// Token buckets over all clients of each user.
    pub user_buckets: BTreeMap<UserId, UserBucket>,
    pub torrents: BTreeMap<TorrentId, Figures>,
    pub accounts: BTreeMap<AccountKey, Account>,
    pub clients: BTreeMap<ClientRef, Client>,
}

/// Rows to be written. The clients of an account are part of its row.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub users: BTreeSet<UserId>,
    pub torrents: BTreeSet<TorrentId>,
    pub accounts: BTreeSet<AccountKey>,
}

impl AccountState {
    /// The clients of an account.
    pub fn clients_of(&self, key: AccountKey) -> impl Iterator<Item = (ClientId, &Client)> {
        let of = |client| ClientRef { user: key.user, torrent: key.torrent, client };
        let own = self.clients.range(of(ClientId(0))..=of(ClientId(u64::MAX)));
        own.map(|(key, client)| (key.client, client))
    }
}

impl Account {
    /// Moves one client from one state's count to another's.
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
