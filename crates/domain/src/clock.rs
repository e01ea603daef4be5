//! The one module that reads the clock.
//!
//! Everything else takes the time as an argument; `clippy.toml` bans reading it anywhere else. Programs hold a
//! [`SystemClock`], tests a [`ManualClock`].
//!
//! A clock shows two times. **Wall time** is the date, and steps whenever the machine's clock is set. **Steady time**
//! counts the same seconds and never steps: it begins at the wall time of the start and grows by the monotonic clock. A
//! server that is started again goes on with the steady time of the process before ([`continue_steady_time`]).
//! Dates are wall time; everything that is subtracted from something else is steady time.

mod record;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Seconds, UnixTime};

pub use record::SteadyRecord;

/// Something that knows what time it is.
pub trait Clock: Send + Sync {
    fn now(&self) -> UnixTime;

    /// Wall time in milliseconds since 1970, as precisely as this clock knows it.
    fn now_ms(&self) -> u64 {
        u64::from(self.now().0) * 1_000
    }

    /// Monotonic time, for durations, deadlines and order. Never decreases, however the machine's clock is set.
    fn steady(&self) -> UnixTime {
        UnixTime(u32::try_from(self.steady_ms() / 1_000).unwrap_or(u32::MAX))
    }

    fn steady_ms(&self) -> u64;
}

/// The machine's clock. The steady time of all values of one process is the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

fn whole_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Steady time that began at `start` when the stopwatch was started.
#[derive(Clone, Copy, Debug)]
struct Steady {
    start_ms: u64,
    running: Stopwatch,
}

impl Steady {
    fn starting_at(start_ms: u64) -> Self {
        Steady { start_ms, running: Stopwatch::start() }
    }

    fn now_ms(&self) -> u64 {
        self.start_ms.saturating_add(whole_ms(self.running.elapsed()))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixTime {
        UnixTime(u32::try_from(since_1970().as_secs()).unwrap_or(u32::MAX))
    }

    fn now_ms(&self) -> u64 {
        whole_ms(since_1970())
    }

    fn steady_ms(&self) -> u64 {
        STEADY_OF_PROCESS.get_or_init(|| Steady::starting_at(self.now_ms())).now_ms()
    }
}

static STEADY_OF_PROCESS: OnceLock<Steady> = OnceLock::new();

/// Lets the steady time of this process go on where another one recorded it. `uptime_ms` is how long the machine has
/// been running, in the run `boot`. To be called before steady time is asked for; later it changes nothing.
pub fn continue_steady_time(recorded: &SteadyRecord, uptime_ms: u64, boot: &str) {
    STEADY_OF_PROCESS.get_or_init(|| {
        Steady::starting_at(record::start_of(recorded, (uptime_ms, boot), SystemClock.now_ms()))
    });
}

/// A clock that stands still until it is moved. Clones share the same hands.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    wall: AtomicU32,
    steady: AtomicU32,
}

impl ManualClock {
    /// A clock that shows `now`, as wall time and as steady time.
    pub fn at(now: UnixTime) -> Self {
        ManualClock(Arc::new(Hands { wall: AtomicU32::new(now.0), steady: AtomicU32::new(now.0) }))
    }

    pub fn advance(&self, length: Seconds) {
        self.0.wall.fetch_add(length.0, Ordering::SeqCst);
        self.0.steady.fetch_add(length.0, Ordering::SeqCst);
    }

    /// Sets the wall clock forward or back, as an operator or a time server does. No time passes.
    pub fn step(&self, seconds: i32) {
        let _ = self.0.wall.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |wall| {
            Some(wall.saturating_add_signed(seconds))
        });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixTime {
        UnixTime(self.0.wall.load(Ordering::SeqCst))
    }

    fn steady(&self) -> UnixTime {
        UnixTime(self.0.steady.load(Ordering::SeqCst))
    }

    fn steady_ms(&self) -> u64 {
        u64::from(self.steady().0) * 1_000
    }
}

/// Measures how long something took; for benchmarks and log lines, never for decisions.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
