//! What changed since it was last written: the newest announce of each client and account, and the entries for whose users,
//! torrents and accounts the ledger has to be compared.
//!
//! # Guarantees
//!
//! - Entries may come in any order and more than once: the later one (`ts`, origin) wins.
//! - Bounded: beyond [`STAGED_MAX`] rows everything is dropped and the stage closes. It is opened again before a comparison of
//!   everything.
//! - A closed stage takes nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::IpAddr;

use domain::{AnnounceEvent, Cause, PeerId, TorrentId, UnixTime, UserId};
use journal::{DeliveredEntry, EntryId, Lane, TrafficEntry};
use ledger::{AccountKey, Directory};
use parking_lot::Mutex;

/// Users, torrents, accounts and clients together, about 150 bytes each.
pub const STAGED_MAX: usize = 2_000_000;

/// The entries for which a row has to be compared: all between these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: EntryId,
    pub last: EntryId,
}

impl Span {
    fn extend(&mut self, other: Span) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey {
    pub account: AccountKey,
    pub peer_id: PeerId,
}

/// What the latest announce of a client contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// When it was written, in steady time, and where: the order of entries.
    pub stamp: (UnixTime, EntryId),
    pub at: UnixTime,
    pub peer_id: PeerId,
    pub ip: IpAddr,
    pub port: u16,
    pub left: Option<u64>,
    pub is_complete: bool,
    /// Running totals of the client: uploaded, downloaded.
    pub totals: Option<(u64, u64)>,
    /// Why the client is gone; none if it is present.
    pub gone: Option<&'static str>,
    /// The addresses of the other family, if it announced from there.
    pub other_ip: Option<IpAddr>,
}

impl Announced {
    fn of(arrival: &DeliveredEntry) -> Announced {
        let TrafficEntry { at, peer_id, ip, port, left, event, cause, .. } = arrival.entry;
        let gone = match (event, cause) {
            (AnnounceEvent::Stopped, Cause::Announce) => Some("stopped"),
            (_, Cause::Announce) => None,
            (_, cause) => Some(cause.name()),
        };
        Announced {
            stamp: (arrival.entry.steady_at(), arrival.origin),
            at,
            peer_id,
            ip,
            port,
            left,
            is_complete: arrival.entry.is_complete(),
            totals: arrival.entry.totals.map(|totals| (totals.uploaded, totals.downloaded)),
            gone,
            other_ip: None,
        }
    }

