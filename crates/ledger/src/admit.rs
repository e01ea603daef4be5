//! Resolves the user and torrent of each entry (L1), and rejects entries without.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{ClientId, ClientKey, InfoHash, Passkey, TorrentId, UserId};
use journal::{DeliveredEntry, EntryId, Rejected, TrafficEntry};

use crate::figures::AccountKey;
use crate::run::ClientRef;

/// Finds users by passkey and torrents by infohash.
///
/// Used for entries that do not contain the ids. Lookups must not block.
#[async_trait]
pub trait Directory: Send + Sync {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId>;

    /// Waits until everything registered before `written_ms`, the time of an entry, is visible, in bounded time. False
    /// if that cannot be ensured now.
    async fn catch_up(&self, _written_ms: u64) -> bool {
        true
    }
}

/// Whether user and torrent of the entry can be resolved.
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

/// An entry with its user and torrent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted<'a> {
    /// Position in the batch.
    pub(crate) index: usize,
    pub(crate) arrival: &'a DeliveredEntry,
    pub(crate) user: UserId,
    pub(crate) torrent: TorrentId,
}

impl Admitted<'_> {
    pub(crate) fn account(&self) -> AccountKey {
        AccountKey { user: self.user, torrent: self.torrent }
    }

    pub(crate) fn client(&self) -> ClientRef {
        let client = client_id_of(self.user, &self.arrival.entry);
        ClientRef { user: self.user, torrent: self.torrent, client }
    }
}

/// The client of an entry: as our tracker wrote it, or derived as for a client without a key.
pub fn client_id_of(user: UserId, entry: &TrafficEntry) -> ClientId {
    match entry.totals {
        Some(totals) => totals.session.client,
        None => ClientId::derive(user, &entry.info_hash, ClientKey::NONE, &entry.peer_id),
    }
}

/// Resolves user and torrent of all entries not applied already; returns the others with a reason.
pub(crate) fn admit<'a>(
    arrivals: &'a [DeliveredEntry],
    already: &BTreeSet<EntryId>,
    directory: &dyn Directory,
) -> (Vec<Admitted<'a>>, Vec<Rejected>) {
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

fn admit_one<'a>(
    index: usize,
    arrival: &'a DeliveredEntry,
    directory: &dyn Directory,
) -> Result<Admitted<'a>, String> {
    let entry = &arrival.entry;
    let user = user_of(entry, directory).ok_or("no user has this passkey")?;
    let unknown = || format!("no torrent has the infohash {}", entry.info_hash);
    let torrent = torrent_of(entry, directory).ok_or_else(unknown)?;
    Ok(Admitted { index, arrival, user, torrent })
}
