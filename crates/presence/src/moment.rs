//! Two kinds of time: what the clock says, and what has really passed.
//!
//! A [`Moment`] is what the clock says; people are shown moments. Clocks step back, and somebody who was heard "an hour
//! from now" would then be here for an hour without a sign of life. So deadlines are kept in a time of our own that
//! never goes back, which `Timeline` makes of the moments that come in.
//!
//! Deliberately absent: leaps ahead. They may be a corrected clock or a machine that slept, and look alike; what a leap
//! makes overdue is asked before it is given up (see `pulse`).

use domain::{Seconds, UnixTime};

/// A moment by the clock, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// The moment in whole seconds.
    pub fn seconds(self) -> UnixTime {
        UnixTime(u32::try_from(self.0 / 1000).unwrap_or(u32::MAX))
    }
}

/// Callers read the clock before they wait for the roster, so moments come out of order by a little. Only a step back by
/// more than this is the clock's.
const OUT_OF_ORDER_MS_MAX: u64 = 2_000;

/// Time that never goes back, in milliseconds. Starts as the clock's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Steady(pub u64);

impl Steady {
    /// Whole seconds, the past one.
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0 / 1000).unwrap_or(u32::MAX)
    }

    /// Whole seconds, the next one: who waits for it has waited long enough.
    pub fn seconds_up(self) -> u32 {
        u32::try_from(self.0.div_ceil(1000)).unwrap_or(u32::MAX)
    }

    /// The beginning of this second.
    pub fn floor(self) -> Steady {
        Steady(self.0 - self.0 % 1000)
    }

    /// So much later.
    pub fn plus(self, length: Seconds) -> Steady {
        Steady(self.0.saturating_add(u64::from(length.0) * 1000))
    }

    /// Milliseconds since `earlier`.
    pub fn since_ms(self, earlier: Steady) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Makes a time that never goes back of one that does.
#[derive(Debug)]
pub(crate) struct Timeline {
    latest: Steady,
    /// How far the clock has stepped back in all.
    ahead_ms: u64,
}

impl Timeline {
    pub fn new(now: Moment) -> Timeline {
        Timeline { latest: Steady(now.0), ahead_ms: 0 }
    }

    /// What this moment is in steady time.
    pub fn at(&mut self, now: Moment) -> Steady {
        let steady = now.0.saturating_add(self.ahead_ms);
        let back_ms = self.latest.0.saturating_sub(steady);
        if back_ms > OUT_OF_ORDER_MS_MAX {
            self.ahead_ms += back_ms;
        } else if back_ms == 0 {
            self.latest = Steady(steady);
        }
        self.latest
    }

    /// What the clock would say at this point of steady time.
    pub fn moment(&self, steady: Steady) -> Moment {
        Moment(steady.0.saturating_sub(self.ahead_ms))
    }

    /// Where a moment of the clock lies in steady time, as the clock goes now.
    pub fn steady(&self, at: UnixTime) -> Steady {
        Steady((u64::from(at.0) * 1000).saturating_add(self.ahead_ms))
    }

    /// Likewise, by the millisecond.
    pub fn steady_at(&self, at: Moment) -> Steady {
        Steady(at.0.saturating_add(self.ahead_ms))
    }

    /// The latest point of steady time.
    pub fn latest(&self) -> Steady {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_for_what_comes_out_of_order() {
        let mut timeline = Timeline::new(Moment(10_000));
        assert_eq!(timeline.at(Moment(12_000)), Steady(12_000));
        assert_eq!(timeline.at(Moment(10_500)), Steady(12_000));
        assert_eq!(timeline.at(Moment(12_001)), Steady(12_001));
        assert_eq!(timeline.moment(Steady(12_001)), Moment(12_001));
    }

    #[test]
    fn time_goes_on_when_the_clock_steps_back() {
        let mut timeline = Timeline::new(Moment(1_000_000));
        assert_eq!(timeline.at(Moment(400_000)), Steady(1_000_000));
        assert_eq!(timeline.at(Moment(401_000)), Steady(1_001_000));
        assert_eq!(timeline.moment(Steady(1_001_000)), Moment(401_000));
        assert_eq!(timeline.steady(UnixTime(402)), Steady(1_002_000));
    }
}
