//! Circuit breaker of the verify endpoint.
//!
//! Consecutive failures open it, and no calls are made for a pause. Then the verifier makes one call, the probe, with the
//! passkey of the last failure: an answer closes the breaker, a failure starts another pause. The probe does not depend
//! on new requests.
//!
//! Times are durations since the verifier's start.

use std::time::Duration;

use domain::Passkey;

use super::counters::BreakerState;

#[derive(Debug)]
pub(super) struct Breaker {
    failures_max: u32,
    pause: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration, probe: Passkey },
    Probing,
}

impl Breaker {
    pub(super) fn new(failures_max: u32, pause: Duration) -> Self {
        Breaker { failures_max: failures_max.max(1), pause, state: State::Closed { failures: 0 } }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::Probing => BreakerState::Probing,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// The passkey to probe with, if a probe is due.
    pub(super) fn begin_probe(&mut self, now: Duration) -> Option<Passkey> {
        match self.state {
            State::Open { until, probe } if now >= until => {
                self.state = State::Probing;
                Some(probe)
            }
            _ => None,
        }
    }

    /// The answer to a call that was made before the breaker opened closes it, too.
    pub(super) fn on_answer(&mut self) {
        self.state = State::Closed { failures: 0 };
    }

    /// Returns whether this failure opened the breaker.
    pub(super) fn on_failure(&mut self, now: Duration, passkey: Passkey, was_probe: bool) -> bool {
        let open = State::Open { until: now + self.pause, probe: passkey };
        match &mut self.state {
            State::Closed { failures } => {
                *failures += 1;
                if *failures < self.failures_max {
                    return false;
                }
                self.state = open;
                true
            }
            State::Probing if was_probe => {
                self.state = open;
                false
            }
            // A call that was made before the breaker opened.
            State::Open { .. } | State::Probing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn passkey() -> Passkey {
        "0123456789abcdef".parse().expect("16 digits")
    }

    #[test]
    fn w5_consecutive_failures_open_it_and_one_answered_probe_closes_it() {
        let mut breaker = Breaker::new(3, at(10));
        assert!(!breaker.on_failure(at(1), passkey(), false));
        assert!(!breaker.on_failure(at(1), passkey(), false));
        breaker.on_answer();
        assert!(!breaker.on_failure(at(2), passkey(), false), "an answer resets the count");
        assert!(!breaker.on_failure(at(2), passkey(), false));
        assert!(breaker.on_failure(at(2), passkey(), false));
        assert!(!breaker.is_closed());
        assert!(!breaker.on_failure(at(5), passkey(), false), "a late failure does not prolong the pause");
        assert_eq!(breaker.begin_probe(at(11)), None);
        assert_eq!(breaker.begin_probe(at(12)), Some(passkey()));
        assert_eq!(breaker.begin_probe(at(12)), None, "one probe at a time");
        assert!(!breaker.on_failure(at(13), passkey(), true), "it was open before");
        assert_eq!(breaker.begin_probe(at(22)), None);
        assert_eq!(breaker.begin_probe(at(23)), Some(passkey()));
        breaker.on_answer();
        assert!(breaker.is_closed());
    }
}
