//! The one module that reads the clock.
//!
//! Everything else takes the time as an argument; `clippy.toml` bans reading it anywhere else. Programs hold a
//! [`SystemClock`], tests a [`ManualClock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Seconds, UnixTime};

/// Something that knows what time it is.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> UnixTime;

    /// The present moment in milliseconds since 1970, as precisely as this clock knows it.
    fn now_ms(&self) -> u64 {
        u64::from(self.now().0) * 1_000
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

impl Clock for SystemClock {
    fn now(&self) -> UnixTime {
        UnixTime(u32::try_from(since_1970().as_secs()).unwrap_or(u32::MAX))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is moved. Clones share the same hands.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU32>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: UnixTime) -> Self {
        ManualClock(Arc::new(AtomicU32::new(now.0)))
    }

    /// Moves the hands forward.
    pub fn advance(&self, length: Seconds) {
        self.0.fetch_add(length.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixTime {
        UnixTime(self.0.load(Ordering::SeqCst))
    }
}

/// Measures how long something took; for benchmarks and log lines, never for decisions.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
