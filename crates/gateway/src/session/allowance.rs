//! How many commands a connection may send.
//!
//! What is too much is refused, and what is refused is counted against the connection for as long as it would have taken
//! at the allowed pace. So it takes a flood, or a sender that keeps on at more than twice the pace, to be closed; a burst
//! alone, such as of a page that enters all its rooms again, is only told to wait.

use std::time::Duration;

use parking_lot::Mutex;

/// So many seconds' worth may come at once.
const BURST_S: u64 = 5;
/// So many seconds' worth may be refused at once.
const REFUSED_S: u64 = 30;

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

/// What is left of a connection's allowance. There is one, whoever takes from it.
#[derive(Debug, Default)]
pub(super) struct Allowance(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    /// When everything granted so far would be made up for.
    granted: Duration,
    /// When everything refused so far would be.
    refused: Duration,
}

impl Allowance {
    /// Takes one out of `per_s`, at a moment of a clock that never goes back.
    pub(super) fn take(&self, now: Duration, per_s: u32) -> Verdict {
        let cost = Duration::from_secs(1) / per_s.max(1);
        let mut taken = self.0.lock();
        if charge(&mut taken.granted, now, cost, BURST_S) {
            Verdict::Granted
        } else if charge(&mut taken.refused, now, cost, REFUSED_S) {
            Verdict::Refused
        } else {
            Verdict::Enough
        }
    }
}

/// Adds to what is to be made up for, unless that would be more than so many seconds' worth.
fn charge(even_at: &mut Duration, now: Duration, cost: Duration, seconds_max: u64) -> bool {
    let then = (*even_at).max(now) + cost;
    let fits = then - now <= Duration::from_secs(seconds_max);
    if fits {
        *even_at = then;
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_worth_may_come_at_once_and_a_flood_is_enough() {
        let allowance = Allowance::default();
        let now = Duration::from_secs(100);
        let all: Vec<Verdict> = (0..701).map(|_| allowance.take(now, 20)).collect();
        assert!(all[..100].iter().all(|verdict| *verdict == Verdict::Granted));
        assert!(all[100..700].iter().all(|verdict| *verdict == Verdict::Refused));
        assert_eq!(all[700], Verdict::Enough);
        assert_eq!(allowance.take(now + Duration::from_secs(1), 20), Verdict::Granted);
    }

    #[test]
    fn a_steady_sender_within_the_rate_is_never_refused() {
        let allowance = Allowance::default();
        for step in 0..10_000 {
            assert_eq!(allowance.take(Duration::from_millis(50 * step), 20), Verdict::Granted);
        }
    }

    #[test]
    fn who_keeps_on_at_three_times_the_pace_is_closed_and_who_bursts_now_and_then_is_not() {
        let allowance = Allowance::default();
        let outcome = (0..10_000).map(|step| allowance.take(Duration::from_millis(50 * step / 3), 20));
        let verdicts: Vec<Verdict> = outcome.collect();
        // Some are granted all the while, which makes up for nothing.
        let end = verdicts.iter().position(|verdict| *verdict == Verdict::Enough).unwrap();
        assert!((1_500..3_000).contains(&end), "closed after {end}");
        let allowance = Allowance::default();
        for minute in 0..100 {
            for _ in 0..300 {
                assert_ne!(allowance.take(Duration::from_secs(60 * minute), 20), Verdict::Enough);
            }
        }
    }
}
