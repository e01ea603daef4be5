//! Whose entry it is (L1), and whether it can be taken at all.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{ClientId, ClientKey, InfoHash, Passkey, TorrentId, UserId};
use journal::{Arrival, EntryId, Rejected, TrafficEntry};

use crate::figures::AccountKey;
use crate::run::ClientRef;

/// Knows users by their passkeys and torrents by their infohashes.
///
/// Asked for entries that do not bring the numbers themselves. Looking up must not wait.
#[async_trait]
pub trait Directory: Send + Sync {
    /// The user with this passkey.
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    /// The torrent with this infohash.
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId>;

    /// Waits until it knows whatever was registered before an entry was written at `written_ms`, in bounded time. False
    /// if that cannot be found out now.
    async fn catch_up(&self, _written_ms: u64) -> bool {
        true
    }
}

/// Whether the entry names a user and a torrent that are known.
pub(crate) fn is_known(entry: &TrafficEntry, directory: &dyn Directory) -> bool {
    user_of(entry, directory).is_some() && torrent_of(entry, directory).is_some()
}

fn user_of(entry: &TrafficEntry, directory: &dyn Directory) -> Option<UserId> {
    let by_passkey = || entry.passkey.as_ref().and_then(|passkey| directory.user_of(passkey));
    entry.user.or_else(by_passkey)
}

fn torrent_of(entry: &TrafficEntry, directory: &dyn Directory) -> Option<TorrentId> {
    entry.torrent.or_else(|| directory.torrent_of(&entry.info_hash))
}

/// An entry whose user and torrent are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// Its position in the batch.
    pub(crate) index: usize,
    pub(crate) arrival: Arrival,
    pub(crate) user: UserId,
    pub(crate) torrent: TorrentId,
}

impl Admitted {
    pub(crate) fn account(&self) -> AccountKey {
        AccountKey { user: self.user, torrent: self.torrent }
    }

    pub(crate) fn client(&self) -> ClientRef {
        let client = client_id_of(self.user, &self.arrival.entry);
        ClientRef { user: self.user, torrent: self.torrent, client }
    }
}

/// The client that an entry of this user is of: the one our tracker named, or derived as our tracker would, for a client
/// without a key.
pub fn client_id_of(user: UserId, entry: &TrafficEntry) -> ClientId {
    match entry.totals {
        Some(totals) => totals.session.client,
        None => ClientId::derive(user, &entry.info_hash, ClientKey::NONE, &entry.peer_id),
    }
}

/// Finds out whose entries these are, but for those that were applied already; says why where nobody's.
pub(crate) fn admit(
    arrivals: &[Arrival],
    already: &BTreeSet<EntryId>,
    directory: &dyn Directory,
) -> (Vec<Admitted>, Vec<Rejected>) {
    let mut admitted = Vec::with_capacity(arrivals.len());
    let mut rejected = Vec::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        if already.contains(&arrival.id) {
            continue;
        }
        match admit_one(index, arrival, directory) {
            Ok(entry) => admitted.push(entry),
            Err(reason) => rejected.push(Rejected { index, reason }),
        }
    }
    (admitted, rejected)
}

fn admit_one(index: usize, arrival: &Arrival, directory: &dyn Directory) -> Result<Admitted, String> {
    let entry = &arrival.entry;
    let user = user_of(entry, directory).ok_or("no user has this passkey")?;
    let unknown = || format!("no torrent has the infohash {}", entry.info_hash);
    let torrent = torrent_of(entry, directory).ok_or_else(unknown)?;
    Ok(Admitted { index, arrival: *arrival, user, torrent })
}
