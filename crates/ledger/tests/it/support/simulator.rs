//! Clients with known totals, announcing to trackers that lose state: entries, and the expected sums.
//!
//! Each client moves bytes, restarts (its counters begin at zero), changes its peer id, announces over both address
//! families, and loses heartbeats; nodes restart and lose their state, and report timeouts. Some clients use any node,
//! with replication between the nodes; some stay with one node, or always announce to both. The expected credit is
//! computed along the way by the rule for entries in order: growth of counters counts, counters that went back count
//! nothing. Other producers write entries with the fourteen fields only.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, PeerId, RunId, Seconds, SessionId,
    TorrentId, UnixTime, UserId,
};
use journal::{DeliveredEntry, EntryId, Totals, TrafficEntry};

/// Start of every history.
pub const BEGIN: u32 = 1_794_000_000;
/// Maximum length of a history.
pub const SPAN_MAX: u32 = 20 * 24 * 60 * 60;

#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes that receive announces: one or two.
    pub nodes: u8,
    pub users: u64,
    pub torrents: u64,
    pub clients_per_account: u64,
    pub announces_per_client: u32,
}

/// A history and its expected sums.
#[derive(Debug)]
pub struct World {
    /// In the order of their ids.
    pub arrivals: Vec<DeliveredEntry>,
    /// Bytes uploaded and downloaded, for each user on each torrent.
    pub credited: BTreeMap<(u64, u64), (u128, u128)>,
}

impl World {
    /// Bytes uploaded and downloaded by a user.
    pub fn credited_to_user(&self, user: u64) -> (u128, u128) {
        let own = self.credited.iter().filter(|((owner, _), _)| *owner == user);
        own.fold((0, 0), |sum, (_, moved)| (sum.0 + moved.0, sum.1 + moved.1))
    }
}

pub fn user(number: u64) -> UserId {
    UserId::new(number).expect("users are numbered from one")
}

pub fn torrent(number: u64) -> TorrentId {
    TorrentId::new(number).expect("torrents are numbered from one")
}

pub fn info_hash(torrent: u64) -> InfoHash {
    let mut bytes = [7; 20];
    bytes[..8].copy_from_slice(&torrent.to_be_bytes());
    InfoHash(bytes)
}

/// Numbers entries as a journal would: a few in each millisecond.
pub fn arrivals_of(mut entries: Vec<TrafficEntry>) -> Vec<DeliveredEntry> {
    entries.sort_by_key(|entry| entry.at);
    let numbered = entries.into_iter().enumerate().map(|(position, entry)| {
        let id = EntryId { ms: u64::from(entry.at.0) * 1000, seq: position as u64 };
        DeliveredEntry { id, origin: id, entry }
    });
    numbered.collect()
}

pub fn simulate(seed: u64, size: Size) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut entries = Vec::new();
    let mut credited = BTreeMap::new();
    let mut trackers = [Tracker::new(1), Tracker::new(2)];
    for owner in 1..=size.users {
        for on in 1..=size.torrents {
            let sum: &mut (u128, u128) = credited.entry((owner, on)).or_default();
            for _ in 0..random.u64(1..=size.clients_per_account) {
                let moved = if random.u8(0..4) == 0 {
                    let mut client = Foreign { random: &mut random, user: owner, torrent: on };
                    client.live(size.announces_per_client, &mut entries)
                } else {
                    let mut client = Life::begin(&mut random, owner, on, size.nodes);
                    client.live(size.announces_per_client, &mut trackers, &mut entries)
                };
                *sum = (sum.0 + moved.0, sum.1 + moved.1);
            }
        }
    }
    World { arrivals: arrivals_of(entries), credited }
}

/// A node drops a client that was silent for longer.
const SILENCE_MAX: u32 = 2400;

/// A node's state of a client.
#[derive(Clone, Copy)]
struct Known {
    run: RunId,
    uploaded: u64,
    downloaded: u64,
    last: u32,
}

struct Tracker {
    place: u32,
    lives: u32,
    node: NodeId,
    next_run: u32,
    known: HashMap<ClientId, Known>,
}

impl Tracker {
    fn new(place: u32) -> Tracker {
        Tracker::living(place, 0)
    }

    fn living(place: u32, lives: u32) -> Tracker {
        let node = NodeId::starting(UnixTime(BEGIN + lives), &place.to_string(), 0);
        let next_run = (place + 100 * lives) * 100_000;
        Tracker { place, lives, node, next_run, known: HashMap::new() }
    }

    /// Restarts as another process, without state.
    fn restart(&mut self) {
        *self = Tracker::living(self.place, self.lives + 1);
    }

