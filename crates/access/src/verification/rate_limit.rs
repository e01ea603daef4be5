//! Rate limits of endpoint calls: one for all ([`CallRateLimit`]), and a budget per client address
//! ([`AddressBudgets`]), so that a flood of invented passkeys from one address leaves most calls to other clients.
//!
//! Times are durations since the verifier's start.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// One address gets one of this many calls.
const ADDRESS_SHARE: u32 = 10;
/// Tracked addresses. An address is removed one second after its last call, so only this many addresses within one second
/// fill the table; further ones are limited by the common rate alone.
const ADDRESSES_MAX: usize = 10_000;
/// One call, in the unit of [`CallRateLimit::available`].
const CALL: u64 = 1_000_000_000;

/// A token bucket that holds the calls of one second.
#[derive(Debug)]
pub(super) struct CallRateLimit {
    per_s: u32,
    /// In billionths of a call.
    available: u64,
    updated: Duration,
}

impl CallRateLimit {
    /// A full bucket.
    pub(super) fn new(per_s: u32, now: Duration) -> Self {
        let per_s = per_s.max(1);
        CallRateLimit { per_s, available: u64::from(per_s) * CALL, updated: now }
    }

    /// Whether the bucket is full again, so that it can be dropped.
    fn is_full(&self, now: Duration) -> bool {
        now.saturating_sub(self.updated) >= Duration::from_secs(1)
    }

    /// Takes one call; false if none is available.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let passed_ns = u64::try_from(now.saturating_sub(self.updated).as_nanos()).unwrap_or(u64::MAX);
        let full = u64::from(self.per_s) * CALL;
        self.available = self.available.saturating_add(passed_ns.saturating_mul(self.per_s.into())).min(full);
        self.updated = self.updated.max(now);
        let is_available = self.available >= CALL;
        if is_available {
            self.available -= CALL;
        }
        is_available
    }
}

#[derive(Debug)]
pub(super) struct AddressBudgets {
    per_s: u32,
    limits: HashMap<IpAddr, CallRateLimit, foldhash::fast::RandomState>,
    swept: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    Taken,
    Exhausted,
    /// The table is full of addresses with calls in the last second.
    Untracked,
}

impl AddressBudgets {
    pub(super) fn new(calls_per_s: u32) -> Self {
        AddressBudgets {
            per_s: (calls_per_s / ADDRESS_SHARE).max(1),
            limits: HashMap::default(),
            swept: Duration::ZERO,
        }
    }

    pub(super) fn take(&mut self, from: IpAddr, now: Duration) -> Budget {
        if self.limits.len() >= ADDRESSES_MAX && !self.limits.contains_key(&from) {
            self.sweep(now);
            if self.limits.len() >= ADDRESSES_MAX {
                return Budget::Untracked;
            }
        }
        let limit = self.limits.entry(from).or_insert_with(|| CallRateLimit::new(self.per_s, now));
        if limit.take(now) { Budget::Taken } else { Budget::Exhausted }
    }

    /// At most once a second, because it scans the whole table.
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            self.limits.retain(|_, limit| !limit.is_full(now));
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
    fn w4_calls_per_second_are_limited() {
        let mut limit = CallRateLimit::new(10, Duration::ZERO);
        let taken = |limit: &mut CallRateLimit, ms: u64| {
            (0..100).filter(|_| limit.take(Duration::from_millis(ms))).count()
        };
        assert_eq!(taken(&mut limit, 0), 10, "a burst of one second's calls");
        assert_eq!(taken(&mut limit, 99), 0);
        assert_eq!(taken(&mut limit, 100), 1);
        assert_eq!(taken(&mut limit, 50), 0, "an earlier time adds nothing");
        assert_eq!(taken(&mut limit, 350), 2);
        assert_eq!(taken(&mut limit, 3_600_000), 10, "the bucket has a bound");
    }

    #[test]
    fn w4_one_address_gets_a_tenth_of_the_calls() {
        let mut budgets = AddressBudgets::new(100);
        let mut taken = |from: u32, ms: u64| {
            let now = Duration::from_millis(ms);
            (0..50).filter(|_| budgets.take(address(from), now) == Budget::Taken).count()
        };
        assert_eq!((taken(1, 0), taken(1, 0), taken(2, 0)), (10, 0, 10));
        assert_eq!((taken(1, 100), taken(1, 5000)), (1, 10));
        assert_eq!(AddressBudgets::new(1).take(address(1), Duration::ZERO), Budget::Taken, "at least one");
    }

    #[test]
    fn the_address_table_is_bounded_and_drops_addresses_idle_for_a_second() {
        let mut budgets = AddressBudgets::new(10);
        let full = ADDRESSES_MAX as u32;
        let start = Duration::from_secs(5);
        assert!((0..full).all(|number| budgets.take(address(number), start) == Budget::Taken));
        assert_eq!(budgets.take(address(full), start), Budget::Untracked);
        assert_eq!(budgets.take(address(1), start), Budget::Exhausted, "a tracked address stays tracked");
        assert_eq!(budgets.take(address(full), start + Duration::from_secs(2)), Budget::Taken);
        assert_eq!(budgets.limits.len(), 1);
    }
}
