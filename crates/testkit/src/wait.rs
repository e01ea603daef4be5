//! Waiting with a timeout.

use std::fmt::Debug;
use std::time::Duration;

use domain::clock::Stopwatch;

/// Interval between two checks.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// Likewise where checks are cheap: they read memory, or ask over a connection that is open.
const ASYNC_POLL_PERIOD: Duration = Duration::from_millis(10);

/// The bound of a documented time. `make deadlines` asserts the documented value on an otherwise idle machine; beside
/// other tests, which may keep the machine busy for seconds, it is relaxed.
pub fn promised(written: Duration, with_room: Duration) -> Duration {
    if is_held_to_promises() { written } else { with_room }
}

/// Whether the machine is otherwise idle, so that documented times can be asserted.
pub fn is_held_to_promises() -> bool {
    std::env::var_os("ROLLCALL_DEADLINES").is_some()
}

/// Tries until there is a value, and panics after `limit` with what was expected.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut attempt: impl FnMut() -> Option<T>) -> T {
    let since_start = Stopwatch::start();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(since_start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        std::thread::sleep(POLL_PERIOD);
    }
}

/// As [`eventually`], in async code. The limit includes an attempt that hangs.
pub async fn eventually_async<T>(
    what: &str,
    limit: Duration,
    mut attempt: impl AsyncFnMut() -> Option<T>,
) -> T {
    let waiting = async {
        loop {
            if let Some(value) = attempt().await {
                return value;
            }
            tokio::time::sleep(ASYNC_POLL_PERIOD).await;
        }
    };
    let value = tokio::time::timeout(limit, waiting).await;
    value.unwrap_or_else(|_| panic!("waited {limit:?} in vain: {what}"))
}

/// Polls until the value is the expected one, and panics after `limit`, showing the last one.
#[track_caller]
pub fn eventually_equal<T: PartialEq + Debug>(expected: T, limit: Duration, mut read: impl FnMut() -> T) {
    let since_start = Stopwatch::start();
    loop {
        let seen = read();
        if seen == expected {
            return;
        }
        assert!(since_start.elapsed() < limit, "after {limit:?} it is {seen:?}, not {expected:?}");
        std::thread::sleep(POLL_PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_ends_the_wait() {
        let mut calls = 0;
        let seen = eventually("three calls", Duration::from_secs(5), || {
            calls += 1;
            (calls == 3).then_some(calls)
        });
        assert_eq!(seen, 3);
    }

    #[test]
    #[should_panic(expected = "in vain: the moon to fall")]
    fn what_never_happens_is_named() {
        eventually("the moon to fall", Duration::from_millis(1), || None::<()>);
    }

    #[test]
    #[should_panic(expected = "it is 1, not 2")]
    fn the_last_value_seen_is_shown() {
        eventually_equal(2, Duration::from_millis(1), || 1);
    }
}
