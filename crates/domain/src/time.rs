//! Seconds as types: points in time and durations are different.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub u32);

/// Whole seconds since 1970, up to the year 2106.
///
/// 32 bits, because millions of records contain one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u32);

/// Times further ahead are rejected by every view: clocks of servers differ by less.
pub const AHEAD_MAX: Seconds = Seconds(60);

/// Upper bound of intervals that are taken into account; other producers may write any number.
const INTERVAL_MAX: Seconds = Seconds(7 * 24 * 60 * 60);

/// How long a peer may be silent before it expires (A4): one rule for swarms, accounts, activity lists and the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimit {
    /// The announce interval of our own trackers.
    pub interval: Seconds,
    /// How much later than its interval a peer may announce.
    pub grace: Seconds,
}

impl SilenceLimit {
    /// For a peer that was sent this interval. A shorter interval than the default, as for a torrent that awaits
    /// approval, changes nothing.
    pub fn of(&self, sent: Seconds) -> Seconds {
        self.interval.max(sent.min(INTERVAL_MAX)) + self.grace
    }

    /// For a peer that was sent the default interval.
    pub fn usual(&self) -> Seconds {
        self.interval + self.grace
    }
}

impl Default for SilenceLimit {
    fn default() -> Self {
        SilenceLimit { interval: Seconds(1800), grace: Seconds(600) }
    }
}

impl UnixTime {
    /// Zero if `earlier` is later (clocks step back).
    pub fn since(self, earlier: UnixTime) -> Seconds {
        Seconds(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Seconds> for UnixTime {
    type Output = UnixTime;
    fn add(self, length: Seconds) -> UnixTime {
        UnixTime(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Seconds> for UnixTime {
    fn add_assign(&mut self, length: Seconds) {
        *self = *self + length;
    }
}

impl Sub<Seconds> for UnixTime {
    type Output = UnixTime;
    fn sub(self, length: Seconds) -> UnixTime {
        UnixTime(self.0.saturating_sub(length.0))
    }
}

impl Add for Seconds {
    type Output = Seconds;
    fn add(self, other: Seconds) -> Seconds {
        Seconds(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0)
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a4_a_longer_interval_lengthens_the_silence_and_a_shorter_one_does_not() {
        let limit = SilenceLimit::default();
        assert_eq!(limit.usual(), Seconds(2400));
        assert_eq!(limit.of(Seconds(60)), Seconds(2400));
        assert_eq!(limit.of(Seconds(7200)), Seconds(7800));
        assert_eq!(limit.of(Seconds(u32::MAX)), Seconds(7 * 24 * 60 * 60 + 600));
    }
}
