//! Addresses with a recent accepted announce.
//!
//! A UDP scrape carries no passkey (BEP 15), so it is answered only to these addresses. A displaced address announces
//! again soon.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Seconds, UnixTime};

use super::{AddressHash, AddressHasher, WAYS};
use domain::Counter;

/// Room for 262,144 addresses in two mebibytes.
const GROUPS: usize = 65_536;

#[derive(Debug)]
pub struct RecentAddresses {
    /// Tag (32 bits of the hash), time of the last announce (32 bits).
    cells: Box<[[AtomicU64; WAYS]]>,
    hasher: AddressHasher,
    displaced: Counter,
}

impl RecentAddresses {
    /// The secret keeps clients from targeting another's cell.
    pub fn new(secret: [u64; 2]) -> Self {
        let cells = (0..GROUPS).map(|_| Default::default()).collect();
        RecentAddresses { cells, hasher: AddressHasher::new(secret), displaced: Counter::default() }
    }

    /// In addresses.
    pub fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    /// Addresses displaced within their window.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Records an address for `window`; returns its hash. Of concurrent writes to one cell any may win.
    pub fn note(&self, ip: IpAddr, now: UnixTime, window: Seconds) -> AddressHash {
        let address = self.hasher.hash(ip, 0);
        let (group, tag) = self.group(address);
        let oldest_or_own = group.iter().min_by_key(|cell| {
            let value = cell.load(Ordering::Relaxed);
            if value >> 32 == tag { 0 } else { 1 + (value & 0xffff_ffff) }
        });
        if let Some(cell) = oldest_or_own {
            let value = tag << 32 | u64::from(now.0);
            // Seedboxes announce hundreds of torrents a second: a load is cheaper than a store to a shared cache
            // line.
            let old = cell.load(Ordering::Relaxed);
            if old != value {
                cell.store(value, Ordering::Relaxed);
                if old != 0 && old >> 32 != tag && now.since(UnixTime(old as u32)) <= window {
                    self.displaced.increment();
                }
            }
        }
        AddressHash(address)
    }

    pub fn has_seen(&self, ip: IpAddr, now: UnixTime, window: Seconds) -> bool {
        let (group, tag) = self.group(self.hasher.hash(ip, 0));
        group
            .iter()
            .map(|cell| cell.load(Ordering::Relaxed))
            .any(|value| value >> 32 == tag && now.since(UnixTime(value as u32)) <= window)
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
    fn addresses_displaced_within_their_window_are_counted() {
        let recent = RecentAddresses::new([3, 4]);
        let all = || (0..2 * recent.capacity() as u32).map(|number| IpAddr::from(number.to_be_bytes()));
        all().for_each(|ip| _ = recent.note(ip, UnixTime(1000), Seconds(600)));
        let displaced = recent.displaced();
        assert!(displaced >= recent.capacity() as u64, "twice as many as there is room for: {displaced}");
        all().take(10).for_each(|ip| _ = recent.note(ip, UnixTime(2000), Seconds(600)));
        assert_eq!(recent.displaced(), displaced, "outdated addresses are not counted as displaced");
    }
}
