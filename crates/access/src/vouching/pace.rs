//! So many calls a second, and no more: a second's worth may be made at once.

use std::time::Duration;

/// A bucket of calls that fills as time passes. Time is what has passed since some start.
#[derive(Debug)]
pub(super) struct Pace {
    per_s: u32,
    /// In billionths of a call.
    saved: u64,
    as_of: Duration,
}

const CALL: u64 = 1_000_000_000;

impl Pace {
    pub(super) fn new(per_s: u32) -> Self {
        Pace::full(per_s, Duration::ZERO)
    }

    /// One that is full at this moment.
    pub(super) fn full(per_s: u32, as_of: Duration) -> Self {
        let per_s = per_s.max(1);
        Pace { per_s, saved: u64::from(per_s) * CALL, as_of }
    }

    /// Whether it has filled up since it was last used: one that is made anew is no different.
    pub(super) fn is_full(&self, now: Duration) -> bool {
        now.saturating_sub(self.as_of) >= Duration::from_secs(1)
    }

    /// Takes one call; false if there is none left.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let passed_ns = u64::try_from(now.saturating_sub(self.as_of).as_nanos()).unwrap_or(u64::MAX);
        let full = u64::from(self.per_s) * CALL;
        self.saved = self.saved.saturating_add(passed_ns.saturating_mul(self.per_s.into())).min(full);
        self.as_of = self.as_of.max(now);
        let has_one = self.saved >= CALL;
        if has_one {
            self.saved -= CALL;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w4_calls_are_limited_to_so_many_a_second() {
        let mut pace = Pace::new(10);
        let taken =
            |pace: &mut Pace, ms: u64| (0..100).filter(|_| pace.take(Duration::from_millis(ms))).count();
        assert_eq!(taken(&mut pace, 0), 10, "a second's worth at once");
        assert_eq!(taken(&mut pace, 99), 0);
        assert_eq!(taken(&mut pace, 100), 1);
        assert_eq!(taken(&mut pace, 50), 0, "a moment that is over brings nothing");
        assert_eq!(taken(&mut pace, 350), 2);
        assert_eq!(taken(&mut pace, 3_600_000), 10, "and no more is saved up");
    }
}
