//! Journal entries as a tracker would write them: the announces of a population, lap by lap.
//!
//! In every lap each peer announces once, in the same shuffled order, a second later than in the previous lap.
//! Everything follows from the position in this endless sequence.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use domain::clock::ManualClock;
use domain::{AnnounceEvent, Cause, ClientId, NodeId, RunId, Seconds, SessionId, TrafficEvent, UnixTime};
use journal::{DeliveredEntry, EntryId, TrafficEntry};

use crate::error::BenchError;
use crate::population::{self, Population, Shape};

/// Time of the first lap; the value does not matter.
const START: UnixTime = UnixTime(1_800_000_000);
/// The clock is ahead of the first laps and behind the last; views accept both.
const CLOCK_AHEAD: Seconds = Seconds(300);
/// Laps that views accept as neither late nor early.
const LAPS_MAX: u64 = 600;
/// Upload counters start here, so that they have ten digits throughout a run.
const FIRST_UPLOADED: u64 = 1_000_000_000;
/// Upload between two announces: one piece of a small torrent.
const UPLOADED_PER_LAP: u64 = 16_384;
/// Entries that share a millisecond, and so the first half of their ids.
const ENTRIES_PER_MS: u64 = 100;
/// Average peers per torrent.
const PEERS_PER_TORRENT: u32 = 10;
/// Clients per user, mostly on different torrents.
const PEERS_PER_USER: u32 = 10;
/// Seeds the order of announces.
const SEED: u64 = 21;

/// The kind of announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// Heartbeats of clients that continue.
    Steady,
    /// Each client starts, completes, stops, and starts again, one event per lap.
    Changing,
}

#[derive(Debug)]
pub struct Traffic {
    population: Population,
    order: Vec<u32>,
    kind: TrafficKind,
}

impl Traffic {
    /// The announces of so many peers, ten per user.
    pub fn new(peers: u32, kind: TrafficKind) -> Self {
        let shape = Shape { torrents: (peers / PEERS_PER_TORRENT).max(1), peers };
        let mut order: Vec<u32> = (0..peers).collect();
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        Traffic { population: Population::new(shape), order, kind }
    }

    /// How many announces a lap has.
    pub fn lap(&self) -> u64 {
        self.order.len() as u64
    }

    /// A clock at which views accept all laps.
    pub fn clock(&self) -> ManualClock {
        ManualClock::at(START + CLOCK_AHEAD)
    }

    /// The announce at a position.
    pub fn event(&self, position: u64) -> TrafficEvent {
        let lap = (position / self.lap()).min(LAPS_MAX);
        let peer = self.population.peer(self.order[(position % self.lap()) as usize]);
        // Neighbours share a torrent, so the clients of one user are taken from far apart.
        let users = (self.population.peers() / PEERS_PER_USER).max(1);
        let user = population::user_id(peer.number % users);
        let (event, left) = match (self.kind, lap % 3) {
            (TrafficKind::Steady, _) if lap == 0 => (AnnounceEvent::Started, peer.left),
            (TrafficKind::Steady, _) => (AnnounceEvent::None, peer.left),
            (TrafficKind::Changing, 0) => (AnnounceEvent::Started, 1 << 30),
            (TrafficKind::Changing, 1) => (AnnounceEvent::Completed, 0),
            (TrafficKind::Changing, _) => (AnnounceEvent::Stopped, 0),
        };
        TrafficEvent {
            passkey: Some(population::passkey(peer.number % users)),
            user,
            torrent: Some(peer.torrent_id),
            info_hash: peer.info_hash,
            peer_id: peer.peer_id,
            port: peer.port,
            ip: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | peer.number)),
            uploaded_delta: UPLOADED_PER_LAP,
            downloaded_delta: 0,
            left: Some(left),
            event,
            at: START + Seconds(lap as u32),
            steady: START + Seconds(lap as u32),
            since_last: Seconds(1_800),
            interval: Seconds(1_800),
            min_interval: Seconds(900),
            node: NodeId(0x0123_4567_89ab_cdef),
            session: SessionId {
                client: ClientId::derive(user, &peer.info_hash, peer.key, &peer.peer_id),
                run: RunId(1),
            },
            uploaded_total: FIRST_UPLOADED + lap * UPLOADED_PER_LAP,
            downloaded_total: 0,
            cause: Cause::Announce,
            key: peer.key,
            uncredited_upload: 0,
        }
    }

    /// The announces at these positions.
    pub fn events(&self, positions: Range<u64>) -> Vec<TrafficEvent> {
        positions.map(|position| self.event(position)).collect()
    }

    /// The same as entries that a view receives: encoded and decoded.
    pub fn arrivals(&self, positions: Range<u64>) -> Result<Vec<DeliveredEntry>, BenchError> {
        positions.map(|position| self.arrival(position)).collect()
    }

    fn arrival(&self, position: u64) -> Result<DeliveredEntry, BenchError> {
        let fields = TrafficEntry::fields_of(&self.event(position));
        let entry = TrafficEntry::parse(&fields).map_err(|error| BenchError::Unreadable {
            what: "an entry of our own".to_owned(),
            why: error.to_string(),
        })?;
        let ms = u64::from(START.0) * 1_000 + position / ENTRIES_PER_MS;
        let id = EntryId { ms, seq: position % ENTRIES_PER_MS };
        Ok(DeliveredEntry { id, origin: id, entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_announces_once_a_lap_and_later_in_the_next() {
        let traffic = Traffic::new(50, TrafficKind::Steady);
        let first = traffic.arrivals(0..50).unwrap();
        let second = traffic.arrivals(50..100).unwrap();
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
