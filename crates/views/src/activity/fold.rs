//! From a batch of entries to changes per user. Pure.
//!
//! Only the latest entry of a client on a torrent is kept. Expired entries and entries without a passkey change nothing
//! and are counted; entries too far ahead are rejected.
//!
//! The client id comes from the entry's session (`sid`). Without one (J3) it is a hash of the peer id, which suffices
//! within the record of one user on one torrent. The two ids differ: if two producers report the same client, it counts
//! as two, each of which stops or expires by itself.

use std::hash::Hasher;

use domain::{AHEAD_MAX, AnnounceEvent, ClientId, InfoHash, Passkey, Seconds, UnixTime};
use journal::{DeliveredEntry, Rejected, TrafficEntry};
use siphasher::sip::SipHasher13;

use super::record::{ClientState, Report, Stamp};
use super::settings::Window;

/// A new report about a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub info_hash: InfoHash,
    pub report: Report,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserChanges {
    pub passkey: Passkey,
    /// Ordered by torrent.
    pub changes: Vec<Change>,
    /// Positions in the batch of this user's entries, superseded ones included.
    pub indices: Vec<usize>,
}

#[derive(Debug, Default)]
pub struct Folded {
    pub users: Vec<UserChanges>,
    pub rejected: Vec<Rejected>,
    /// Expired entries.
    pub too_old: u64,
    pub without_passkey: u64,
    /// Entries with a later one of the same client in the batch.
    pub superseded: u64,
}

pub fn fold(arrivals: &[DeliveredEntry], window: &Window) -> Folded {
    let mut folded = Folded::default();
    let mut changes = Vec::with_capacity(arrivals.len());
    for (index, arrival) in arrivals.iter().enumerate() {
        let at = time_of(&arrival.entry, window);
        let extra_silence = window.extra_silence(arrival.entry.interval);
        match arrival.entry.passkey {
            None => folded.without_passkey += 1,
            Some(_) if window.is_past(at, extra_silence) => folded.too_old += 1,
            Some(_) if window.is_ahead(at) => {
                folded.rejected.push(Rejected { index, reason: ahead(arrival, window) });
            }
            Some(passkey) => changes.push((passkey, change_of(arrival, at, extra_silence), index)),
        }
    }
    changes.sort_unstable_by_key(|(passkey, change, _)| {
        (*passkey, change.info_hash, change.report.client, change.report.stamp)
    });
    for (passkey, change, index) in changes {
        match folded.users.last_mut() {
            Some(user) if user.passkey == passkey => {
                folded.superseded += u64::from(user.add(change, index));
            }
            _ => folded.users.push(UserChanges { passkey, changes: vec![change], indices: vec![index] }),
        }
    }
    folded
}

impl UserChanges {
    /// Adds the next change in order; true if it replaces the previous one.
    fn add(&mut self, change: Change, index: usize) -> bool {
        self.indices.push(index);
        match self.changes.last_mut() {
            Some(last)
                if last.info_hash == change.info_hash && last.report.client == change.report.client =>
            {
                *last = change;
                true
            }
            _ => {
                self.changes.push(change);
                false
            }
        }
    }
}

/// Time of an entry: steady time, which orders the entries of a node even if its wall clock was set; the wall clock if
/// steady time is not valid, because the clock was wrong when the node started.
fn time_of(entry: &TrafficEntry, window: &Window) -> UnixTime {
    let steady = entry.steady_at();
    let is_past = window.is_past(steady, window.extra_silence(entry.interval));
    if is_past || window.is_ahead(steady) { entry.at } else { steady }
}

fn change_of(arrival: &DeliveredEntry, at: UnixTime, extra_silence: Seconds) -> Change {
    let entry = &arrival.entry;
    let state = state_of(entry);
    let is_first_of_second = entry.since_last.is_some_and(|since_last| since_last.0 > 0);
    let stamp = match entry.event {
        AnnounceEvent::None if is_first_of_second => Stamp::of_heartbeat(at, state),
        _ => Stamp::of_entry(at, arrival.origin),
    };
    let report = Report { client: client_of(entry), state, extra_silence, stamp };
    Change { info_hash: entry.info_hash, report }
}

/// State by event and `left` (A2).
fn state_of(entry: &TrafficEntry) -> ClientState {
    match entry.event {
        AnnounceEvent::Stopped => ClientState::Stopped,
        _ if entry.is_complete() => ClientState::Seeding,
        _ => ClientState::Leeching,
    }
}

fn client_of(entry: &TrafficEntry) -> ClientId {
    match entry.totals {
        Some(totals) => totals.session.client,
        None => {
            let mut hasher = SipHasher13::new();
            hasher.write(b"peer");
            hasher.write(&entry.peer_id.0);
            ClientId(hasher.finish())
        }
    }
}

fn ahead(arrival: &DeliveredEntry, window: &Window) -> String {
    let (at, now) = (arrival.entry.at, window.now);
    format!(
        "ts: {at} is more than {AHEAD_MAX} ahead of this machine's clock ({now}); check the producer's clock"
    )
}
