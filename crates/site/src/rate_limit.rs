//! Rate limits per caller: per second with a burst of ten seconds, or per minute with a burst of a minute.
//!
//! GCRA: one theoretical arrival time per caller, no timers.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::HashMap;
use parking_lot::Mutex;

/// Burst of a limit per second.
const BURST_US: u64 = 10 * SECOND_US;
const SECOND_US: u64 = 1_000_000;
/// Maximum number of callers; idle ones are evicted first.
const CALLERS_MAX: usize = 100_000;

/// A rate limit for callers of one kind.
#[derive(Debug)]
pub struct RateLimit<K> {
    /// Cost of a request; zero means no limit.
    cost_us: u64,
    /// Size of the bucket.
    burst_us: u64,
    /// Time at which each caller's bucket is empty again.
    empty_at_us: Mutex<HashMap<K, u64>>,
    refused: AtomicU64,
    evicted: AtomicU64,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// Zero means no limit.
    pub fn new(per_s: u32) -> Self {
        let cost_us = if per_s == 0 { 0 } else { (SECOND_US / u64::from(per_s)).max(1) };
        Self::with(cost_us, BURST_US)
    }

    /// Zero means no limit.
    pub fn per_minute(count: u32) -> Self {
        let burst_us = 60 * SECOND_US;
        Self::with(burst_us.checked_div(count.into()).unwrap_or(0), burst_us)
    }

    fn with(cost_us: u64, burst_us: u64) -> Self {
        RateLimit {
            cost_us,
            burst_us,
            empty_at_us: Mutex::default(),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// Counts a request. Above the limit, returns the seconds until a retry.
    pub fn check(&self, caller: &K, now_ms: u64) -> Result<(), u64> {
        if self.cost_us == 0 {
            return Ok(());
        }
        let now_us = now_ms * 1000;
        let horizon_us = now_us + self.burst_us;
        let mut callers = self.empty_at_us.lock();
        // A time beyond the burst was stored before the clock was set back.
        let stored_us = callers.get(caller).copied().filter(|stored_us| *stored_us <= horizon_us);
        let empty_at_us = stored_us.unwrap_or(0).max(now_us) + self.cost_us;
        if empty_at_us > horizon_us {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err((empty_at_us - horizon_us).div_ceil(SECOND_US).max(1));
        }
        if callers.len() >= CALLERS_MAX && !callers.contains_key(caller) {
            self.make_room(&mut callers, now_us);
        }
        callers.insert(caller.clone(), empty_at_us);
        Ok(())
    }

    /// Undoes the count of a request that the limit does not apply to.
    pub fn refund(&self, caller: &K) {
        if let Some(empty_at_us) = self.empty_at_us.lock().get_mut(caller) {
            *empty_at_us = empty_at_us.saturating_sub(self.cost_us);
        }
    }

    /// Evicts idle callers; if all are active, all of them, rather than refuse new callers.
    fn make_room(&self, callers: &mut HashMap<K, u64>, now_us: u64) {
        callers.retain(|_, empty_at_us| *empty_at_us > now_us);
        if callers.len() >= CALLERS_MAX {
            self.evicted.fetch_add(callers.len() as u64, Ordering::Relaxed);
            callers.clear();
        }
    }

    /// Refused requests.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Active callers that were evicted.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_a_burst_of_ten_seconds_then_the_rate_per_second() {
        let limit = RateLimit::new(2);
        let allowed = |now_ms| (0..100).take_while(|_| limit.check(&"k", now_ms).is_ok()).count();
        assert_eq!(allowed(1_000_000), 20);
        assert_eq!(limit.check(&"k", 1_000_000), Err(1));
        assert_eq!(allowed(1_003_000), 6);
        assert_eq!(limit.check(&"other", 1_003_000), Ok(()));
        assert_eq!(limit.refused(), 3);
    }

    #[test]
    fn a_limit_per_minute_and_refunds() {
        let limit = RateLimit::per_minute(5);
        let allowed = |now_ms| (0..100).take_while(|_| limit.check(&"k", now_ms).is_ok()).count();
        for _ in 0..100 {
            assert_eq!(limit.check(&"k", 1_000_000), Ok(()));
            limit.refund(&"k");
        }
        assert_eq!(allowed(1_000_000), 5);
        assert_eq!(limit.check(&"k", 1_000_000), Err(12));
        assert_eq!(allowed(1_012_000), 1);
        assert_eq!(allowed(1_072_000), 5);
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_no_caller() {
        let limit = RateLimit::new(2);
        while limit.check(&"k", 9_000_000).is_ok() {}
        assert_eq!(limit.check(&"k", 1_000_000), Ok(()));
    }

    #[test]
    fn zero_means_no_limit() {
        let limit = RateLimit::new(0);
        assert!((0..10_000).all(|_| limit.check(&1, 5).is_ok()));
    }

    #[test]
    fn memory_is_bounded() {
        let limit = RateLimit::new(1);
        for caller in 0..CALLERS_MAX as u32 + 10 {
            assert_eq!(limit.check(&caller, 1000), Ok(()));
        }
        assert!(limit.empty_at_us.lock().len() <= CALLERS_MAX);
        assert_eq!(limit.evicted(), CALLERS_MAX as u64);
    }
}