    fn take(
        &mut self,
        client: ClientId,
        mut entry: TrafficEntry,
        uploaded: u64,
        downloaded: u64,
    ) -> TrafficEntry {
        let known = self.known.get(&client).copied().filter(|known| entry.at.0 - known.last <= SILENCE_MAX);
        let goes_on = known.filter(|known| uploaded >= known.uploaded && downloaded >= known.downloaded);
        let run = goes_on.map_or_else(
            || {
                self.next_run += 1;
                RunId(self.next_run)
            },
            |known| known.run,
        );
        entry.uploaded_delta = goes_on.map_or(0, |known| uploaded - known.uploaded);
        entry.downloaded_delta = goes_on.map_or(0, |known| downloaded - known.downloaded);
        entry.since_last = Some(Seconds(known.map_or(0, |known| entry.at.0 - known.last)));
        entry.node = Some(self.node);
        entry.totals = Some(Totals { session: SessionId { client, run }, uploaded, downloaded });
        if entry.event == AnnounceEvent::Stopped {
            self.known.remove(&client);
        } else {
            self.known.insert(client, Known { run, uploaded, downloaded, last: entry.at.0 });
        }
        entry
    }

    /// Applies the state of the other node.
    fn replicate(&mut self, client: ClientId, known: Option<Known>) {
        match known {
            Some(known) => self.known.insert(client, known),
            None => self.known.remove(&client),
        };
    }

    /// Reports a timeout.
    fn expire(&mut self, client: ClientId, entry: &TrafficEntry) -> Option<TrafficEntry> {
        let known = self.known.remove(&client)?;
        let session = SessionId { client, run: known.run };
        Some(TrafficEntry {
            event: AnnounceEvent::Stopped,
            cause: Cause::Timeout,
            at: UnixTime(known.last + SILENCE_MAX),
            since_last: Some(Seconds(SILENCE_MAX)),
            uploaded_delta: 0,
            downloaded_delta: 0,
            node: Some(self.node),
            totals: Some(Totals { session, uploaded: known.uploaded, downloaded: known.downloaded }),
            ..*entry
        })
    }
}

/// The nodes that a client announces to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// Any node; they are replicated.
    Any,
    /// One node, until it has been silent for long.
    One,
    /// Always both, without replication.
    Both,
}

/// One client of ours from its first announce to its last.
struct Life<'a> {
    habit: Habit,
    random: &'a mut fastrand::Rng,
    user: u64,
    torrent: u64,
    key: ClientKey,
    peer_id: PeerId,
    at: u32,
    uploaded: u64,
    downloaded: u64,
    last_reported: Option<(u64, u64)>,
    credited: (u128, u128),
}

