//! Addresses from which several users announce.
//!
//! One user with several accounts announces from one address; so do the members of a household, a dormitory or a VPN.
//! So this only reports. An IPv6 /64 counts as one address.
//!
//! # Guarantees
//!
//! - Fixed size, without locks. A full group drops the address with the fewest users.
//! - Users are counted in a bitmap of 32: two users may share a bit, so the count may be too low, never too high.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use domain::{UnixTime, UserId};

use super::{AddressHash, WAYS};
use domain::Counter;

/// Room for 65,536 addresses in a mebibyte.
const GROUPS: usize = 16_384;
const WINDOW_MINUTES: u16 = 60;
/// Users from which on an address is reported.
pub const USERS_REPORTED: u32 = 5;

/// A cell: tag (16 bits of the hash), start of the window (16 bits of the minute), bitmap of users (32 bits).
#[derive(Clone, Copy)]
struct AddressUsers {
    tag: u16,
    since: u16,
    users: u32,
}

impl AddressUsers {
    fn from_cell(cell: u64) -> Self {
        AddressUsers { tag: (cell >> 48) as u16, since: (cell >> 32) as u16, users: cell as u32 }
    }

    fn to_cell(self) -> u64 {
        u64::from(self.tag) << 48 | u64::from(self.since) << 32 | u64::from(self.users)
    }

    fn is_expired_at(self, minute: u16) -> bool {
        self.tag == 0 || minute.wrapping_sub(self.since) >= WINDOW_MINUTES
    }
}

#[derive(Debug, Default)]
struct Cell {
    seen: AtomicU64,
    /// Bitmap of reported users, cleared with the first user of a window. A race costs or adds one report.
    reported: AtomicU32,
}

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
    /// In addresses.
    pub fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    /// Addresses with several users that were displaced within their window.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Returns the number of users once per user and window, if it is to be reported.
    pub fn note(&self, address: AddressHash, user: UserId, now: UnixTime) -> Option<u32> {
        let hash = address.0;
        let group = &self.cells[(hash >> 16) as usize % GROUPS];
        // Zero marks an unused cell.
        let tag = ((hash >> 48) as u16).max(1);
        let minute = (now.0 / 60) as u16;
        // Fibonacci hashing: neighbouring user ids get different bits.
        let bit = 1_u32 << (user.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59);
        loop {
            let (cell, old) = find_cell(group, tag, minute);
            let seen = AddressUsers::from_cell(old);
            let is_known = seen.tag == tag && !seen.is_expired_at(minute);
            let (users, since) = if is_known { (seen.users | bit, seen.since) } else { (bit, minute) };
            let new = AddressUsers { tag, since, users }.to_cell();
            // Mostly unchanged: a load is cheaper than a store.
            if new == old {
                return report(cell, bit, users);
            }
            if cell.seen.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                if !is_known {
                    cell.reported.store(0, Ordering::Relaxed);
                    // Addresses with one user are no loss.
                    self.displaced.add(u64::from(!seen.is_expired_at(minute) && seen.users.count_ones() > 1));
                }
                return report(cell, bit, users);
            }
        }
    }
}

fn report(cell: &Cell, bit: u32, users: u32) -> Option<u32> {
    let count = users.count_ones();
    let is_due = count >= USERS_REPORTED && cell.reported.load(Ordering::Relaxed) & bit == 0;
    (is_due && cell.reported.fetch_or(bit, Ordering::Relaxed) & bit == 0).then_some(count)
}

/// The address's own cell, else an expired one, else the one with the fewest users, of these the oldest.
fn find_cell(group: &[Cell; WAYS], tag: u16, minute: u16) -> (&Cell, u64) {
    let mut least = (&group[0], 0);
    let mut least_cost = (true, u32::MAX, u16::MAX);
    for cell in group {
        let value = cell.seen.load(Ordering::Relaxed);
        let seen = AddressUsers::from_cell(value);
        if seen.tag == tag {
            return (cell, value);
        }
        let age = minute.wrapping_sub(seen.since);
        let cost = (!seen.is_expired_at(minute), seen.users.count_ones(), u16::MAX - age);
        if cost < least_cost {
            (least, least_cost) = ((cell, value), cost);
        }
    }
    least
}

/// Loopback is a proxy that is not in `tracker.trusted_proxies`.
pub fn is_countable(ip: IpAddr) -> bool {
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
    fn addresses_with_few_users_are_displaced_first() {
        let addresses = SharedAddresses::default();
        let busy = AddressHash(1 << 48);
        (1..5).for_each(|number| _ = addresses.note(busy, user(number), NOW));
        (2..50).for_each(|tag| _ = addresses.note(AddressHash(tag << 48), user(1), NOW));
        assert_eq!(addresses.note(busy, user(5), NOW), Some(5));
        assert_eq!(addresses.displaced(), 0, "addresses with one user are not counted as displaced");
    }
}
