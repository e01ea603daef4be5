//! The last passkeys of users who were removed lately.
//!
//! A removed user's peers are turned out a moment later, and the entry that says so bears their passkey. So it is kept
//! for a while: for the last hundred thousand who were removed, the oldest of whom are forgotten first.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::{Passkey, UserId};

/// How many are remembered.
const REMEMBERED_MAX: usize = 100_000;

/// Who was removed lately.
#[derive(Debug)]
pub(crate) struct Removed {
    memory: Mutex<Memory>,
    remembered_max: usize,
    forgotten: AtomicU64,
}

#[derive(Debug, Default)]
struct Memory {
    /// The passkey, and the number of the removal.
    passkeys: HashMap<UserId, (u64, Passkey), foldhash::fast::RandomState>,
    /// Removals in their order. One of a user who was removed again later is void.
    order: VecDeque<(u64, UserId)>,
    removals: u64,
}

impl Default for Removed {
    fn default() -> Self {
        Self::with_room_for(REMEMBERED_MAX)
    }
}

impl Removed {
    fn with_room_for(remembered_max: usize) -> Self {
        Removed { memory: Mutex::default(), remembered_max, forgotten: AtomicU64::new(0) }
    }

    /// Takes note of a removal.
    pub(crate) fn remember(&self, user: UserId, passkey: Passkey) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.removals += 1;
        let number = memory.removals;
        memory.passkeys.insert(user, (number, passkey));
        memory.order.push_back((number, user));
        while memory.order.len() > self.remembered_max {
            let Some((number, user)) = memory.order.pop_front() else { break };
            if memory.passkeys.get(&user).is_some_and(|(latest, _)| *latest == number) {
                memory.passkeys.remove(&user);
                self.forgotten.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The last passkey of somebody who was removed.
    pub(crate) fn passkey_of(&self, user: UserId) -> Option<Passkey> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.passkeys.get(&user).map(|(_, passkey)| *passkey)
    }

    /// How many were forgotten for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(removed.passkey_of(user(1)), Some(passkey(11)), "the later removal counts");
        assert_eq!(removed.forgotten(), 0, "the first removal of user 1 is void");
        removed.remember(user(4), passkey(4));
        assert_eq!(removed.passkey_of(user(2)), None);
        assert_eq!(removed.passkey_of(user(3)), Some(passkey(3)));
        assert_eq!(removed.forgotten(), 1);
    }

    #[test]
    fn one_user_removed_for_ever_takes_no_more_room() {
        let removed = Removed::with_room_for(3);
        (1..=1_000).for_each(|number| removed.remember(user(7), passkey(number)));
        assert_eq!(removed.passkey_of(user(7)), Some(passkey(1_000)));
        let memory = removed.memory.lock().expect("nobody panicked");
        assert_eq!((memory.passkeys.len(), memory.order.len()), (1, 3));
    }
}