    /// Of two announces of one client.
    fn merge(self, other: Announced) -> Announced {
        let (later, earlier) = if other.stamp >= self.stamp { (other, self) } else { (self, other) };
        let mut earlier_ips = [Some(earlier.ip), earlier.other_ip].into_iter().flatten();
        let other_family = earlier_ips.find(|ip| ip.is_ipv4() != later.ip.is_ipv4());
        Announced { other_ip: later.other_ip.or(other_family), ..later }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedAccount {
    pub span: Span,
    /// None for a comparison.
    pub latest: Option<Announced>,
}

impl StagedAccount {
    fn extend(&mut self, added: StagedAccount) {
        self.span.extend(added.span);
        self.latest = match (self.latest, added.latest) {
            // Of different clients too: the account has one address and program.
            (Some(one), Some(two)) => Some(if two.stamp >= one.stamp { two } else { one }),
            (one, two) => one.or(two),
        };
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    pub users: HashMap<UserId, Span>,
    pub torrents: HashMap<TorrentId, Span>,
    pub accounts: HashMap<AccountKey, StagedAccount>,
    pub peers: HashMap<PeerKey, Announced>,
}

impl Staged {
    pub fn len(&self) -> usize {
        self.users.len() + self.torrents.len() + self.accounts.len() + self.peers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&mut self, key: AccountKey, arrival: &DeliveredEntry) {
        // The id of a dead letter is in another lane: the ledger applies it when it may.
        let span = Span { first: arrival.origin, last: arrival.origin };
        let announced = Announced::of(arrival);
        let peer = PeerKey { account: key, peer_id: announced.peer_id };
        join(&mut self.users, key.user, span, Span::extend);
        join(&mut self.torrents, key.torrent, span, Span::extend);
        join(&mut self.accounts, key, StagedAccount { span, latest: Some(announced) }, StagedAccount::extend);
        join(&mut self.peers, peer, announced, |known, added| *known = known.merge(added));
    }

    pub fn merge(&mut self, other: Staged) {
        let Staged { users, torrents, accounts, peers } = other;
        users.into_iter().for_each(|(key, span)| join(&mut self.users, key, span, Span::extend));
        torrents.into_iter().for_each(|(key, span)| join(&mut self.torrents, key, span, Span::extend));
        accounts
            .into_iter()
            .for_each(|(key, added)| join(&mut self.accounts, key, added, StagedAccount::extend));
        peers.into_iter().for_each(|(key, added)| {
            join(&mut self.peers, key, added, |known, added| *known = known.merge(added));
        });
    }
}

fn join<K: Eq + Hash, V>(known: &mut HashMap<K, V>, key: K, added: V, extend: impl Fn(&mut V, V)) {
    match known.entry(key) {
        Entry::Occupied(mut present) => extend(present.get_mut(), added),
        Entry::Vacant(place) => {
            place.insert(added);
        }
    }
}

/// What was taken to be written.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub staged: Staged,
    /// Everything up to this entry is in what was ever taken.
    pub position: EntryId,
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    /// Whether it takes what the view is delivered.
    is_following: bool,
    has_overflowed: bool,
    staged: Staged,
    position: EntryId,
    /// Taken, and not put back yet.
    is_taken: bool,
}

#[derive(Debug)]
pub struct Stage {
    state: Mutex<State>,
    staged_max: usize,
}

impl Default for Stage {
    fn default() -> Self {
        Stage { state: Mutex::default(), staged_max: STAGED_MAX }
    }
}

impl Stage {
    /// With another bound, for tests.
    pub fn with_bound(staged_max: usize) -> Stage {
        Stage { staged_max, ..Stage::default() }
    }

    /// Opens it for what the writer reads again from the journal.
    pub fn open(&self) {
        *self.state.lock() = State { is_open: true, ..State::default() };
    }

    /// From now on it also takes what the view is delivered.
    pub fn follow(&self) {
        let mut state = self.state.lock();
        state.is_following = state.is_open;
    }

    /// Whether it has missed nothing since it was opened.
    pub fn is_following(&self) -> bool {
        self.state.lock().is_following
    }

    /// Whether half of its room is taken.
    pub fn is_half_full(&self) -> bool {
        self.len() > self.staged_max / 2
    }

    pub fn close(&self) {
        *self.state.lock() = State::default();
    }

    pub fn is_open(&self) -> bool {
        self.state.lock().is_open
    }

    pub fn len(&self) -> usize {
        self.state.lock().staged.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it closed because it was full. True once.
    pub fn take_overflow(&self) -> bool {
        std::mem::take(&mut self.state.lock().has_overflowed)
    }

    /// What the view is delivered.
    pub fn add_delivered(&self, arrivals: &[DeliveredEntry], directory: &dyn Directory) {
        if self.is_following() {
            self.add(arrivals, directory);
        }
    }

    /// Entries without a known user or torrent are left out.
    pub fn add(&self, arrivals: &[DeliveredEntry], directory: &dyn Directory) {
        let mut state = self.state.lock();
        if !state.is_open {
            return;
        }
        for arrival in arrivals {
            state.position = state.position.max(arrival.origin);
            let entry = &arrival.entry;
            let user = entry.user.or_else(|| directory.user_of(entry.passkey.as_ref()?));
            let torrent = entry.torrent.or_else(|| directory.torrent_of(&entry.info_hash));
            if let (Some(user), Some(torrent)) = (user, torrent) {
                state.staged.add(AccountKey { user, torrent }, arrival);
            }
        }
        self.check_bound(&mut state);
    }

    /// Takes everything. None if the stage is closed, or if what was taken before was never put back: a writer that was stopped
    /// in between must not pass it over.
    pub fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        if !state.is_open || state.is_taken {
            return None;
        }
        state.is_taken = !state.staged.is_empty();
        Some(Taken { staged: std::mem::take(&mut state.staged), position: state.position })
    }

    /// Puts back what was not written, after everything else was.
    pub fn put_back(&self, staged: Staged) {
        let mut state = self.state.lock();
        if state.is_open {
            state.is_taken = false;
            state.staged.merge(staged);
            self.check_bound(&mut state);
        }
    }

    fn check_bound(&self, state: &mut State) {
        if state.staged.len() > self.staged_max {
            *state = State { has_overflowed: true, ..State::default() };
        }
    }
}

/// The traffic lane, whose ids the spans are.
pub(crate) const LANE: Lane = Lane::Traffic;
