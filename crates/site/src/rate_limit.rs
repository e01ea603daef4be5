//! Rate limits per caller: per second with a burst of ten seconds, or per minute with a burst of a minute.

use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use domain::{Counter, RateLimit, RateLimiter};

/// Burst of a limit per second.
const BURST_S: u32 = 10;
/// Busy callers of one limit: half a mebibyte.
const BUSY_CALLERS: usize = 65_536;

/// A rate limit for callers of one kind.
#[derive(Debug)]
pub struct CallerRateLimit {
    limit: RateLimit,
    limiter: RateLimiter,
    /// Keyed, so that no caller can choose another's bucket.
    hasher: RandomState,
    refused: Counter,
}

impl CallerRateLimit {
    /// Zero means no limit.
    pub fn per_s(count: u32) -> Self {
        Self::new(RateLimit::per_s(count, count.saturating_mul(BURST_S)))
    }

    /// Zero means no limit.
    pub fn per_minute(count: u32) -> Self {
        Self::new(RateLimit::new(count, Duration::from_secs(60), count))
    }

    fn new(limit: RateLimit) -> Self {
        let limiter = RateLimiter::new(BUSY_CALLERS);
        CallerRateLimit { limit, limiter, hasher: RandomState::new(), refused: Counter::default() }
    }

    /// Counts a request. Above the limit, returns the seconds until a retry.
    pub fn check(&self, caller: impl Hash, now_ms: u64) -> Result<(), u64> {
        let taken =
            self.limiter.take(self.hasher.hash_one(caller), self.limit, Duration::from_millis(now_ms));
        taken.map_err(|wait| {
            self.refused.increment();
            wait.as_millis().div_ceil(1000).max(1) as u64
        })
    }

    /// Undoes the count of a request that the limit does not apply to.
    pub fn refund(&self, caller: impl Hash) {
        self.limiter.refund(self.hasher.hash_one(caller), self.limit);
    }

    /// Refused requests.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Busy callers displaced by others; they get their burst once more.
    pub fn displaced(&self) -> u64 {
        self.limiter.displaced()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_a_burst_of_ten_seconds_then_the_rate_per_second() {
        let limit = CallerRateLimit::per_s(2);
        let allowed = |now_ms| (0..100).take_while(|_| limit.check("k", now_ms).is_ok()).count();
        assert_eq!(allowed(1_000_000), 20);
        assert_eq!(limit.check("k", 1_000_000), Err(1));
        assert_eq!(allowed(1_003_000), 6);
        assert_eq!(limit.check("other", 1_003_000), Ok(()));
        assert_eq!(limit.refused(), 3);
    }

    #[test]
    fn a_limit_per_minute_and_refunds() {
        let limit = CallerRateLimit::per_minute(5);
        let allowed = |now_ms| (0..100).take_while(|_| limit.check("k", now_ms).is_ok()).count();
        for _ in 0..100 {
            assert_eq!(limit.check("k", 1_000_000), Ok(()));
            limit.refund("k");
        }
        assert_eq!(allowed(1_000_000), 5);
        assert_eq!(limit.check("k", 1_000_000), Err(12));
        assert_eq!(allowed(1_012_000), 1);
        assert_eq!(allowed(1_072_000), 5);
    }

    #[test]
    fn zero_means_no_limit() {
        let limit = CallerRateLimit::per_s(0);
        assert!((0..10_000).all(|_| limit.check(1, 5).is_ok()));
    }
}
