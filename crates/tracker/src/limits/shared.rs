//! Addresses from which several users announce.
//!
//! One person with several accounts announces from one address; so do the members of a household, a dormitory or a VPN.
//! So this reports, and refuses nothing. An IPv6 /64 network counts as one address.
//!
//! # Guarantees
//!
//! - Fixed in size, without locks. A full group forgets the address with the fewest users.
//! - Users are counted by a bit each, of 32: two users may share a bit, so the count may be too low, never too high.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use domain::{UnixTime, UserId};

use super::{AddressHash, WAYS};
use crate::counters::Counter;

/// Groups of cells: room for 65,536 addresses in a mebibyte.
const GROUPS: usize = 16_384;
/// Users of an address are counted for this long.
const WINDOW_MINUTES: u16 = 60;
/// From this many users on, an address is reported.
pub const USERS_REPORTED: u32 = 5;

/// One address: which (16 bits of the hash), since when (16 bits of the minute), its users (32 bits).
#[derive(Clone, Copy)]
struct Seen {
    who: u16,
    since: u16,
    users: u32,
}

impl Seen {
    fn from_cell(cell: u64) -> Self {
        Seen { who: (cell >> 48) as u16, since: (cell >> 32) as u16, users: cell as u32 }
    }

    fn to_cell(self) -> u64 {
        u64::from(self.who) << 48 | u64::from(self.since) << 32 | u64::from(self.users)
    }

    fn is_over_at(self, minute: u16) -> bool {
        self.who == 0 || minute.wrapping_sub(self.since) >= WINDOW_MINUTES
    }
}

#[derive(Debug, Default)]
struct Cell {
    seen: AtomicU64,
    /// The users that were reported. Cleared with the first user of a window; a race costs a report more or less.
    reported: AtomicU32,
}

/// Counts the users of each address.
#[derive(Debug)]
pub struct SharedAddresses {
    cells: Box<[[Cell; WAYS]]>,
    displaced: Counter,
}

impl Default for SharedAddresses {
    fn default() -> Self {
        let cells = (0..GROUPS).map(|_| Default::default()).collect();
        SharedAddresses { cells, displaced: Counter::default() }
    }
}

impl SharedAddresses {
    /// How many addresses it has room for.
    pub fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    /// How often an address with several users was forgotten within the hour to make room for another.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Notes that a user announced from an address. Once in an hour for each user of an address that several share: how
    /// many do, at least.
    pub fn note(&self, address: AddressHash, user: UserId, now: UnixTime) -> Option<u32> {
        let hash = address.0;
        let group = &self.cells[(hash >> 16) as usize % GROUPS];
        // Zero marks a cell that was never used.
        let who = ((hash >> 48) as u16).max(1);
        let minute = (now.0 / 60) as u16;
        // Fibonacci hashing: users with neighbouring numbers get different bits.
        let bit = 1_u32 << (user.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59);
        loop {
            let (cell, old) = find_cell(group, who, minute);
            let seen = Seen::from_cell(old);
            let is_known = seen.who == who && !seen.is_over_at(minute);
            let (users, since) = if is_known { (seen.users | bit, seen.since) } else { (bit, minute) };
            let new = Seen { who, since, users }.to_cell();
            // Most announces come from an address and a user that are known: a load is cheaper than a store.
            if new == old {
                return report(cell, bit, users);
            }
            if cell.seen.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                if !is_known {
                    cell.reported.store(0, Ordering::Relaxed);
                    // Most addresses have one user: nothing is lost with them.
                    self.displaced.add(u64::from(!seen.is_over_at(minute) && seen.users.count_ones() > 1));
                }
                return report(cell, bit, users);
            }
        }
    }
}

fn report(cell: &Cell, bit: u32, users: u32) -> Option<u32> {
    let count = users.count_ones();
    let is_news = count >= USERS_REPORTED && cell.reported.load(Ordering::Relaxed) & bit == 0;
    (is_news && cell.reported.fetch_or(bit, Ordering::Relaxed) & bit == 0).then_some(count)
}

/// The address's own cell, else one that is over, else the one with the fewest users, of these the oldest.
fn find_cell(group: &[Cell; WAYS], who: u16, minute: u16) -> (&Cell, u64) {
    let mut least = (&group[0], 0);
    let mut least_cost = (true, u32::MAX, u16::MAX);
    for cell in group {
        let value = cell.seen.load(Ordering::Relaxed);
        let seen = Seen::from_cell(value);
        if seen.who == who {
            return (cell, value);
        }
        let age = minute.wrapping_sub(seen.since);
        let cost = (!seen.is_over_at(minute), seen.users.count_ones(), u16::MAX - age);
        if cost < least_cost {
            (least, least_cost) = ((cell, value), cost);
        }
    }
    least
}

/// Whether an address can be shared by several people who do not know of each other. Loopback is this machine: a proxy
/// that is not named in `tracker.trusted_proxies`.
pub fn is_worth_counting(ip: IpAddr) -> bool {
    !ip.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1_700_000_040);

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    #[test]
    fn every_user_of_a_shared_address_is_reported_once_an_hour_and_counted_once() {
        let addresses = SharedAddresses::default();
        let here = AddressHash(0x1234_5678_9abc_def0);
        let note = |number, minutes: u32| addresses.note(here, user(number), UnixTime(NOW.0 + 60 * minutes));
        for number in [1, 2, 3, 4, 4, 1] {
            assert_eq!(note(number, 0), None);
        }
        assert_eq!([note(5, 1), note(5, 2)], [Some(5), None]);
        assert_eq!([note(1, 3), note(6, 4), note(1, 5)], [Some(5), Some(6), None]);
        assert_eq!(addresses.note(AddressHash(7), user(9), NOW), None, "another address");
        assert_eq!((note(1, 60), note(2, 61)), (None, None), "a new hour begins with no users");
    }

    #[test]
    fn the_table_forgets_addresses_with_few_users_first() {
        let addresses = SharedAddresses::default();
        let busy = AddressHash(1 << 48);
        (1..5).for_each(|number| _ = addresses.note(busy, user(number), NOW));
        (2..50).for_each(|who| _ = addresses.note(AddressHash(who << 48), user(1), NOW));
        assert_eq!(addresses.note(busy, user(5), NOW), Some(5));
        assert_eq!(addresses.displaced(), 0, "those with one user are no loss");
    }
}
