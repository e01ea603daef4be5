//! What the site counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tracker::counters::{Counter, Refused};

/// Upper ends of the classes into which durations fall, in microseconds. The last class has none.
pub const DURATION_BOUNDS_US: [u64; 10] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_000_000, 10_000_000];

/// Everything the site counts.
#[derive(Debug, Default)]
pub struct SiteCounters {
    /// Connections accepted.
    pub connections: Counter,
    /// Connections that are open.
    pub connections_open: AtomicU64,
    /// Connections turned away or cut off, by reason: too many, a bad head, a slow head, a failed handshake.
    pub connections_refused: Refused,
    /// Requests without a valid key where one is needed.
    pub unauthorized: Counter,
    /// Requests with a key that may not do what was asked.
    pub forbidden: Counter,
    /// Verify calls answered with valid.
    pub verified_valid: Counter,
    /// Verify calls answered with invalid.
    pub verified_invalid: Counter,
    /// Requests that took too long.
    pub timeouts: Counter,
    /// Requests by route and status.
    pub requests: Requests,
}

/// Requests by route and status. Routes and statuses are few and fixed, so the map does not grow.
#[derive(Debug, Default)]
pub struct Requests {
    by_route: Mutex<BTreeMap<(String, u16), u64>>,
    durations: [AtomicU64; DURATION_BOUNDS_US.len() + 1],
    duration_sum_us: AtomicU64,
}

impl Requests {
    /// Counts one answered request.
    pub fn count(&self, route: &str, status: u16, took_us: u64) {
        let class = DURATION_BOUNDS_US.iter().position(|bound| took_us <= *bound);
        self.durations[class.unwrap_or(DURATION_BOUNDS_US.len())].fetch_add(1, Ordering::Relaxed);
        self.duration_sum_us.fetch_add(took_us, Ordering::Relaxed);
        *self.by_route.lock().entry((route.to_owned(), status)).or_default() += 1;
    }

    /// Every route and status so far, with its count.
    pub fn by_route(&self) -> Vec<((String, u16), u64)> {
        self.by_route.lock().iter().map(|(key, count)| (key.clone(), *count)).collect()
    }

    /// How many requests fell into each class of [`DURATION_BOUNDS_US`], the last one behind it.
    pub fn durations(&self) -> Vec<u64> {
        self.durations.iter().map(|class| class.load(Ordering::Relaxed)).collect()
    }

    /// All durations together, in microseconds.
    pub fn duration_sum_us(&self) -> u64 {
        self.duration_sum_us.load(Ordering::Relaxed)
    }
}
