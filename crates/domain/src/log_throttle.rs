//! Throttles a log line that clients can cause: at most once a minute, with the number of suppressed lines.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::time::{Seconds, UnixTime};

const EVERY: Seconds = Seconds(60);

/// Throttles one log line. The event itself must be counted elsewhere.
#[derive(Debug, Default)]
pub struct LogThrottle {
    /// Time of the last line; zero for never.
    written: AtomicU32,
    left_out: AtomicU64,
}

impl LogThrottle {
    /// `const`, for use in a `static`.
    pub const fn new() -> LogThrottle {
        LogThrottle { written: AtomicU32::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether to write the line now: then the number of suppressed lines since the last one.
    pub fn admit(&self, now: UnixTime) -> Option<u64> {
        let written = self.written.load(Ordering::Relaxed);
        // After a step back of the clock, the line is written.
        let is_due = written == 0 || now < UnixTime(written) || now.since(UnixTime(written)) >= EVERY;
        let is_first = is_due
            && self.written.compare_exchange(written, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_a_minute_with_how_many_were_left_out() {
        let throttle = LogThrottle::default();
        let admitted: Vec<Option<u64>> =
            [1000, 1001, 1059, 1060, 1120, 900].map(|at| throttle.admit(UnixTime(at))).to_vec();
        assert_eq!(admitted, [Some(0), None, None, Some(2), Some(0), Some(0)]);
    }
}
