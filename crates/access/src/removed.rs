//! What was removed lately: the last passkeys of users, the numbers of torrents.
//!
//! The peers of a removed user or torrent are turned out a moment later, and the entry that says so bears the passkey
//! and the number. So these are kept for a while: for the last hundred thousand that were removed, the oldest of which
//! are forgotten first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many are remembered.
const REMEMBERED_MAX: usize = 100_000;

/// Who or what was removed lately, and what is still to be known of it.
#[derive(Debug)]
pub(crate) struct Removed<K, V> {
    memory: Mutex<Memory<K, V>>,
    remembered_max: usize,
    forgotten: AtomicU64,
}

#[derive(Debug)]
struct Memory<K, V> {
    /// What is to be known, and the number of the removal.
    known: HashMap<K, (u64, V), foldhash::fast::RandomState>,
    /// Removals in their order. One of something that was removed again later is void.
    order: VecDeque<(u64, K)>,
    removals: u64,
}

impl<K: Copy + Eq + Hash, V: Copy> Default for Removed<K, V> {
    fn default() -> Self {
        Self::with_room_for(REMEMBERED_MAX)
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Removed<K, V> {
    fn with_room_for(remembered_max: usize) -> Self {
        let memory = Memory { known: HashMap::default(), order: VecDeque::new(), removals: 0 };
        Removed { memory: Mutex::new(memory), remembered_max, forgotten: AtomicU64::new(0) }
    }

    /// Takes note of a removal.
    pub(crate) fn remember(&self, whom: K, what: V) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.removals += 1;
        let number = memory.removals;
        memory.known.insert(whom, (number, what));
        memory.order.push_back((number, whom));
        while memory.order.len() > self.remembered_max {
            let Some((number, whom)) = memory.order.pop_front() else { break };
            if memory.known.get(&whom).is_some_and(|(latest, _)| *latest == number) {
                memory.known.remove(&whom);
                self.forgotten.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// What is still known of something that was removed.
    pub(crate) fn get(&self, whom: &K) -> Option<V> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.known.get(whom).map(|(_, what)| *what)
    }

    /// How many were forgotten for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
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
    fn the_oldest_removals_are_forgotten_first_and_counted() {
        let removed = Removed::with_room_for(3);
        (1..=3).for_each(|number| removed.remember(user(number), passkey(number)));
        removed.remember(user(1), passkey(11));
        assert_eq!(removed.get(&user(1)), Some(passkey(11)), "the later removal counts");
        assert_eq!(removed.forgotten(), 0, "the first removal of user 1 is void");
        removed.remember(user(4), passkey(4));
        assert_eq!(removed.get(&user(2)), None);
        assert_eq!(removed.get(&user(3)), Some(passkey(3)));
        assert_eq!(removed.forgotten(), 1);
    }

    #[test]
    fn one_user_removed_for_ever_takes_no_more_room() {
        let removed = Removed::with_room_for(3);
        (1..=1_000).for_each(|number| removed.remember(user(7), passkey(number)));
        assert_eq!(removed.get(&user(7)), Some(passkey(1_000)));
        let memory = removed.memory.lock().expect("nobody panicked");
        assert_eq!((memory.known.len(), memory.order.len()), (1, 3));
    }
}
