//! A circuit breaker: after failures in a row, calls stop for a pause, then one call probes the service.

use std::time::Duration;

/// Times are durations since a fixed moment. The caller makes one probe at a time.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    failures_max: u32,
    /// In a row.
    failures: u32,
    probe_at: Duration,
}

impl CircuitBreaker {
    /// Opens at `failures_max` failures in a row.
    pub fn new(failures_max: u32) -> Self {
        CircuitBreaker { failures_max: failures_max.max(1), failures: 0, probe_at: Duration::ZERO }
    }

    pub fn is_open(&self) -> bool {
        self.failures >= self.failures_max
    }

    /// When the next probe is due; none while closed.
    pub fn probe_at(&self) -> Option<Duration> {
        self.is_open().then_some(self.probe_at)
    }

    /// Closes it, also after a call that began before it opened. Returns whether it was open.
    pub fn on_success(&mut self) -> bool {
        let was_open = self.is_open();
        self.failures = 0;
        was_open
    }

    /// `pause` is the time to the next probe. Returns whether this failure opened it. Calls that began before it opened
    /// and fail during the pause do not extend it.
    pub fn on_failure(&mut self, now: Duration, pause: impl FnOnce() -> Duration) -> bool {
        let was_open = self.is_open();
        self.failures = self.failures.saturating_add(1);
        if self.is_open() && (!was_open || now >= self.probe_at) {
            self.probe_at = now + pause();
        }
        !was_open && self.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn w5_failures_in_a_row_open_it_and_a_success_closes_it() {
        let mut breaker = CircuitBreaker::new(3);
        let fail = |breaker: &mut CircuitBreaker, now| breaker.on_failure(at(now), || at(10));
        assert!(!fail(&mut breaker, 1) && !fail(&mut breaker, 1));
        assert!(!breaker.on_success());
        assert!(!fail(&mut breaker, 2) && !fail(&mut breaker, 2), "a success resets the count");
        assert_eq!(breaker.probe_at(), None);
        assert!(fail(&mut breaker, 2) && breaker.is_open());
        assert!(!fail(&mut breaker, 5));
        assert_eq!(breaker.probe_at(), Some(at(12)), "a late failure does not extend the pause");
        assert!(!fail(&mut breaker, 13), "it was open before");
        assert_eq!(breaker.probe_at(), Some(at(23)));
        assert!(breaker.on_success() && !breaker.is_open());
    }
}
