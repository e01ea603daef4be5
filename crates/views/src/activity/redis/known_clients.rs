//! Which clients this process knows to be remembered in Redis, so that their heartbeats need no read_command first.
//!
//! Who is not in here is asked about, so forgetting costs a little speed and nothing else.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use domain::{Passkey, UnixTime};

use crate::activity::fold::Change;

/// The most clients in each of the two generations: some 40 bytes each.
const GENERATION_MAX: usize = 500_000;

/// Clients on torrents of users, doing what they do, with the last time they were told to Redis.
///
/// Two generations: when the younger one is full, the older one is forgotten.
#[derive(Debug, Default)]
pub(super) struct KnownClients {
    hashes: RandomState,
    younger: HashMap<u64, UnixTime>,
    older: HashMap<u64, UnixTime>,
}

impl KnownClients {
    /// Whether Redis remembers this client doing this, or something it did later: it was told, and what it was told
    /// still counts.
    pub(super) fn contains(&self, passkey: &Passkey, change: &Change, cutoff: UnixTime) -> bool {
        let key = self.key(passkey, change);
        let told = self.younger.get(&key).or_else(|| self.older.get(&key));
        told.is_some_and(|told| *told + change.report.extra_silence > cutoff)
    }

    /// Notes that Redis was told.
    pub(super) fn insert(&mut self, passkey: &Passkey, change: &Change) {
        let key = self.key(passkey, change);
        if self.younger.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(key, change.report.stamp.at);
    }

    fn key(&self, passkey: &Passkey, change: &Change) -> u64 {
        let report = &change.report;
        self.hashes.hash_one((passkey, change.info_hash, report.client, report.state, report.extra_silence))
    }
}

#[cfg(test)]
mod tests {
    use domain::{ClientId, InfoHash, Seconds};

    use super::*;
    use crate::activity::record::{ClientState, Report, Stamp};

    fn heartbeat(client: u64, at: u32) -> Change {
        let stamp = Stamp::of_heartbeat(UnixTime(at), ClientState::Seeding);
        let report = Report {
            client: ClientId(client),
            state: ClientState::Seeding,
            extra_silence: Seconds(0),
            stamp,
        };
        Change { info_hash: InfoHash([7; 20]), report }
    }

    #[test]
    fn a_client_is_known_until_what_it_said_counts_no_more() {
        let passkey = "0123456789abcdef".parse().unwrap();
        let mut known_clients = KnownClients::default();
        known_clients.insert(&passkey, &heartbeat(1, 100));
        assert!(known_clients.contains(&passkey, &heartbeat(1, 200), UnixTime(99)));
        assert!(!known_clients.contains(&passkey, &heartbeat(1, 200), UnixTime(100)));
        assert!(!known_clients.contains(&passkey, &heartbeat(2, 200), UnixTime(99)));
    }

    #[test]
    fn the_memory_is_bounded() {
        let passkey = "0123456789abcdef".parse().unwrap();
        let mut known_clients = KnownClients::default();
        for client in 0..2 * GENERATION_MAX as u64 + 10 {
            known_clients.insert(&passkey, &heartbeat(client, 100));
        }
        assert!(known_clients.younger.len() + known_clients.older.len() <= 2 * GENERATION_MAX);
        assert!(!known_clients.contains(&passkey, &heartbeat(0, 100), UnixTime(0)));
        assert!(known_clients.contains(&passkey, &heartbeat(2 * GENERATION_MAX as u64, 100), UnixTime(0)));
    }
}
