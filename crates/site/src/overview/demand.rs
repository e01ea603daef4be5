//! Whether the overview is asked for: otherwise it is computed for its history only.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Interval while it is asked for.
const WATCHED_INTERVAL: Duration = Duration::from_secs(1);
/// Interval otherwise: a step of the history.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(super::history::STEP_S as u64);
/// How long a request counts.
const WATCHED_FOR: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Demand {
    last: Mutex<Option<Instant>>,
    begins: Notify,
}

impl Demand {
    /// Notes a request. True if there was none for a while, so that the last overview may be old.
    pub(super) fn ask(&self) -> bool {
        let now = Instant::now();
        let before = self.last.lock().replace(now);
        let begins = pause_after(before, now) == UNWATCHED_INTERVAL;
        if begins {
            self.begins.notify_waiters();
        }
        begins
    }

    /// Until the next overview is due; the first request after a while ends it.
    pub(super) async fn pause(&self) {
        let begins = self.begins.notified();
        let pause = pause_after(*self.last.lock(), Instant::now());
        let _ = tokio::time::timeout(pause, begins).await;
    }
}

fn pause_after(asked: Option<Instant>, now: Instant) -> Duration {
    match asked {
        Some(asked) if now < asked + WATCHED_FOR => WATCHED_INTERVAL,
        _ => UNWATCHED_INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_short_while_there_are_requests() {
        let now = Instant::now();
        assert_eq!(pause_after(None, now), UNWATCHED_INTERVAL);
        assert_eq!(pause_after(Some(now), now), WATCHED_INTERVAL);
        assert_eq!(pause_after(Some(now), now + WATCHED_FOR), UNWATCHED_INTERVAL);
    }

    #[tokio::test]
    async fn a_first_request_ends_the_long_pause() {
        let demand = Demand::default();
        let asked = async { (demand.ask(), demand.ask()) };
        // Would last for ten seconds otherwise.
        let ended = tokio::time::timeout(UNWATCHED_INTERVAL / 2, demand.pause());
        let (ended, asked) = tokio::join!(ended, asked);
        assert!(ended.is_ok());
        assert_eq!(asked, (true, false));
    }
}
