//! A cache of clients that are stored in Redis, so that their heartbeats need no read first.
//!
//! A miss costs one read, so any entry may be evicted.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use domain::{Passkey, UnixTime};

use crate::activity::fold::Change;

/// Clients per generation, about 40 bytes each.
const GENERATION_MAX: usize = 500_000;

/// Hashes of user, torrent, client, state and extra silence, with the last report written to Redis.
///
/// When the younger generation is full, it replaces the older one.
#[derive(Debug, Default)]
pub(super) struct KnownClients {
    hashes: RandomState,
    younger: HashMap<u64, UnixTime>,
    older: HashMap<u64, UnixTime>,
}

impl KnownClients {
    /// Whether Redis has a report of this client in this state that has not expired, or a later one.
    pub(super) fn contains(&self, passkey: &Passkey, change: &Change, cutoff: UnixTime) -> bool {
        let key = self.key(passkey, change);
        let written = self.younger.get(&key).or_else(|| self.older.get(&key));
        written.is_some_and(|at| *at + change.report.extra_silence > cutoff)
    }

    /// Records that this report was written to Redis.
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
    fn a_client_is_known_until_its_report_expires() {
        let passkey = "0123456789abcdef".parse().unwrap();
        let mut known_clients = KnownClients::default();
        known_clients.insert(&passkey, &heartbeat(1, 100));
        assert!(known_clients.contains(&passkey, &heartbeat(1, 200), UnixTime(99)));
        assert!(!known_clients.contains(&passkey, &heartbeat(1, 200), UnixTime(100)));
        assert!(!known_clients.contains(&passkey, &heartbeat(2, 200), UnixTime(99)));
    }

    #[test]
    fn the_cache_is_bounded() {
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
