//! From a batch of entries to the few changes that matter. Pure.
//!
//! Of a client on a torrent only the latest entry of the batch is kept; entries that are too old, or that name no
//! passkey, change nothing and are counted; entries from too far ahead are refused.
//!
//! A client is the one of the entry's session (`sid`). An entry without one (J3) names its client by the peer id
//! alone: a record is of one user on one torrent, so nothing more is needed. The two never agree, and need not: if two
//! producers report the same client, it counts as two, and each is gone by its own goodbye or by silence.

use std::hash::Hasher;

use domain::{AHEAD_MAX, AnnounceEvent, ClientId, InfoHash, Passkey, Seconds, UnixTime};
use journal::{Arrival, Rejected, TrafficEntry};
use siphasher::sip::SipHasher13;

use super::record::{ClientState, Report, Stamp};
use super::settings::Window;

/// What a client says about a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The torrent.
    pub info_hash: InfoHash,
    /// What is said, by whom and when.
    pub report: Report,
}

/// What the clients of one user say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserChanges {
    /// The user.
    pub passkey: Passkey,
    /// What is said, by torrent.
    pub changes: Vec<Change>,
    /// The positions in the batch of all entries that are in this, or older than what is.
    pub indices: Vec<usize>,
}

/// A batch, folded.
#[derive(Debug, Default)]
pub struct Folded {
    /// What there is to do.
    pub users: Vec<UserChanges>,
    /// What cannot be taken.
    pub rejected: Vec<Rejected>,
    /// Entries that are too old to change anything.
    pub too_old: u64,
    /// Entries without a passkey.
    pub without_passkey: u64,
    /// Entries that a later one of the same batch made pointless.
    pub superseded: u64,
}

/// Folds a batch.
pub fn fold(arrivals: &[Arrival], window: &Window) -> Folded {
    let mut folded = Folded::default();
    let mut news = Vec::with_capacity(arrivals.len());
    for (index, arrival) in arrivals.iter().enumerate() {
        let at = time_of(&arrival.entry, window);
        let extra_silence = window.extra_silence(arrival.entry.interval);
        match arrival.entry.passkey {
            None => folded.without_passkey += 1,
            Some(_) if window.is_past(at, extra_silence) => folded.too_old += 1,
            Some(_) if window.is_ahead(at) => {
                folded.rejected.push(Rejected { index, reason: ahead(arrival, window) });
            }
            Some(passkey) => news.push((passkey, change_of(arrival, at, extra_silence), index)),
        }
    }
    news.sort_unstable_by_key(|(passkey, change, _)| {
        (*passkey, change.info_hash, change.report.client, change.report.stamp)
    });
    for (passkey, change, index) in news {
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
    /// Adds what comes next in order; true if it takes the place of what came before.
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

/// When an entry was written: by steady time, which puts the entries of a node in order however its wall clock was set;
/// by the wall clock, where steady time does not fit, since that clock was wrong when the node started.
fn time_of(entry: &TrafficEntry, window: &Window) -> UnixTime {
    let steady = entry.steady_at();
    let is_past = window.is_past(steady, window.extra_silence(entry.interval));
    if is_past || window.is_ahead(steady) { entry.at } else { steady }
}

fn change_of(arrival: &Arrival, at: UnixTime, extra_silence: Seconds) -> Change {
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

/// What an entry says its client does (A2).
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

fn ahead(arrival: &Arrival, window: &Window) -> String {
    let (at, now) = (arrival.entry.at, window.now);
    format!(
        "ts: {at} is more than {AHEAD_MAX} ahead of this machine's clock ({now}); check the producer's clock"
    )
}
