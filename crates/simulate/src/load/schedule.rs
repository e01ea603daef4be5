//! The sequence of announces: peer, event and counters.
//!
//! A schedule visits all peers in a shuffled order, repeatedly. Nearly all announces are heartbeats with a larger
//! upload counter; sometimes a peer stops, and starts again at its next announce. Order and events follow from the seed, so
//! two servers can receive the same sequence.

use domain::AnnounceEvent;

/// `stopped` per thousand announces of an active peer.
const STOPS_PER_MILLE: u32 = 10;

/// Upload counters start here, so that they have ten digits throughout a run.
pub const FIRST_UPLOADED: u64 = 1_000_000_000;
/// Upload between two announces: one piece of a small torrent.
pub const UPLOADED_PER_ANNOUNCE: u64 = 16_384;

/// One announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledAnnounce {
    pub peer: u32,
    /// Running total.
    pub uploaded: u64,
    pub event: AnnounceEvent,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    order: Vec<u32>,
    position: usize,
    peers: Vec<PeerState>,
    stops_per_mille: u32,
    random: fastrand::Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct PeerState {
    announces: u32,
    active: bool,
}

impl Schedule {
    /// For peers 0 to `peers`, none of which has announced.
    pub fn new(peers: u32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..peers).collect();
        random.shuffle(&mut order);
        let peers = vec![PeerState::default(); peers as usize];
        Schedule { order, position: 0, peers, stops_per_mille: STOPS_PER_MILLE, random }
    }

    /// No peer stops: whatever its accepted announces claim is credited.
    pub fn without_stops(self) -> Self {
        Schedule { stops_per_mille: 0, ..self }
    }

    /// Announces until every peer has announced once.
    pub fn announces_until_all_started(&self) -> u64 {
        self.order.len() as u64
    }

    /// Never ends.
    pub fn next_announce(&mut self) -> ScheduledAnnounce {
        let peer = self.order[self.position];
        self.position = (self.position + 1) % self.order.len();
        let stops = self.random.u32(0..1000) < self.stops_per_mille;
        let state = &mut self.peers[peer as usize];
        let event = match (state.active, stops) {
            (false, _) => AnnounceEvent::Started,
            (true, true) => AnnounceEvent::Stopped,
            (true, false) => AnnounceEvent::None,
        };
        state.active = event != AnnounceEvent::Stopped;
        state.announces += 1;
        let uploaded = FIRST_UPLOADED + u64::from(state.announces) * UPLOADED_PER_ANNOUNCE;
        ScheduledAnnounce { peer, uploaded, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_starts_then_nearly_all_are_heartbeats_with_growing_counters() {
        let mut schedule = Schedule::new(1_000, 7);
        let mut uploaded = vec![0; 1_000];
        for _ in 0..schedule.announces_until_all_started() {
            let scheduled = schedule.next_announce();
            assert_eq!(scheduled.event, AnnounceEvent::Started);
            uploaded[scheduled.peer as usize] = scheduled.uploaded;
        }
        assert!(uploaded.iter().all(|total| *total > 0), "every peer has announced");
        let mut heartbeats = 0;
        for _ in 0..50_000 {
            let scheduled = schedule.next_announce();
            assert!(scheduled.uploaded > uploaded[scheduled.peer as usize]);
            uploaded[scheduled.peer as usize] = scheduled.uploaded;
            heartbeats += u32::from(scheduled.event == AnnounceEvent::None);
        }
        assert!((47_000..50_000).contains(&heartbeats), "{heartbeats} heartbeats of 50,000");
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let (mut one, mut other) = (Schedule::new(100, 3), Schedule::new(100, 3));
        for _ in 0..1_000 {
            assert_eq!(one.next_announce(), other.next_announce());
        }
    }
}
