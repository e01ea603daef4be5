//! Rate limits: so many requests a second for each of many callers, ten seconds' worth at once; or so many a minute, all
//! of them at once.
//!
//! Each caller has a theoretical origin time (GCRA): the moment at which its bucket would be empty again. One number a
//! caller, no timers.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::HashMap;
use parking_lot::Mutex;

/// How many seconds' worth may come at once.
const BURST_US: u64 = 10 * SECOND_US;
const SECOND_US: u64 = 1_000_000;
/// Callers that are remembered. When there are more, those who have been quiet are forgotten first.
const CALLERS_MAX: usize = 100_000;

/// Limits callers of one kind.
#[derive(Debug)]
pub struct RateLimit<K> {
    /// What each request costs; zero means no limit.
    cost_us: u64,
    /// How much may be spent at once.
    burst_us: u64,
    /// When each caller's bucket is empty again, in microseconds.
    empty_at_us: Mutex<HashMap<K, u64>>,
    refused: AtomicU64,
    forgotten: AtomicU64,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// So many a second; zero means no limit.
    pub fn new(per_s: u32) -> Self {
        let cost_us = if per_s == 0 { 0 } else { (SECOND_US / u64::from(per_s)).max(1) };
        Self::with(cost_us, BURST_US)
    }

    /// So many a minute, all of them at once if they like; zero means no limit.
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
            forgotten: AtomicU64::new(0),
        }
    }

    /// Counts one request. If it is one too many: after how many seconds to come back.
    pub fn check(&self, caller: &K, now_ms: u64) -> Result<(), u64> {
        if self.cost_us == 0 {
            return Ok(());
        }
        let now_us = now_ms * 1000;
        let horizon_us = now_us + self.burst_us;
        let mut callers = self.empty_at_us.lock();
        // What lies further ahead than a burst was noted before the clock was set back.
        let noted_us = callers.get(caller).copied().filter(|noted_us| *noted_us <= horizon_us);
        let empty_at_us = noted_us.unwrap_or(0).max(now_us) + self.cost_us;
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

    /// Takes back what was counted: it was none of those that are limited.
    pub fn refund(&self, caller: &K) {
        if let Some(empty_at_us) = self.empty_at_us.lock().get_mut(caller) {
            *empty_at_us = empty_at_us.saturating_sub(self.cost_us);
        }
    }

    /// Forgets who has been quiet; if all are busy, everybody: a limit that forgets is better than memory without
    /// bound, and better than turning strangers away because others are busy.
    fn make_room(&self, callers: &mut HashMap<K, u64>, now_us: u64) {
        callers.retain(|_, empty_at_us| *empty_at_us > now_us);
        if callers.len() >= CALLERS_MAX {
            self.forgotten.fetch_add(callers.len() as u64, Ordering::Relaxed);
            callers.clear();
        }
    }

    /// Requests that were one too many.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Callers that were forgotten while they were busy.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_ten_seconds_worth_at_once_then_so_many_a_second() {
        let limit = RateLimit::new(2);
        let allowed = |now_ms| (0..100).take_while(|_| limit.check(&"k", now_ms).is_ok()).count();
        assert_eq!(allowed(1_000_000), 20);
        assert_eq!(limit.check(&"k", 1_000_000), Err(1));
        assert_eq!(allowed(1_003_000), 6);
        assert_eq!(limit.check(&"other", 1_003_000), Ok(()));
        assert_eq!(limit.refused(), 3);
    }

    #[test]
    fn so_many_a_minute_and_what_is_given_back_does_not_count() {
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
    fn a_clock_that_is_set_back_locks_nobody_out() {
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
        assert_eq!(limit.forgotten(), CALLERS_MAX as u64);
    }
}
