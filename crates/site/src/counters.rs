//! What the site counts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use domain::Histogram;
use parking_lot::Mutex;
use tracker::counters::{Counter, Refused};

/// Everything the site counts.
#[derive(Debug, Default)]
pub struct SiteCounters {
    /// Connections accepted.
    pub connections: Counter,
    /// Connections that are open.
    pub connections_open: AtomicU64,
    /// Connections turned away or cut off, by reason: too many, a bad head, a slow head, a failed
    /// handshake, an answer that is not read.
    pub connections_refused: Refused,
    /// Requests without a valid key where one is needed.
    pub unauthorized: Counter,
    /// Requests with a key that may not do what was asked.
    pub forbidden: Counter,
    /// Changes of somebody who is signed in that none of our pages sent.
    pub csrf_refused: Counter,
    /// Sign-ins.
    pub sign_ins: Counter,
    /// Sign-ins that were refused, by reason: a wrong key, too many of those, a key that is used too often or may
    /// not read, another site's page.
    pub sign_ins_refused: Refused,
    /// Sign-outs.
    pub sign_outs: Counter,
    /// Verify calls answered with valid.
    pub verified_valid: Counter,
    /// Verify calls answered with invalid.
    pub verified_invalid: Counter,
    /// Requests that took too long.
    pub timeouts: Counter,
    /// Searches that found more torrents than are put in order.
    pub searches_cut: Counter,
    /// Requests that found no place to look through much, by what they wanted to look through.
    pub scans_refused: Refused,
    /// Counts of people's hit-and-runs that were no longer kept, to make room for others.
    pub hit_and_runs_forgotten: Counter,
    /// Requests by route and status.
    pub requests: Requests,
}

/// Requests by route and status. Routes and statuses are few and fixed, so the map does not grow.
#[derive(Debug, Default)]
pub struct Requests {
    by_route: Mutex<BTreeMap<(String, u16), u64>>,
    durations: Histogram,
}

impl Requests {
    /// Counts one answered request.
    pub fn count(&self, route: &str, status: u16, took: Duration) {
        self.durations.record(took);
        *self.by_route.lock().entry((route.to_owned(), status)).or_default() += 1;
    }

    /// Every route and status so far, with its count.
    pub fn by_route(&self) -> Vec<((String, u16), u64)> {
        self.by_route.lock().iter().map(|(key, count)| (key.clone(), *count)).collect()
    }

    /// How long requests took.
    pub fn durations(&self) -> &Histogram {
        &self.durations
    }
}
