//! Two kinds of time: wall-clock time and monotonic time.
//!
//! A [`WallTime`] is wall-clock time, which users see. Wall clocks step back; a deadline in wall-clock time would then
//! last too long. So deadlines are in monotonic time, which `MonotonicClock` derives from the times passed in.
//!
//! Deliberately absent: detection of leaps ahead. A corrected clock and a suspended machine look alike; a session that
//! a leap makes overdue is probed before it ends (see `heartbeat_state`).

use domain::{Seconds, UnixTime};

/// Wall-clock time in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    pub fn seconds(self) -> UnixTime {
        UnixTime(u32::try_from(self.0 / 1000).unwrap_or(u32::MAX))
    }
}

/// Callers read the clock before they wait for the table, so times arrive slightly out of order. Only a larger step
/// back is a change of the clock.
const OUT_OF_ORDER_MS_MAX: u64 = 2_000;

/// In milliseconds. Starts at the wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MonotonicTime(pub u64);

impl MonotonicTime {
    /// Rounded down.
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0 / 1000).unwrap_or(u32::MAX)
    }

    /// Rounded up, so that a wait until then is long enough.
    pub fn seconds_up(self) -> u32 {
        u32::try_from(self.0.div_ceil(1000)).unwrap_or(u32::MAX)
    }

    pub fn floor(self) -> MonotonicTime {
        MonotonicTime(self.0 - self.0 % 1000)
    }

    pub fn plus(self, length: Seconds) -> MonotonicTime {
        MonotonicTime(self.0.saturating_add(u64::from(length.0) * 1000))
    }

    pub fn since_ms(self, earlier: MonotonicTime) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Derives monotonic time from a wall clock that may step back.
#[derive(Debug)]
pub(crate) struct MonotonicClock {
    latest: MonotonicTime,
    /// The sum of all steps back.
    ahead_ms: u64,
}

impl MonotonicClock {
    pub fn new(now: WallTime) -> MonotonicClock {
        MonotonicClock { latest: MonotonicTime(now.0), ahead_ms: 0 }
    }

    pub fn at(&mut self, now: WallTime) -> MonotonicTime {
        let monotonic = now.0.saturating_add(self.ahead_ms);
        let back_ms = self.latest.0.saturating_sub(monotonic);
        if back_ms > OUT_OF_ORDER_MS_MAX {
            self.ahead_ms += back_ms;
        } else if back_ms == 0 {
            self.latest = MonotonicTime(monotonic);
        }
        self.latest
    }

    /// The wall-clock time at a point of monotonic time.
    pub fn wall_time(&self, monotonic: MonotonicTime) -> WallTime {
        WallTime(monotonic.0.saturating_sub(self.ahead_ms))
    }

    /// The monotonic time of a wall-clock time, if the clock keeps running as it does now.
    pub fn monotonic(&self, at: UnixTime) -> MonotonicTime {
        MonotonicTime((u64::from(at.0) * 1000).saturating_add(self.ahead_ms))
    }

    pub fn monotonic_at(&self, at: WallTime) -> MonotonicTime {
        MonotonicTime(at.0.saturating_add(self.ahead_ms))
    }

    pub fn latest(&self) -> MonotonicTime {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back_for_inputs_out_of_order() {
        let mut clock = MonotonicClock::new(WallTime(10_000));
        assert_eq!(clock.at(WallTime(12_000)), MonotonicTime(12_000));
        assert_eq!(clock.at(WallTime(10_500)), MonotonicTime(12_000));
        assert_eq!(clock.at(WallTime(12_001)), MonotonicTime(12_001));
        assert_eq!(clock.wall_time(MonotonicTime(12_001)), WallTime(12_001));
    }

    #[test]
    fn time_goes_on_when_the_clock_steps_back() {
        let mut clock = MonotonicClock::new(WallTime(1_000_000));
        assert_eq!(clock.at(WallTime(400_000)), MonotonicTime(1_000_000));
        assert_eq!(clock.at(WallTime(401_000)), MonotonicTime(1_001_000));
        assert_eq!(clock.wall_time(MonotonicTime(1_001_000)), WallTime(401_000));
        assert_eq!(clock.monotonic(UnixTime(402)), MonotonicTime(1_002_000));
    }
}
