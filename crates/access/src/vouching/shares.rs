//! How many of the endpoint's calls one address may cause, so that a flood of random passkeys from one address leaves
//! most of the pace to others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::pace::Pace;

/// One address may cause one call of so many.
const SHARE: u32 = 10;
/// Addresses that are tracked. Each is forgotten a second after its last call, so only as many different addresses
/// within one second fill the table; beyond that the pace for all is what limits calls.
const ADDRESSES_MAX: usize = 10_000;

/// What each address may still cause. Time is what has passed since some start.
#[derive(Debug)]
pub(super) struct AddressShares {
    per_s: u32,
    paces: HashMap<IpAddr, Pace, foldhash::fast::RandomState>,
    swept: Duration,
}

/// Whether an address may cause one more call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Taken,
    UsedUp,
    /// The table is full of addresses that were busy within the last second.
    Untracked,
}

impl AddressShares {
    pub(super) fn new(calls_per_s: u32) -> Self {
        AddressShares {
            per_s: (calls_per_s / SHARE).max(1),
            paces: HashMap::default(),
            swept: Duration::ZERO,
        }
    }

    pub(super) fn take(&mut self, from: IpAddr, now: Duration) -> Share {
        if self.paces.len() >= ADDRESSES_MAX && !self.paces.contains_key(&from) {
            self.sweep(now);
            if self.paces.len() >= ADDRESSES_MAX {
                return Share::Untracked;
            }
        }
        let pace = self.paces.entry(from).or_insert_with(|| Pace::full(self.per_s, now));
        if pace.take(now) { Share::Taken } else { Share::UsedUp }
    }

    /// At most once a second: it looks at the whole table.
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            self.paces.retain(|_, pace| !pace.is_full(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn w4_one_address_gets_a_tenth_of_the_calls() {
        let mut shares = AddressShares::new(100);
        let mut taken = |from: u32, ms: u64| {
            let now = Duration::from_millis(ms);
            (0..50).filter(|_| shares.take(address(from), now) == Share::Taken).count()
        };
        assert_eq!((taken(1, 0), taken(1, 0), taken(2, 0)), (10, 0, 10));
        assert_eq!((taken(1, 100), taken(1, 5000)), (1, 10));
        assert_eq!(AddressShares::new(1).take(address(1), Duration::ZERO), Share::Taken, "never none at all");
    }

    #[test]
    fn the_table_stays_bounded_and_forgets_who_was_idle_for_a_second() {
        let mut shares = AddressShares::new(10);
        let full = ADDRESSES_MAX as u32;
        let start = Duration::from_secs(5);
        assert!((0..full).all(|number| shares.take(address(number), start) == Share::Taken));
        assert_eq!(shares.take(address(full), start), Share::Untracked);
        assert_eq!(shares.take(address(1), start), Share::UsedUp, "who is tracked stays so");
        assert_eq!(shares.take(address(full), start + Duration::from_secs(2)), Share::Taken);
        assert_eq!(shares.paces.len(), 1);
    }
}
