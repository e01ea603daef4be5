//! How many commands a connection may send.

use std::time::Duration;

/// So many seconds' worth may come at once.
const BURST_S: u32 = 5;

/// Whether one more command is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Yes.
    Granted,
    /// No; later.
    Refused,
    /// No, and whoever sends so many is to go.
    Enough,
}

/// What is left of a connection's allowance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// When everything granted so far would be made up for.
    even_at: Duration,
    /// How many were refused since the last one that was not.
    refused: u32,
}

impl Allowance {
    /// Takes one out of `per_s`, at a moment of a clock that never goes back.
    pub(super) fn take(&mut self, now: Duration, per_s: u32) -> Verdict {
        let cost = Duration::from_secs(1) / per_s.max(1);
        let even_at = self.even_at.max(now) + cost;
        if even_at - now <= Duration::from_secs(u64::from(BURST_S)) {
            *self = Allowance { even_at, refused: 0 };
            return Verdict::Granted;
        }
        self.refused = self.refused.saturating_add(1);
        if self.refused > per_s.saturating_mul(BURST_S) { Verdict::Enough } else { Verdict::Refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_worth_may_come_at_once_and_twice_as_much_is_enough() {
        let mut allowance = Allowance::default();
        let now = Duration::from_secs(100);
        let all: Vec<Verdict> = (0..201).map(|_| allowance.take(now, 20)).collect();
        assert!(all[..100].iter().all(|verdict| *verdict == Verdict::Granted));
        assert!(all[100..200].iter().all(|verdict| *verdict == Verdict::Refused));
        assert_eq!(all[200], Verdict::Enough);
        assert_eq!(allowance.take(now + Duration::from_secs(1), 20), Verdict::Granted);
    }

    #[test]
    fn a_steady_sender_within_the_rate_is_never_refused() {
        let mut allowance = Allowance::default();
        for step in 0..10_000 {
            assert_eq!(allowance.take(Duration::from_millis(50 * step), 20), Verdict::Granted);
        }
    }
}
