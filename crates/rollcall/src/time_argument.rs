//! Points in time on the command line.

use std::str::FromStr;

use domain::UnixTime;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a duration from now (90s, 30m, 48h, 7d, 2w), a date in UTC (2026-12-31 or 2026-12-31T18:00), or seconds \
     since 1970"
)]
pub struct InvalidTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeArgument {
    /// Seconds from now.
    In(u32),
    At(UnixTime),
}

impl TimeArgument {
    pub fn after(self, now: UnixTime) -> UnixTime {
        match self {
            TimeArgument::In(seconds) => UnixTime(now.0.saturating_add(seconds)),
            TimeArgument::At(at) => at,
        }
    }
}

impl FromStr for TimeArgument {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<TimeArgument, InvalidTime> {
        if let Some(seconds) = digits(text) {
            return Ok(TimeArgument::At(UnixTime(seconds)));
        }
        for (unit, length) in [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 7 * 86_400)] {
            if let Some(count) = text.strip_suffix(unit) {
                let seconds = digits(count).and_then(|count| count.checked_mul(length));
                return seconds.map(TimeArgument::In).ok_or(InvalidTime);
            }
        }
        date(text).map(TimeArgument::At).ok_or(InvalidTime)
    }
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `2026-12-31`, `2026-12-31T18:00` or with seconds; an optional `Z` follows.
fn date(text: &str) -> Option<UnixTime> {
    let text = text.trim_end_matches('Z');
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let within = |text: &str, min: u32, max: u32| -> Option<i64> {
        digits(text).filter(|number| (min..=max).contains(number)).map(i64::from)
    };
    let mut parts = day.splitn(3, '-');
    let year = within(parts.next()?, 1970, 2105)?;
    let month = within(parts.next()?, 1, 12)?;
    let day = within(parts.next()?, 1, days_in(year, month))?;
    let mut parts = time.splitn(3, ':');
    let hours = within(parts.next()?, 0, 23)?;
    let minutes = within(parts.next()?, 0, 59)?;
    let seconds = within(parts.next().unwrap_or("0"), 0, 59)?;
    let at = days_since_1970(year, month, day) * 86_400 + hours * 3_600 + minutes * 60 + seconds;
    u32::try_from(at).ok().map(UnixTime)
}

fn days_in(year: i64, month: i64) -> u32 {
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Howard Hinnant's days_from_civil.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_arguments_are_times_from_now_dates_or_seconds() {
        let now = UnixTime(1_000_000_000);
        for (text, at) in [
            ("48h", 1_000_172_800),
            ("90s", 1_000_000_090),
            ("30m", 1_000_001_800),
            ("7d", 1_000_604_800),
            ("1794900000", 1_794_900_000),
            ("2026-11-17", 1_794_873_600),
            ("2026-11-17T07:20", 1_794_900_000),
            ("2026-11-17 07:20:01", 1_794_900_001),
            ("2000-02-29T12:15:00Z", 951_826_500),
        ] {
            assert_eq!(text.parse::<TimeArgument>().unwrap().after(now), UnixTime(at), "{text}");
        }
        for text in ["", "h", "-1h", "2026-02-29", "2026-13-01", "2026-11-17T24:00", "99999999999", "5y"] {
            assert_eq!(text.parse::<TimeArgument>(), Err(InvalidTime), "{text}");
        }
    }
}
