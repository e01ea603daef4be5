//! What a tracker would write to the journal: the announces of a population, lap by lap.
//!
//! In every lap each peer announces once, in the same shuffled order, a second later than in the lap before, so that
//! each of its announces is news. Everything follows from the position in this endless sequence.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use domain::clock::ManualClock;
use domain::{AnnounceEvent, Cause, ClientId, NodeId, RunId, Seconds, SessionId, TrafficEvent, UnixTime};
use journal::{Arrival, EntryId, TrafficEntry};

use crate::error::LoadError;
use crate::population::{self, Population, Shape};

/// When the first lap is. Any moment would do.
const START: UnixTime = UnixTime(1_800_000_000);
/// The clock is ahead of the first laps and behind the last; views take both.
const CLOCK_AHEAD: Seconds = Seconds(300);
/// How many laps views take without calling an entry late or early.
const LAPS_MAX: u64 = 600;
/// Upload counters begin here, so that they have ten digits throughout a run.
const FIRST_UPLOADED: u64 = 1_000_000_000;
/// How much a peer uploads between two announces: one piece of a small torrent.
const UPLOADED_PER_LAP: u64 = 16_384;
/// Entries that share a millisecond, and so the first half of their ids.
const ENTRIES_PER_MS: u64 = 100;
/// How many peers share a torrent, on average.
const PEERS_PER_TORRENT: u32 = 10;
/// How many clients a user runs, mostly on different torrents; those of private sites run more.
const PEERS_PER_USER: u32 = 10;
/// Seeds the order of announces.
const SEED: u64 = 21;

/// What announces are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// All are heartbeats of clients that go on as they did.
    Steady,
    /// Each client does something else than in the lap before: it starts, completes, stops, and starts again.
    Changing,
}

/// The endless sequence.
#[derive(Debug)]
pub struct Traffic {
    population: Population,
    order: Vec<u32>,
    mood: Mood,
}

impl Traffic {
    /// The announces of so many peers, ten of each user.
    pub fn new(peers: u32, mood: Mood) -> Self {
        let shape = Shape { torrents: (peers / PEERS_PER_TORRENT).max(1), peers };
        let mut order: Vec<u32> = (0..peers).collect();
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        Traffic { population: Population::new(shape), order, mood }
    }

    /// How many announces a lap has.
    pub fn lap(&self) -> u64 {
        self.order.len() as u64
    }

    /// A clock at which views take all laps there can be.
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
        let (event, left) = match (self.mood, lap % 3) {
            (Mood::Steady, _) if lap == 0 => (AnnounceEvent::Started, peer.left),
            (Mood::Steady, _) => (AnnounceEvent::None, peer.left),
            (Mood::Changing, 0) => (AnnounceEvent::Started, 1 << 30),
            (Mood::Changing, 1) => (AnnounceEvent::Completed, 0),
            (Mood::Changing, _) => (AnnounceEvent::Stopped, 0),
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

    /// The same as entries on their way into a view: written, read and understood.
    pub fn arrivals(&self, positions: Range<u64>) -> Result<Vec<Arrival>, LoadError> {
        positions.map(|position| self.arrival(position)).collect()
    }

    fn arrival(&self, position: u64) -> Result<Arrival, LoadError> {
        let fields = TrafficEntry::fields_of(&self.event(position));
        let entry = TrafficEntry::parse(&fields).map_err(|error| LoadError::Unreadable {
            what: "an entry of our own".to_owned(),
            why: error.to_string(),
        })?;
        let ms = u64::from(START.0) * 1_000 + position / ENTRIES_PER_MS;
        let id = EntryId { ms, seq: position % ENTRIES_PER_MS };
        Ok(Arrival { id, origin: id, entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_announces_once_a_lap_and_later_in_the_next() {
        let traffic = Traffic::new(50, Mood::Steady);
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
        let traffic = Traffic::new(10, Mood::Changing);
        let events: Vec<_> = (0..4).map(|lap| traffic.event(lap * 10).event).collect();
        use AnnounceEvent::{Completed, Started, Stopped};
        assert_eq!(events, [Started, Completed, Stopped, Started]);
    }
}
