//! Peers as the swarms receive them, and journal entries as a tracker would write them.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use anyhow::Context as _;
use domain::clock::ManualClock;
use domain::{
    Announce, AnnounceEvent, Cause, ClientId, ClientKey, Families, NodeId, RateCeiling, RunId, Seconds,
    SessionId, TrafficEvent, UnixTime,
};
use journal::{DeliveredEntry, EntryId, TrafficEntry};
use simulate::load::{FIRST_UPLOADED, Peer, Peers, ScheduledAnnounce, Shape, UPLOADED_PER_ANNOUNCE, user_of};
use swarm::{Rules, SlotLimits, Terms};

/// Start time; the value does not matter.
pub const START: UnixTime = UnixTime(1_800_000_000);
/// Entries in a batch: as many as a consumer reads at a time.
pub const BATCH: usize = 1_000;
/// The clock is ahead of the first laps and behind the last; views accept both.
const CLOCK_AHEAD: Seconds = Seconds(300);
/// Laps that views accept as neither late nor early.
const LAPS_MAX: u64 = 600;
/// Entries that share a millisecond, and so the first half of their ids.
const ENTRIES_PER_MS: u64 = 100;
/// Average peers per torrent.
const PEERS_PER_TORRENT: u32 = 10;
/// Clients per user, mostly on different torrents.
const PEERS_PER_USER: u32 = 10;
/// `numwant`, as most clients send it.
const WANTED: usize = 50;
/// Seeds the order of announces.
const SEED: u64 = 21;

pub const RULES: Rules = Rules {
    silence_max: Seconds(2_400),
    min_interval: Seconds(0),
    clients_per_user_max: 5,
    ceiling: RateCeiling::DEFAULT,
    peer_ids_per_hour_max: 30,
    credit_upload_without_leechers: true,
};

/// The address of a peer.
pub fn address_of(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | number))
}

pub fn key_of(peer: &Peer) -> ClientKey {
    ClientKey(peer.announce.key.unwrap_or(0))
}

/// A scheduled announce, and what it is granted.
pub fn announce_of(peers: &Peers, scheduled: ScheduledAnnounce, now: UnixTime) -> (Announce, Terms) {
    let peer = peers.get(scheduled.peer);
    let announce = Announce {
        passkey: Some(peer.announce.passkey),
        info_hash: peer.announce.info_hash,
        peer_id: peer.announce.peer_id,
        key: key_of(&peer),
        ip: address_of(scheduled.peer),
        port: peer.announce.port,
        uploaded: scheduled.uploaded,
        downloaded: 0,
        left: Some(peer.announce.left),
        event: scheduled.event,
        numwant: None,
        families: Families::Both,
        now,
    };
    let terms = Terms { user: peer.user, wanted: WANTED, slots: SlotLimits::default(), rules: RULES };
    (announce, terms)
}

/// The kind of announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// Heartbeats of clients that continue.
    Steady,
    /// Each client starts, completes, stops, and starts again, one event per lap.
    Changing,
}

/// The announces of a population, lap by lap: in every lap each peer announces once, in the same shuffled order, a second
/// later than in the previous lap. Everything follows from the position in this endless sequence.
#[derive(Debug)]
pub struct Traffic {
    peers: Peers,
    order: Vec<u32>,
    kind: TrafficKind,
}

impl Traffic {
    /// The announces of so many peers, ten per user.
    pub fn new(peers: u32, kind: TrafficKind) -> Self {
        let shape = Shape { torrents: (peers / PEERS_PER_TORRENT).max(1), peers };
        Traffic { peers: Peers::new(shape), order: shuffled(peers, SEED), kind }
    }

    /// How many announces a lap has.
    pub fn lap(&self) -> u64 {
        self.order.len() as u64
    }

    /// The positions of a lap.
    pub fn positions_of(&self, lap: u32) -> Range<u64> {
        let first = u64::from(lap) * self.lap();
        first..first + self.lap()
    }

