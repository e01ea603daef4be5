//! A line of the log that is written once a minute at most, however often there is a reason for it.

use std::time::Duration;

use domain::clock::Stopwatch;
use parking_lot::Mutex;

/// How often the line is written.
const EVERY: Duration = Duration::from_secs(60);

/// Counts reasons for a line, and says when to write it.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since_line: Option<Stopwatch>,
    unwritten: u64,
}

impl LogThrottle {
    /// One more reason. If the line is to be written now: how many reasons there were since the last one, this included.
    pub fn count(&self) -> Option<u64> {
        let mut state = self.0.lock();
        state.unwritten += 1;
        if state.since_line.as_ref().is_some_and(|since| since.elapsed() < EVERY) {
            return None;
        }
        state.since_line = Some(Stopwatch::start());
        Some(std::mem::take(&mut state.unwritten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_is_written_and_the_next_within_a_minute_are_not() {
        let throttle = LogThrottle::default();
        assert_eq!(throttle.count(), Some(1));
        assert_eq!([throttle.count(), throttle.count()], [None, None]);
    }
}
