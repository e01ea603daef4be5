//! Who said goodbye lately, so that a word that comes late from another node does not bring them back.
//!
//! Entries of several nodes overtake each other: a client announces to one, says goodbye to another, and the goodbye is
//! remote first. Without a memory of it, the announce would make a ghost that stays for interval + grace.
//!
//! # Guarantees
//!
//! Fixed in size, and nothing is allocated after the first goodbye. Where a set is full, the oldest goodbye is
//! evicted, and counted.

use domain::UnixTime;

/// Goodbyes that share a set.
const WAYS: usize = 4;
/// Sets of a shard: 1024 goodbyes, 8 KiB.
const SETS: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct RecentStop {
    /// The low half of the client's hash, of which the other half chose the set: two clients share both of them once
    /// in a trillion, and then only a late word on one of them is lost until the next.
    client: u32,
    at: UnixTime,
}

/// The latest goodbyes of a shard, by a hash of the client.
#[derive(Debug, Default)]
pub(crate) struct RecentStops {
    sets: Vec<[RecentStop; WAYS]>,
    evicted: u64,
}

impl RecentStops {
    /// Notes a goodbye.
    pub(crate) fn record(&mut self, client: u64, at: UnixTime) {
        if self.sets.is_empty() {
            self.sets = vec![Default::default(); SETS];
        }
        let (set, client) = (&mut self.sets[set_of(client)], client as u32);
        if let Some(known) = set.iter_mut().find(|stop| stop.client == client) {
            known.at = known.at.max(at);
            return;
        }
        let oldest = &mut set[oldest_of(set)];
        self.evicted += u64::from(oldest.at != UnixTime::default());
        *oldest = RecentStop { client, at };
    }

    /// When this client said goodbye, if that is still known.
    pub(crate) fn of(&self, client: u64) -> Option<UnixTime> {
        let set = self.sets.get(set_of(client))?;
        set.iter().find(|stop| stop.client == client as u32).map(|stop| stop.at)
    }

    /// How many goodbyes had to be evicted for later ones.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }
}

fn set_of(client: u64) -> usize {
    (client >> 32) as usize % SETS
}

fn oldest_of(set: &[RecentStop; WAYS]) -> usize {
    (0..WAYS).min_by_key(|way| set[*way].at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_goodbyes_are_known_and_the_oldest_is_forgotten() {
        let mut recent_stops = RecentStops::default();
        assert_eq!(recent_stops.of(7), None);
        for client in 1..=5 {
            recent_stops.record(client, UnixTime(100 + client as u32));
        }
        assert_eq!((recent_stops.of(1), recent_stops.of(2)), (None, Some(UnixTime(102))));
        assert_eq!(recent_stops.evicted(), 1);
        recent_stops.record(2, UnixTime(50));
        assert_eq!(recent_stops.of(2), Some(UnixTime(102)));
    }
}
