//! Connection numbers.
//!
//! # Guarantees
//!
//! - A number is reused only after its connection was removed everywhere, and a thousand others were: a command still
//!   running for it finds no connection rather than another user's.
//! - A random connection is found without a full pass (P13, P14).

use std::collections::VecDeque;
use std::sync::Arc;

use domain::UserId;
use hashbrown::HashSet;
use presence::ConnId;

use super::ConnRef;
use crate::outbox::Outbox;

/// Free numbers that are not reused yet.
const RESTING: usize = 1_000;

/// The user and outbox of each connection, by number.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    slots: Vec<Option<(UserId, Arc<Outbox>)>>,
    free: VecDeque<u32>,
}

impl ConnectionTable {
    /// None if all numbers are used.
    pub(crate) fn take(&mut self, user: UserId, outbox: Arc<Outbox>) -> Option<ConnRef> {
        let rested = if self.free.len() > RESTING { self.free.pop_front() } else { None };
        let slot = match rested {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(None);
                slot
            }
        };
        self.slots[slot as usize] = Some((user, outbox));
        Some(ConnRef { user, conn: ConnId(slot) })
    }

    pub(crate) fn release(&mut self, conn: ConnRef) {
        if let Some(slot) = self.slots.get_mut(conn.conn.0 as usize)
            && slot.as_ref().is_some_and(|(user, _)| *user == conn.user)
        {
            *slot = None;
            self.free.push_back(conn.conn.0);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// About `count` connections, at random, each once.
    pub(crate) fn sample(&self, count: usize, random: &mut fastrand::Rng) -> Vec<ConnRef> {
        let mut drawn: HashSet<u32, foldhash::fast::RandomState> = HashSet::default();
        // Empty and repeated slots are misses; the number of draws is bounded.
        for _ in 0..count.saturating_mul(16) {
            if drawn.len() >= count {
                break;
            }
            let slot = random.usize(..self.slots.len());
            if self.slots[slot].is_some() {
                drawn.insert(slot as u32);
            }
        }
        drawn.into_iter().filter_map(|slot| self.at(slot)).collect()
    }

    /// Connections from slot `from` on, and where the next page begins.
    pub(crate) fn page(&self, from: usize, count: usize) -> (Vec<ConnRef>, Option<usize>) {
        let end = from.saturating_add(count).min(self.slots.len());
        let found = (from..end).filter_map(|slot| self.at(slot as u32)).collect();
        (found, (end < self.slots.len()).then_some(end))
    }

    pub(crate) fn user(&self, conn: ConnId) -> Option<UserId> {
        self.at(conn.0).map(|conn| conn.user)
    }

    /// The outbox of a connection.
    pub(crate) fn outbox(&self, conn: ConnId) -> Option<&Arc<Outbox>> {
        self.slots.get(conn.0 as usize)?.as_ref().map(|(_, outbox)| outbox)
    }

    fn at(&self, slot: u32) -> Option<ConnRef> {
        let (user, _) = self.slots.get(slot as usize)?.as_ref()?;
        Some(ConnRef { user: *user, conn: ConnId(slot) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ConnectionSettings;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn take(table: &mut ConnectionTable, number: u64) -> ConnRef {
        table.take(user(number), Outbox::new(&ConnectionSettings::default(), Arc::default())).unwrap()
    }

    #[test]
    fn a_number_is_given_again_only_after_its_release_and_a_rest() {
        let mut table = ConnectionTable::default();
        let first = take(&mut table, 1);
        table.release(first);
        table.release(first);
        let others: Vec<ConnRef> = (0..=RESTING as u64).map(|number| take(&mut table, 2 + number)).collect();
        assert!(others.iter().all(|other| other.conn != first.conn));
        assert_eq!(table.len(), others.len());
        for other in &others {
            table.release(*other);
        }
        assert_eq!(take(&mut table, 1).conn, first.conn);
    }

    #[test]
    fn p14_a_sample_has_no_duplicates_and_no_closed_connections() {
        let mut table = ConnectionTable::default();
        let all: Vec<ConnRef> = (1..=100).map(|number| take(&mut table, number)).collect();
        for conn in &all[..50] {
            table.release(*conn);
        }
        let mut sample = table.sample(10, &mut fastrand::Rng::with_seed(7));
        assert_eq!(sample.len(), 10);
        assert!(sample.iter().all(|conn| conn.user > user(50)));
        sample.sort_by_key(|conn| conn.conn.0);
        sample.dedup();
        assert_eq!(sample.len(), 10);
    }
}
