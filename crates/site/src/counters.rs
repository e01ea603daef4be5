//! Counters of the site.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use domain::{Counter, Histogram};
use net::Refused;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub struct SiteCounters {
    pub connections: Counter,
    pub connections_open: AtomicU64,
    /// Refused or closed connections, by reason.
    pub connections_refused: Refused,
    pub unauthorized: Counter,
    /// Requests with a key that lacks the scope.
    pub forbidden: Counter,
    /// Changes with a missing or wrong CSRF token.
    pub csrf_refused: Counter,
    pub sign_ins: Counter,
    /// Refused sign-ins, by reason.
    pub sign_ins_refused: Refused,
    pub sign_outs: Counter,
    pub verified_valid: Counter,
    pub verified_invalid: Counter,
    pub timeouts: Counter,
    /// Searches with more results than are sorted in memory.
    pub searches_cut: Counter,
    /// Refused scans, by kind.
    pub scans_refused: Refused,
    /// Evicted hit-and-run counts.
    pub hit_and_runs_forgotten: Counter,
    pub requests: Requests,
}

/// Requests by route and status: a bounded set.
#[derive(Debug, Default)]
pub struct Requests {
    by_route: Mutex<BTreeMap<(String, u16), u64>>,
    durations: Histogram,
}

impl Requests {
    pub fn count(&self, route: &str, status: u16, took: Duration) {
        self.durations.record(took);
        *self.by_route.lock().entry((route.to_owned(), status)).or_default() += 1;
    }

    pub fn by_route(&self) -> Vec<((String, u16), u64)> {
        self.by_route.lock().iter().map(|(key, count)| (key.clone(), *count)).collect()
    }

    pub fn durations(&self) -> &Histogram {
        &self.durations
    }
}
