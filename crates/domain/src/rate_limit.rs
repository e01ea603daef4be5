//! Rate limits by the generic cell rate algorithm: of a leaky bucket only the time at which it is empty is stored.
//!
//! # Layout
//!
//! - [`RateLimit`]: a rate and a burst
//! - [`LeakyBucket`]: one bucket
//! - [`RateLimiter`]: a bucket per busy key, in a table of fixed size, without locks
//!
//! Times are durations since a fixed moment, such as the Unix epoch or the start. A clock that is set back by more than
//! ten minutes empties the buckets; by less, it does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Counter;

/// A clock step back by up to this much empties no bucket.
const STEP_BACK_MAX_US: i64 = 600_000_000;
const BURST_MAX_US: i64 = 1 << 46;

/// Zero cost means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    cost_us: i64,
    burst_us: i64,
}

impl RateLimit {
    /// `count` requests per `period`, after a burst of `burst`. Zero for either number means no limit. More than a
    /// million per second count as a million.
    pub fn new(count: u32, period: Duration, burst: u32) -> RateLimit {
        if count == 0 || burst == 0 {
            return RateLimit { cost_us: 0, burst_us: 0 };
        }
        let cost_us = (micros(period) / i64::from(count)).max(1);
        RateLimit { cost_us, burst_us: cost_us.saturating_mul(burst.into()).min(BURST_MAX_US) }
    }

    pub fn per_s(count: u32, burst: u32) -> RateLimit {
        RateLimit::new(count, Duration::from_secs(1), burst)
    }

    fn is_off(self) -> bool {
        self.cost_us == 0
    }

    /// Level of a bucket after one more request; else the time until it is allowed.
    fn add(self, level_us: i64) -> Result<i64, Duration> {
        let is_of_later_clock = level_us > self.burst_us + STEP_BACK_MAX_US;
        let level_us = if is_of_later_clock { 0 } else { level_us.max(0) };
        let excess_us = level_us + self.cost_us - self.burst_us;
        match u64::try_from(excess_us) {
            Ok(wait_us) if wait_us > 0 => Err(Duration::from_micros(wait_us)),
            _ => Ok(level_us + self.cost_us),
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeakyBucket {
    empty_at_us: i64,
}

impl LeakyBucket {
    /// Counts a request. Above the limit it is not counted, and the result is the time until one is allowed.
    pub fn take(&mut self, limit: RateLimit, now: Duration) -> Result<(), Duration> {
        if !limit.is_off() {
            let now_us = micros(now);
            self.empty_at_us = now_us + limit.add(self.empty_at_us - now_us)?;
        }
        Ok(())
    }
}

/// Cells that a key may use, so that two busy keys seldom displace each other.
const WAYS: usize = 4;
const TIME_BITS: u32 = 48;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// Keys are hashes; where outsiders choose the keys, hashes must be keyed. A displaced key gets its burst once more, which
/// is counted.
#[derive(Debug)]
pub struct RateLimiter {
    /// A cell has 16 bits of the hash, then 48 bits of the time in microseconds at which the bucket is empty. Zero:
    /// unused.
    groups: Box<[[AtomicU64; WAYS]]>,
    displaced: Counter,
}

impl RateLimiter {
    /// A table for at least `keys` busy keys: eight bytes each.
    pub fn new(keys: usize) -> RateLimiter {
        let groups = keys.div_ceil(WAYS).next_power_of_two();
        RateLimiter {
            groups: (0..groups).map(|_| Default::default()).collect(),
            displaced: Counter::default(),
        }
    }

    /// In keys.
    pub fn capacity(&self) -> usize {
        self.groups.len() * WAYS
    }

    /// Busy keys displaced by others.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// As [`LeakyBucket::take`], for the bucket of this key.
    pub fn take(&self, hash: u64, limit: RateLimit, now: Duration) -> Result<(), Duration> {
        if limit.is_off() {
            return Ok(());
        }
        let (tag, now_us) = (tag_of(hash), micros(now) as u64);
        loop {
            let (cell, old) = self.find_cell(hash, now_us);
            let is_own = old >> TIME_BITS == tag;
            let added_us = limit.add(if is_own { level_us(old, now_us) } else { 0 })?;
            let new = tag << TIME_BITS | (now_us.wrapping_add(added_us as u64) & TIME_MASK);
            if cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                if !is_own && level_us(old, now_us) > 0 {
                    self.displaced.increment();
                }
                return Ok(());
            }
        }
    }

    /// Undoes a [`RateLimiter::take`] that the limit does not apply to.
    pub fn refund(&self, hash: u64, limit: RateLimit) {
        let tag = tag_of(hash);
        let group = &self.groups[hash as usize & (self.groups.len() - 1)];
        for cell in group {
            let refunded = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
                let time_us = old.wrapping_sub(limit.cost_us as u64) & TIME_MASK;
                (old >> TIME_BITS == tag).then_some(tag << TIME_BITS | time_us)
            });
            if refunded.is_ok() {
                return;
            }
        }
    }

