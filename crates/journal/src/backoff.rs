//! Delays between retries: exponential, with jitter, within bounds.

use std::time::Duration;

use fastrand::Rng;

/// Delays that double from `least` to `most`, each shortened by a random part, so that clients that failed together do
/// not retry together.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    most: Duration,
    attempt: u32,
    random: Rng,
}

impl Backoff {
    pub fn new(least: Duration, most: Duration) -> Self {
        Backoff { least, most, attempt: 0, random: Rng::new() }
    }

    pub fn pause(&mut self) -> Duration {
        let whole = self.least.saturating_mul(1 << self.attempt.min(20)).min(self.most);
        self.attempt = self.attempt.saturating_add(1);
        whole.mul_f64(0.5 + self.random.f64() / 2.0)
    }

    pub fn reset(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_bounds_until_reset() {
        let (least, most) = (Duration::from_millis(20), Duration::from_secs(2));
        let mut backoff = Backoff::new(least, most);
        let pauses: Vec<Duration> = (0..50).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= least / 2 && pauses[0] <= least);
        assert!(pauses.iter().all(|pause| *pause <= most));
        assert!(pauses[40] >= most / 2);
        backoff.reset();
        assert!(backoff.pause() <= least);
    }
}
