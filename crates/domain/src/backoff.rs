//! Delays between retries: exponential, with jitter, within bounds.

use std::time::Duration;

use fastrand::Rng;

/// Delays that double from `min` to `max`, each shortened at random by up to a half, so that processes that failed
/// together do not retry together.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
    random: Rng,
}

impl Backoff {
    pub fn new(min: Duration, max: Duration) -> Self {
        Self::with_rng(min, max, Rng::new())
    }

    pub fn with_rng(min: Duration, max: Duration, random: Rng) -> Self {
        Backoff { min, max, failures: 0, random }
    }

    /// The delay after another failure.
    pub fn next_delay(&mut self) -> Duration {
        let earlier = self.failures;
        self.failures = earlier.saturating_add(1);
        self.delay_after(earlier)
    }

    /// The delay after a failure that followed `earlier` others in a row, for callers that count failures themselves.
    pub fn delay_after(&mut self, earlier: u32) -> Duration {
        let whole = self.min.saturating_mul(1 << earlier.min(20)).min(self.max);
        whole.mul_f64(0.5 + self.random.f64() / 2.0)
    }

    /// After a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_bounds_until_reset() {
        let (min, max) = (Duration::from_millis(20), Duration::from_secs(2));
        let mut backoff = Backoff::new(min, max);
        let delays: Vec<Duration> = (0..50).map(|_| backoff.next_delay()).collect();
        assert!(delays[0] >= min / 2 && delays[0] <= min);
        assert!(delays[3] >= min * 4 && delays[3] <= min * 8);
        assert!(delays.iter().all(|delay| *delay <= max));
        assert!(delays[40] >= max / 2);
        backoff.reset();
        assert!(backoff.next_delay() <= min);
        assert!(backoff.delay_after(u32::MAX) >= max / 2);
    }
}
