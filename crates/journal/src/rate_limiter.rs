//! A limit on the entries that a view applies per second (J10).

use std::time::Duration;

use domain::clock::Stopwatch;
use parking_lot::Mutex;

/// Spaces batches, for all tasks of one consumer together.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    since_start: Stopwatch,
    /// When the next batch may start, since the start.
    free_at: Mutex<Duration>,
}

impl RateLimiter {
    pub(crate) fn new() -> RateLimiter {
        RateLimiter { since_start: Stopwatch::start(), free_at: Mutex::new(Duration::ZERO) }
    }

    /// How long to wait before so many entries are applied. Zero entries per second mean no limit.
    pub(crate) fn wait_for(&self, entries: usize, per_s_max: u32) -> Duration {
        self.wait_at(self.since_start.elapsed(), entries, per_s_max)
    }

    fn wait_at(&self, now: Duration, entries: usize, per_s_max: u32) -> Duration {
        if per_s_max == 0 {
            return Duration::ZERO;
        }
        let mut free_at = self.free_at.lock();
        // Unused time is not accumulated.
        let start = (*free_at).max(now);
        *free_at = start + Duration::from_secs_f64(entries as f64 / f64::from(per_s_max));
        start - now
    }

    /// Entries per batch: never more than one second's worth.
    pub(crate) fn batch_max(batch_max: usize, per_s_max: u32) -> usize {
        match per_s_max {
            0 => batch_max,
            limit => batch_max.min(limit as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j10_no_more_entries_a_second_than_allowed() {
        let rate_limiter = RateLimiter::new();
        let ms = Duration::from_millis;
        assert_eq!(rate_limiter.wait_at(ms(0), 50, 100), ms(0));
        assert_eq!(rate_limiter.wait_at(ms(100), 100, 100), ms(400), "the first fifty take half a second");
        assert_eq!(rate_limiter.wait_at(ms(9000), 100, 100), ms(0), "idle time is not accumulated");
        assert_eq!(rate_limiter.wait_at(ms(9000), 1, 100), ms(1000));
        assert_eq!(rate_limiter.wait_at(ms(9000), 1_000_000, 0), ms(0), "no limit");
        assert_eq!((RateLimiter::batch_max(1000, 10), RateLimiter::batch_max(1000, 0)), (10, 1000));
    }
}