    /// The key's own cell, else the one with the lowest level.
    fn find_cell(&self, hash: u64, now_us: u64) -> (&AtomicU64, u64) {
        let tag = tag_of(hash);
        let group = &self.groups[hash as usize & (self.groups.len() - 1)];
        let mut emptiest = (&group[0], group[0].load(Ordering::Relaxed));
        for cell in group {
            let value = cell.load(Ordering::Relaxed);
            if value >> TIME_BITS == tag {
                return (cell, value);
            }
            if level_us(value, now_us) < level_us(emptiest.1, now_us) {
                emptiest = (cell, value);
            }
        }
        emptiest
    }
}

/// Never zero, which marks an unused cell.
fn tag_of(hash: u64) -> u64 {
    (hash >> TIME_BITS).max(1)
}

/// Microseconds until the bucket of a cell is empty; zero or less if it is.
fn level_us(cell: u64, now_us: u64) -> i64 {
    if cell == 0 {
        return 0;
    }
    // Modulo 48 bits, as a signed number: four years to either side.
    let shift = u64::BITS - TIME_BITS;
    ((cell << shift).wrapping_sub(now_us << shift) as i64) >> shift
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_700_000_000);
    const LIMIT: fn() -> RateLimit = || RateLimit::per_s(10, 20);

    fn allowed(limiter: &RateLimiter, hash: u64, now: Duration) -> usize {
        (0..1000).take_while(|_| limiter.take(hash, LIMIT(), now).is_ok()).count()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = LeakyBucket::default();
        let mut taken = |ms| {
            let now = Duration::from_millis(ms);
            (0..1000).take_while(|_| bucket.take(LIMIT(), now).is_ok()).count()
        };
        assert_eq!((taken(0), taken(99), taken(100), taken(50), taken(350)), (20, 0, 1, 0, 2));
        assert_eq!(taken(3_600_000), 20, "idle time adds no more than the burst");
        assert_eq!(bucket.take(LIMIT(), Duration::from_secs(3600)), Err(Duration::from_millis(100)));
    }

    #[test]
    fn each_key_has_its_own_bucket() {
        let limiter = RateLimiter::new(1000);
        let (one, other) = (7 << 48 | 1, 8 << 48 | 1);
        assert_eq!((allowed(&limiter, one, NOW), allowed(&limiter, one, NOW)), (20, 0));
        assert_eq!(allowed(&limiter, other, NOW), 20, "another key in the same cells");
        assert_eq!(allowed(&limiter, one, NOW + Duration::from_secs(1)), 10);
        assert_eq!(limiter.displaced(), 0);
    }

    #[test]
    fn a_refund_undoes_a_request() {
        let limiter = RateLimiter::new(4);
        for _ in 0..100 {
            assert_eq!(limiter.take(5, LIMIT(), NOW), Ok(()));
            limiter.refund(5, LIMIT());
        }
        assert_eq!(allowed(&limiter, 5, NOW), 20);
        limiter.refund(1 << 60 | 5, LIMIT());
        assert_eq!(allowed(&limiter, 5, NOW), 0, "of its own bucket only");
    }

    #[test]
    fn a_clock_set_back_by_hours_blocks_no_key_and_a_step_of_seconds_empties_no_bucket() {
        let limiter = RateLimiter::new(4);
        assert_eq!(allowed(&limiter, 5, NOW), 20);
        assert_eq!(allowed(&limiter, 5, NOW - Duration::from_secs(5)), 0);
        assert_eq!(allowed(&limiter, 5, NOW), 0, "and nothing leaks twice afterwards");
        assert_eq!(allowed(&limiter, 5, NOW - Duration::from_secs(8000)), 20);
    }

    #[test]
    fn zero_means_no_limit() {
        let limiter = RateLimiter::new(4);
        for limit in [RateLimit::per_s(0, 5), RateLimit::per_s(5, 0)] {
            assert!((0..10_000).all(|_| limiter.take(5, limit, NOW).is_ok()));
        }
    }

    #[test]
    fn memory_is_bounded_and_displaced_busy_keys_are_counted() {
        let limiter = RateLimiter::new(1000);
        assert_eq!(limiter.capacity(), 1024);
        let take = |number: u64, now| limiter.take((number << 48) | (number % 256), LIMIT(), now).is_ok();
        assert!((1..=1024).all(|number| take(number, NOW)));
        assert_eq!(limiter.displaced(), 0);
        assert!((2001..=2256).all(|number| take(number, NOW)));
        assert_eq!(limiter.displaced(), 256);
        assert!((3001..=3256).all(|number| take(number, NOW + Duration::from_secs(60))));
        assert_eq!(limiter.displaced(), 256, "an empty bucket is not counted as displaced");
    }
}