    /// A clock at which views accept all laps.
    pub fn clock(&self) -> ManualClock {
        ManualClock::at(START + CLOCK_AHEAD)
    }

    /// The announce at a position.
    pub fn event(&self, position: u64) -> TrafficEvent {
        let lap = (position / self.lap()).min(LAPS_MAX);
        let peer = self.peers.get(self.order[(position % self.lap()) as usize]);
        // Neighbours share a torrent, so the clients of one user are taken from far apart.
        let users = (self.peers.count() / PEERS_PER_USER).max(1);
        let (user, passkey) = user_of(peer.number % users);
        let announce = &peer.announce;
        let (event, left) = match (self.kind, lap % 3) {
            (TrafficKind::Steady, _) if lap == 0 => (AnnounceEvent::Started, announce.left),
            (TrafficKind::Steady, _) => (AnnounceEvent::None, announce.left),
            (TrafficKind::Changing, 0) => (AnnounceEvent::Started, 1 << 30),
            (TrafficKind::Changing, 1) => (AnnounceEvent::Completed, 0),
            (TrafficKind::Changing, _) => (AnnounceEvent::Stopped, 0),
        };
        let at = START + Seconds(lap as u32);
        let client = ClientId::derive(user, &announce.info_hash, key_of(&peer), &announce.peer_id);
        TrafficEvent {
            passkey: Some(passkey),
            user,
            torrent: Some(peer.torrent),
            info_hash: announce.info_hash,
            peer_id: announce.peer_id,
            port: announce.port,
            ip: address_of(peer.number),
            uploaded_delta: UPLOADED_PER_ANNOUNCE,
            downloaded_delta: 0,
            left: Some(left),
            event,
            at,
            steady: at,
            since_last: Seconds(1_800),
            interval: Seconds(1_800),
            min_interval: Seconds(900),
            node: NodeId(0x0123_4567_89ab_cdef),
            session: SessionId { client, run: RunId(1) },
            uploaded_total: FIRST_UPLOADED + lap * UPLOADED_PER_ANNOUNCE,
            downloaded_total: 0,
            cause: Cause::Announce,
            key: key_of(&peer),
            uncredited_upload: 0,
        }
    }

    pub fn events(&self, positions: Range<u64>) -> Vec<TrafficEvent> {
        positions.map(|position| self.event(position)).collect()
    }

    /// The same as entries that a view receives: encoded and decoded.
    pub fn arrivals(&self, positions: Range<u64>) -> anyhow::Result<Vec<DeliveredEntry>> {
        let arrival = |position| {
            let fields = TrafficEntry::fields_of(&self.event(position));
            let entry = TrafficEntry::parse(&fields).context("an entry of our own")?;
            let ms = u64::from(START.0) * 1_000 + position / ENTRIES_PER_MS;
            let id = EntryId { ms, seq: position % ENTRIES_PER_MS };
            Ok(DeliveredEntry { id, origin: id, entry })
        };
        positions.map(arrival).collect()
    }
}

/// The numbers below `count`, in an order that follows from the seed.
pub fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_announces_once_a_lap_and_later_in_the_next() {
        let traffic = Traffic::new(50, TrafficKind::Steady);
        let (first, second) = (traffic.arrivals(0..50).unwrap(), traffic.arrivals(50..100).unwrap());
        let users: std::collections::BTreeSet<_> = first.iter().map(|arrival| arrival.entry.user).collect();
        assert_eq!(users.len(), 5);
        for (earlier, later) in first.iter().zip(&second) {
            assert_eq!(earlier.entry.user, later.entry.user);
            assert!(earlier.entry.at < later.entry.at && earlier.id < later.id);
        }
    }

    #[test]
    fn who_changes_does_so_every_lap() {
        let traffic = Traffic::new(10, TrafficKind::Changing);
        let events: Vec<_> = (0..4).map(|lap| traffic.event(lap * 10).event).collect();
        use AnnounceEvent::{Completed, Started, Stopped};
        assert_eq!(events, [Started, Completed, Stopped, Started]);
    }
}
