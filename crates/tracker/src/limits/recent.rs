//! Addresses that announced lately.
//!
//! A scrape over UDP carries no passkey (BEP 15 leaves no room), so it is answered to addresses that have an accepted
//! announce behind them. The table has a fixed size: an address that was pushed out announces again soon.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Seconds, UnixTime};

use super::{AddressHash, AddressHasher, WAYS};
use crate::counters::Counter;

/// Groups of cells: room for 262,144 addresses in two mebibytes.
const GROUPS: usize = 65_536;

/// Remembers addresses, each with the second it was last seen in.
#[derive(Debug)]
pub struct RecentAddresses {
    /// Who (32 bits of the hash), when (32 bits).
    cells: Box<[[AtomicU64; WAYS]]>,
    hasher: AddressHasher,
    displaced: Counter,
}

impl RecentAddresses {
    /// An empty table; the secret keeps strangers from aiming at another's cell.
    pub fn new(secret: [u64; 2]) -> Self {
        let cells = (0..GROUPS).map(|_| Default::default()).collect();
        RecentAddresses { cells, hasher: AddressHasher::new(secret), displaced: Counter::default() }
    }

    /// How many addresses it has room for.
    pub fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    /// How often an address that still counted was forgotten to make room for another.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Remembers an address, which counts for as long as `lately`, and returns its hash. Of several at once in one cell, any may win: the
    /// other comes again.
    pub fn note(&self, ip: IpAddr, now: UnixTime, lately: Seconds) -> AddressHash {
        let address = self.hasher.hash(ip, 0);
        let (group, who) = self.group(address);
        let oldest_or_own = group.iter().min_by_key(|cell| {
            let value = cell.load(Ordering::Relaxed);
            if value >> 32 == who { 0 } else { 1 + (value & 0xffff_ffff) }
        });
        if let Some(cell) = oldest_or_own {
            let value = who << 32 | u64::from(now.0);
            // Seedboxes announce hundreds of torrents a second: a load is cheaper than a store to a shared line.
            let old = cell.load(Ordering::Relaxed);
            if old != value {
                cell.store(value, Ordering::Relaxed);
                if old != 0 && old >> 32 != who && now.since(UnixTime(old as u32)) <= lately {
                    self.displaced.increment();
                }
            }
        }
        AddressHash(address)
    }

    /// Whether the address was seen within `lately`.
    pub fn has_seen(&self, ip: IpAddr, now: UnixTime, lately: Seconds) -> bool {
        let (group, who) = self.group(self.hasher.hash(ip, 0));
        group
            .iter()
            .map(|cell| cell.load(Ordering::Relaxed))
            .any(|value| value >> 32 == who && now.since(UnixTime(value as u32)) <= lately)
    }

    fn group(&self, hash: u64) -> (&[AtomicU64; WAYS], u64) {
        (&self.cells[hash as usize % GROUPS], hash >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_remembered_for_as_long_as_asked() {
        let recent = RecentAddresses::new([3, 4]);
        let (here, elsewhere) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        recent.note(here, UnixTime(1000), Seconds(600));
        assert!(recent.has_seen(here, UnixTime(1600), Seconds(600)));
        assert!(!recent.has_seen(here, UnixTime(1601), Seconds(600)));
        assert!(!recent.has_seen(elsewhere, UnixTime(1000), Seconds(600)));
    }

    #[test]
    fn addresses_that_still_count_are_counted_when_they_have_to_go() {
        let recent = RecentAddresses::new([3, 4]);
        let all = || (0..2 * recent.capacity() as u32).map(|number| IpAddr::from(number.to_be_bytes()));
        all().for_each(|ip| _ = recent.note(ip, UnixTime(1000), Seconds(600)));
        let displaced = recent.displaced();
        assert!(displaced >= recent.capacity() as u64, "twice as many as there is room for: {displaced}");
        all().take(10).for_each(|ip| _ = recent.note(ip, UnixTime(2000), Seconds(600)));
        assert_eq!(recent.displaced(), displaced, "what no longer counts is no loss");
    }
}
