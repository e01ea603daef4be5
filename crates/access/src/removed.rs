//! Recently removed users and torrents.
//!
//! The peers of a removed user or torrent are evicted a moment later, and their `stopped` entries need the user's passkey
//! and the torrent's id. Both are kept for the last hundred thousand removals.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const ENTRIES_MAX: usize = 100_000;

/// A map from the key of what was removed to a value that is still needed. The oldest removals are dropped first.
#[derive(Debug)]
pub(crate) struct RecentlyRemoved<K, V> {
    entries: Mutex<Entries<K, V>>,
    entries_max: usize,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Entries<K, V> {
    /// With the serial number of the removal.
    values: HashMap<K, (u64, V), foldhash::fast::RandomState>,
    /// Oldest first. An item whose key was removed again later is void.
    order: VecDeque<(u64, K)>,
    removals: u64,
}

impl<K: Copy + Eq + Hash, V: Copy> Default for RecentlyRemoved<K, V> {
    fn default() -> Self {
        Self::with_capacity(ENTRIES_MAX)
    }
}

impl<K: Copy + Eq + Hash, V: Copy> RecentlyRemoved<K, V> {
    fn with_capacity(entries_max: usize) -> Self {
        let entries = Entries { values: HashMap::default(), order: VecDeque::new(), removals: 0 };
        RecentlyRemoved { entries: Mutex::new(entries), entries_max, dropped: AtomicU64::new(0) }
    }

    pub(crate) fn insert(&self, key: K, value: V) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.removals += 1;
        let serial = entries.removals;
        entries.values.insert(key, (serial, value));
        entries.order.push_back((serial, key));
        while entries.order.len() > self.entries_max {
            let Some((serial, key)) = entries.order.pop_front() else { break };
            if entries.values.get(&key).is_some_and(|(latest, _)| *latest == serial) {
                entries.values.remove(&key);
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values.get(key).map(|(_, value)| *value)
    }

    /// Entries dropped because the map was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use domain::{Passkey, UserId};

    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).expect("not zero")
    }

    fn passkey(number: u64) -> Passkey {
        format!("{number:032x}").parse().expect("32 digits")
    }

    #[test]
    fn the_oldest_removals_are_dropped_first_and_counted() {
        let removed = RecentlyRemoved::with_capacity(3);
        (1..=3).for_each(|number| removed.insert(user(number), passkey(number)));
        removed.insert(user(1), passkey(11));
        assert_eq!(removed.get(&user(1)), Some(passkey(11)), "the later removal counts");
        assert_eq!(removed.dropped(), 0, "the first removal of user 1 is void");
        removed.insert(user(4), passkey(4));
        assert_eq!(removed.get(&user(2)), None);
        assert_eq!(removed.get(&user(3)), Some(passkey(3)));
        assert_eq!(removed.dropped(), 1);
    }

    #[test]
    fn repeated_removals_of_one_user_use_bounded_memory() {
        let removed = RecentlyRemoved::with_capacity(3);
        (1..=1_000).for_each(|number| removed.insert(user(7), passkey(number)));
        assert_eq!(removed.get(&user(7)), Some(passkey(1_000)));
        let entries = removed.entries.lock().expect("no thread panicked");
        assert_eq!((entries.values.len(), entries.order.len()), (1, 3));
    }
}
