//! Rate limit of commands, per connection.
//!
//! Commands beyond the limit are refused, and refused commands are counted for as long as they would have taken at
//! the allowed rate. So only a flood, or a sender that keeps on at more than twice the rate, is closed; a burst
//! alone, such as of a page that enters all its rooms again, is refused with a temporary error.

use std::time::Duration;

use domain::{LeakyBucket, RateLimit};
use parking_lot::Mutex;

/// Burst, in seconds of the rate.
const BURST_S: u32 = 5;
/// Refused commands before the connection is closed, in seconds of the rate.
const REFUSED_S: u32 = 30;

/// Whether one more command is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateVerdict {
    Granted,
    Refused,
    /// Refused; the connection is to be closed.
    Abusive,
}

/// Shared by the session and the command handler.
#[derive(Debug, Default)]
pub(super) struct CommandRateLimit(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    granted: LeakyBucket,
    refused: LeakyBucket,
}

impl CommandRateLimit {
    /// Takes one command at the rate `per_s`. `now` must be monotonic.
    pub(super) fn take(&self, now: Duration, per_s: u32) -> RateVerdict {
        let per_s = per_s.max(1);
        let limit = |burst_s| RateLimit::per_s(per_s, per_s.saturating_mul(burst_s));
        let mut taken = self.0.lock();
        if taken.granted.take(limit(BURST_S), now).is_ok() {
            RateVerdict::Granted
        } else if taken.refused.take(limit(REFUSED_S), now).is_ok() {
            RateVerdict::Refused
        } else {
            RateVerdict::Abusive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_five_seconds_is_accepted_and_a_flood_closes() {
        let rate_limit = CommandRateLimit::default();
        let now = Duration::from_secs(100);
        let all: Vec<RateVerdict> = (0..701).map(|_| rate_limit.take(now, 20)).collect();
        assert!(all[..100].iter().all(|verdict| *verdict == RateVerdict::Granted));
        assert!(all[100..700].iter().all(|verdict| *verdict == RateVerdict::Refused));
        assert_eq!(all[700], RateVerdict::Abusive);
        assert_eq!(rate_limit.take(now + Duration::from_secs(1), 20), RateVerdict::Granted);
    }

    #[test]
    fn a_steady_sender_within_the_rate_is_never_refused() {
        let rate_limit = CommandRateLimit::default();
        for step in 0..10_000 {
            assert_eq!(rate_limit.take(Duration::from_millis(50 * step), 20), RateVerdict::Granted);
        }
    }

    #[test]
    fn a_sender_at_three_times_the_rate_is_closed_and_one_with_bursts_is_not() {
        let rate_limit = CommandRateLimit::default();
        let outcome = (0..10_000).map(|step| rate_limit.take(Duration::from_millis(50 * step / 3), 20));
        let verdicts: Vec<RateVerdict> = outcome.collect();
        // Some are granted all the while, which makes up for nothing.
        let end = verdicts.iter().position(|verdict| *verdict == RateVerdict::Abusive).unwrap();
        assert!((1_500..3_000).contains(&end), "closed after {end}");
        let rate_limit = CommandRateLimit::default();
        for minute in 0..100 {
            for _ in 0..300 {
                assert_ne!(rate_limit.take(Duration::from_secs(60 * minute), 20), RateVerdict::Abusive);
            }
        }
    }
}
