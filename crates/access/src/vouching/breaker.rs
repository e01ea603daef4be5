//! Leaves an endpoint alone that fails, and finds out when it is well again.
//!
//! After some failures in a row nobody calls for a while. Then one call is made, the probe: if it is answered, calls
//! are made as before; if not, the endpoint is left alone for another while. The probe asks about the passkey of the
//! last failure and needs no client to come by, so that strangers who stay away do not keep the endpoint shut.
//!
//! Time is what has passed since some start, and comes in as an argument.

use std::time::Duration;

use domain::Passkey;

use super::counters::BreakerState;

/// Who decides whether to call.
#[derive(Debug)]
pub(super) struct Breaker {
    failures_max: u32,
    pause: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration, about: Passkey },
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

    /// Whether strangers' calls are made.
    pub(super) fn lets_call(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Begins the probe if it is due: whom to ask about.
    pub(super) fn begin_probe(&mut self, now: Duration) -> Option<Passkey> {
        match self.state {
            State::Open { until, about } if now >= until => {
                self.state = State::Probing;
                Some(about)
            }
            _ => None,
        }
    }

    /// A call was answered. An answer to a call from before the pause counts too: the endpoint answers.
    pub(super) fn hear_answer(&mut self) {
        self.state = State::Closed { failures: 0 };
    }

    /// A call failed. Tells whether the endpoint is left alone from now on, and was not before.
    pub(super) fn hear_failure(&mut self, now: Duration, about: Passkey, was_probe: bool) -> bool {
        let until = now + self.pause;
        match &mut self.state {
            State::Closed { failures } => {
                *failures += 1;
                if *failures < self.failures_max {
                    return false;
                }
                self.state = State::Open { until, about };
                true
            }
            State::Probing if was_probe => {
                self.state = State::Open { until, about };
                false
            }
            // Calls from before the pause say nothing new.
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
    fn w5_failures_in_a_row_open_it_and_one_probe_closes_it() {
        let mut breaker = Breaker::new(3, at(10));
        assert!(!breaker.hear_failure(at(1), passkey(), false));
        assert!(!breaker.hear_failure(at(1), passkey(), false));
        breaker.hear_answer();
        assert!(!breaker.hear_failure(at(2), passkey(), false), "the row was broken");
        assert!(!breaker.hear_failure(at(2), passkey(), false));
        assert!(breaker.hear_failure(at(2), passkey(), false));
        assert!(!breaker.lets_call());
        assert!(!breaker.hear_failure(at(5), passkey(), false), "a late one does not prolong the pause");
        assert_eq!(breaker.begin_probe(at(11)), None);
        assert_eq!(breaker.begin_probe(at(12)), Some(passkey()));
        assert_eq!(breaker.begin_probe(at(12)), None, "one at a time");
        assert!(!breaker.hear_failure(at(13), passkey(), true), "it was left alone before");
        assert_eq!(breaker.begin_probe(at(22)), None);
        assert_eq!(breaker.begin_probe(at(23)), Some(passkey()));
        breaker.hear_answer();
        assert!(breaker.lets_call());
    }
}
