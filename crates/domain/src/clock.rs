//! The one module that reads the clock.
//!
//! Everything else takes the time as an argument; `clippy.toml` bans reading it anywhere else. Programs use a
//! [`SystemClock`], tests a [`ManualClock`].
//!
//! A clock has two times. **Wall time** is the date, and steps whenever the machine's clock is set. **Steady time**
//! counts the same seconds and never steps: it starts at the wall time of the process start and follows the monotonic
//! clock. A restarted server continues the steady time of the previous process ([`continue_steady_time`]). Dates are
//! wall time; all differences are computed in steady time.

mod record;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Seconds, UnixTime};

pub use record::SteadyRecord;

pub trait Clock: Send + Sync {
    fn now(&self) -> UnixTime;

    /// Wall time in milliseconds since 1970, in the clock's own resolution.
    fn now_ms(&self) -> u64 {
        u64::from(self.now().0) * 1_000
    }

    /// Monotonic time, for durations, deadlines and order. Never decreases, however the machine's clock is set.
    fn steady(&self) -> UnixTime {
        UnixTime(u32::try_from(self.steady_ms() / 1_000).unwrap_or(u32::MAX))
    }

    fn steady_ms(&self) -> u64;
}

/// The machine's clock. All values of one process have the same steady time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

fn whole_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Steady time that was `start` when the stopwatch was started.
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

/// Continues the steady time that another process recorded. `uptime_ms` is the uptime of the machine since the boot
/// `boot`. Must be called before steady time is first read; later calls have no effect.
pub fn continue_steady_time(recorded: &SteadyRecord, uptime_ms: u64, boot: &str) {
    STEADY_OF_PROCESS.get_or_init(|| {
        Steady::starting_at(record::start_of(recorded, (uptime_ms, boot), SystemClock.now_ms()))
    });
}

/// A clock that stands still until it is moved. Clones share the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    wall: AtomicU32,
    steady: AtomicU32,
}

impl ManualClock {
    pub fn at(now: UnixTime) -> Self {
        ManualClock(Arc::new(ManualTime { wall: AtomicU32::new(now.0), steady: AtomicU32::new(now.0) }))
    }

    pub fn advance(&self, length: Seconds) {
        self.0.wall.fetch_add(length.0, Ordering::SeqCst);
        self.0.steady.fetch_add(length.0, Ordering::SeqCst);
    }

    /// Sets the wall clock forward or back, as an operator or NTP does. No time passes.
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

/// Measures durations for benchmarks and log lines, never for decisions.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
