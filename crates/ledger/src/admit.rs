//! Whose entry it is (L1), and whether it can be taken at all.

use std::collections::BTreeSet;

use domain::{ClientId, ClientKey, InfoHash, Passkey, Seconds, TorrentId, UnixTime, UserId};
use journal::{Arrival, EntryId, Rejected, TrafficEntry};

use crate::figures::AccountKey;
use crate::run::ClientRef;

/// An entry from further ahead than this was not written by a clock anybody trusts. It would stay the latest one for
/// as long as it lies ahead.
const AHEAD_MAX: Seconds = Seconds(24 * 60 * 60);

/// Knows users by their passkeys and torrents by their infohashes.
///
/// Asked for entries that do not bring the numbers themselves. Must not wait.
pub trait Directory: Send + Sync {
    /// The user with this passkey.
    fn user_of(&self, passkey: &Passkey) -> Option<UserId>;

    /// The torrent with this infohash.
    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId>;
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
    now: UnixTime,
) -> (Vec<Admitted>, Vec<Rejected>) {
    let mut admitted = Vec::with_capacity(arrivals.len());
    let mut rejected = Vec::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        if already.contains(&arrival.id) {
            continue;
        }
        match admit_one(index, arrival, directory, now) {
            Ok(entry) => admitted.push(entry),
            Err(reason) => rejected.push(Rejected { index, reason }),
        }
    }
    (admitted, rejected)
}

fn admit_one(
    index: usize,
    arrival: &Arrival,
    directory: &dyn Directory,
    now: UnixTime,
) -> Result<Admitted, String> {
    let entry = &arrival.entry;
    if entry.at > now + AHEAD_MAX {
        return Err(format!("ts: {} lies more than a day ahead of this machine's clock", entry.at));
    }
    let by_passkey = || entry.passkey.as_ref().and_then(|passkey| directory.user_of(passkey));
    let user = entry.user.or_else(by_passkey).ok_or("no user has this passkey")?;
    let by_info_hash = || directory.torrent_of(&entry.info_hash);
    let torrent = entry
        .torrent
        .or_else(by_info_hash)
        .ok_or_else(|| format!("no torrent has the infohash {}", entry.info_hash))?;
    Ok(Admitted { index, arrival: *arrival, user, torrent })
}