impl<'a> Life<'a> {
    fn begin(random: &'a mut fastrand::Rng, user: u64, torrent: u64, nodes: u8) -> Life<'a> {
        let key = ClientKey(random.u32(1..));
        let at = BEGIN + random.u32(0..3600);
        let peer_id = peer_id(random);
        let habits = [Habit::One, Habit::Any, Habit::Both];
        let habit = habits[random.usize(0..if nodes > 1 { habits.len() } else { 1 })];
        Life {
            habit,
            random,
            user,
            torrent,
            key,
            peer_id,
            at,
            uploaded: 0,
            downloaded: 0,
            last_reported: None,
            credited: (0, 0),
        }
    }

    fn live(
        &mut self,
        announces: u32,
        trackers: &mut [Tracker; 2],
        out: &mut Vec<TrafficEntry>,
    ) -> (u128, u128) {
        let mut home = self.random.usize(0..2);
        let mut event = AnnounceEvent::Started;
        for _ in 0..announces {
            let is_lost = event == AnnounceEvent::None && self.random.u8(0..10) == 0;
            if !is_lost {
                self.announce(event, home, trackers, out);
            }
            event = AnnounceEvent::None;
            self.at += self.random.u32(10..1800);
            self.uploaded += self.random.u64(0..5_000_000_000);
            self.downloaded += self.random.u64(0..1_000_000);
            match self.random.u8(0..16) {
                0 => event = self.restart(home, trackers, out),
                1 => self.peer_id = peer_id(self.random),
                2 => trackers[home].restart(),
                3 if self.habit == Habit::Any => home = 1 - home,
                4 => event = AnnounceEvent::Completed,
                5 => self.vanish(home, trackers, out),
                _ => {}
            }
        }
        self.credited
    }

    /// Announces to its node, sometimes to both, sometimes over both address families.
    fn announce(
        &mut self,
        event: AnnounceEvent,
        home: usize,
        trackers: &mut [Tracker; 2],
        out: &mut Vec<TrafficEntry>,
    ) {
        let entry = self.entry(event);
        let client = self.client();
        out.push(trackers[home].take(client, entry, self.uploaded, self.downloaded));
        if event != AnnounceEvent::Stopped && self.random.u8(0..4) == 0 {
            let again = TrafficEntry { event: AnnounceEvent::None, ..entry };
            out.push(trackers[home].take(client, again, self.uploaded, self.downloaded));
        }
        let is_heard_by_both = match self.habit {
            Habit::Any => self.random.u8(0..3) == 0,
            Habit::One => false,
            Habit::Both => true,
        };
        if is_heard_by_both {
            let elsewhere = TrafficEntry { at: UnixTime(self.at + self.random.u32(0..2)), ..entry };
            out.push(trackers[1 - home].take(client, elsewhere, self.uploaded, self.downloaded));
        }
        if self.habit == Habit::Any {
            let entry = trackers[home].known.get(&client).copied();
            trackers[1 - home].replicate(client, entry);
        }
        self.count();
    }

    fn count(&mut self) {
        if let Some((uploaded, downloaded)) = self.last_reported
            && self.uploaded >= uploaded
            && self.downloaded >= downloaded
        {
            self.credited.0 += u128::from(self.uploaded - uploaded);
            self.credited.1 += u128::from(self.downloaded - downloaded);
        }
        self.last_reported = Some((self.uploaded, self.downloaded));
    }

    /// Restarts, with or without a `stopped`.
    fn restart(
        &mut self,
        home: usize,
        trackers: &mut [Tracker; 2],
        out: &mut Vec<TrafficEntry>,
    ) -> AnnounceEvent {
        if self.random.bool() {
            self.announce(AnnounceEvent::Stopped, home, trackers, out);
        }
        self.at += self.random.u32(5..4000);
        (self.uploaded, self.downloaded) = (0, 0);
        AnnounceEvent::Started
    }

    /// Silent for so long that a node reports a timeout.
    fn vanish(&mut self, home: usize, trackers: &mut [Tracker; 2], out: &mut Vec<TrafficEntry>) {
        let entry = self.entry(AnnounceEvent::Stopped);
        if let Some(gone) = trackers[home].expire(self.client(), &entry) {
            // What a node receives afterwards, it writes afterwards.
            self.at = self.at.max(gone.at.0 + 1);
            out.push(gone);
        }
        self.at += self.random.u32(0..5000);
    }

    fn client(&self) -> ClientId {
        ClientId::derive(user(self.user), &info_hash(self.torrent), self.key, &self.peer_id)
    }

    fn entry(&self, event: AnnounceEvent) -> TrafficEntry {
        let left = if self.downloaded > 20_000_000 { 0 } else { 20_000_001 - self.downloaded };
        entry(self.user, self.torrent, self.peer_id, UnixTime(self.at), event, left)
    }
}

/// A client of another producer.
struct Foreign<'a> {
    random: &'a mut fastrand::Rng,
    user: u64,
    torrent: u64,
}

impl Foreign<'_> {
    fn live(&mut self, announces: u32, out: &mut Vec<TrafficEntry>) -> (u128, u128) {
        let mut credited = (0, 0);
        let mut at = BEGIN + self.random.u32(0..3600);
        let peer_id = peer_id(self.random);
        for number in 0..announces {
            let event = match self.random.u8(0..12) {
                0 => AnnounceEvent::Completed,
                1 => AnnounceEvent::Stopped,
                _ => AnnounceEvent::None,
            };
            let left = u64::from(number < announces / 2);
            let mut entry = entry(self.user, self.torrent, peer_id, UnixTime(at), event, left);
            entry.uploaded_delta = self.random.u64(0..1_000_000_000);
            entry.downloaded_delta = self.random.u64(0..1_000_000_000);
            entry.since_last = self.random.bool().then(|| Seconds(self.random.u32(0..3600)));
            credited.0 += u128::from(entry.uploaded_delta);
            credited.1 += u128::from(entry.downloaded_delta);
            out.push(entry);
            at += self.random.u32(1..3600);
        }
        credited
    }
}

fn peer_id(random: &mut fastrand::Rng) -> PeerId {
    let mut bytes = *b"-TR3000-............";
    bytes[8..].fill_with(|| random.u8(..));
    PeerId(bytes)
}

/// An entry without totals, with user and torrent id.
pub fn entry(
    owner: u64,
    on: u64,
    peer_id: PeerId,
    at: UnixTime,
    event: AnnounceEvent,
    left: u64,
) -> TrafficEntry {
    TrafficEntry {
        passkey: None,
        info_hash: info_hash(on),
        peer_id,
        port: 6881,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        uploaded_delta: 0,
        downloaded_delta: 0,
        left: Some(left),
        event,
        at,
        since_last: None,
        interval: Seconds(1800),
        min_interval: Seconds(900),
        user: Some(user(owner)),
        torrent: Some(torrent(on)),
        node: None,
        totals: None,
        cause: Cause::Announce,
        key: None,
        uncredited_upload: 0,
        steady: None,
    }
}
