//! Recent `stopped` events, so that a late entry of another node does not add the peer again.
//!
//! Entries of several nodes may be reordered: a client announces to one node, sends `stopped` to another, and the
//! `stopped` arrives first. Without this table, the announce would add a peer that stays for interval + grace.
//!
//! # Guarantees
//!
//! Fixed in size, and nothing is allocated after the first event. If a set is full, the oldest event is evicted, and
//! counted.

use domain::UnixTime;

/// Events per set.
const WAYS: usize = 4;
/// 1024 events per shard, 8 KiB.
const SETS: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct RecentStop {
    /// The low half of the client's hash; the other half selects the set. Two clients collide once in a trillion, and
    /// then only one late announce is ignored.
    client: u32,
    at: UnixTime,
}

/// The latest events of a shard, by a hash of the client.
#[derive(Debug, Default)]
pub(crate) struct RecentStops {
    sets: Vec<[RecentStop; WAYS]>,
    evicted: u64,
}

impl RecentStops {
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

    /// When this client stopped, if still stored.
    pub(crate) fn of(&self, client: u64) -> Option<UnixTime> {
        let set = self.sets.get(set_of(client))?;
        set.iter().find(|stop| stop.client == client as u32).map(|stop| stop.at)
    }

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
    fn the_oldest_event_is_evicted() {
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
