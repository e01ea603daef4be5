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

const MS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

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

/// Milliseconds since 1970 as RFC 3339 in UTC: `2026-11-15T15:08:32.007Z`.
pub fn rfc3339(ms: u64) -> String {
    // Howard Hinnant's civil_from_days: years begin in March, so that the leap day is the last.
    let days = ms / MS_PER_DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let of_day = ms % MS_PER_DAY;
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
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

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_750_000_000_007, "2025-06-15T15:06:40.007Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
