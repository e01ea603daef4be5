//! What the HTTP server of the site counts: requests by route and status, and who was turned away.
//!
//! Routes and limits are few and fixed, as they stand in the program; statuses are those that HTTP knows. So the table
//! does not grow with what strangers send.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::Histogram;
use parking_lot::RwLock;

use super::{Page, Source};

/// What the HTTP server counts.
#[derive(Debug, Default)]
pub struct SiteCounters {
    requests: RwLock<BTreeMap<(&'static str, u16), AtomicU64>>,
    rate_limited: RwLock<BTreeMap<&'static str, AtomicU64>>,
    refused: RwLock<BTreeMap<&'static str, AtomicU64>>,
    unauthorized: AtomicU64,
    seconds: Histogram,
    connections: AtomicU64,
    connections_open: AtomicU64,
    connections_max: AtomicU64,
}

impl SiteCounters {
    /// Counts an answer. `route` is the pattern, such as `/api/v1/users/{id}`, never a path that somebody sent.
    pub fn answered(&self, route: &'static str, status: u16, took: Duration) {
        count(&self.requests, (route, status));
        self.seconds.record(took);
    }

    /// Counts a request that came too often, by what it was counted: `key` or `address`.
    pub fn rate_limited(&self, by: &'static str) {
        count(&self.rate_limited, by);
    }

    /// Counts a request without a key, with a wrong one, or with one that may not do this.
    pub fn unauthorized(&self) {
        self.unauthorized.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection or request that was turned away before it reached a route, such as `slow_head`.
    pub fn refused(&self, reason: &'static str) {
        count(&self.refused, reason);
    }

    /// Notes how many connections may be open.
    pub fn set_connections_max(&self, max: u64) {
        self.connections_max.store(max, Ordering::Relaxed);
    }

    /// Counts a connection that was accepted; dropping what it returns says that it is closed.
    pub fn connected(self: &std::sync::Arc<Self>) -> OpenConnection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connections_open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(std::sync::Arc::clone(self))
    }
}

/// A connection that is open.
#[derive(Debug)]
pub struct OpenConnection(std::sync::Arc<SiteCounters>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn count<K: Ord + Copy>(counters: &RwLock<BTreeMap<K, AtomicU64>>, key: K) {
    if let Some(counter) = counters.read().get(&key) {
        counter.fetch_add(1, Ordering::Relaxed);
        return;
    }
    counters.write().entry(key).or_default().fetch_add(1, Ordering::Relaxed);
}

impl Source for SiteCounters {
    fn encode(&self, page: &mut Page) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let family = page.counter(
            "rollcall_site_requests_total",
            "Requests to the site that were answered, by route and HTTP status.",
        );
        for ((route, status), counter) in self.requests.read().iter() {
            family.with(&[("route", route), ("status", &status.to_string())], read(counter));
        }
        let family = page.counter(
            "rollcall_site_rate_limited_total",
            "Requests to the site that came too often and were answered with 429, by what they were counted by.",
        );
        for by in ["address", "key"] {
            family.with(&[("by", by)], 0_u64);
        }
        for (by, counter) in self.rate_limited.read().iter() {
            family.with(&[("by", by)], read(counter));
        }
        let family = page.counter(
            "rollcall_site_refused_total",
            "Connections and requests to the site that were turned away before they reached a route, by reason.",
        );
        for (reason, counter) in self.refused.read().iter() {
            family.with(&[("reason", reason)], read(counter));
        }
        page.counter(
            "rollcall_site_unauthorized_total",
            "Requests to the site without a key, with a wrong one, or with one that may not do what was asked.",
        )
        .is(read(&self.unauthorized));
        page.histogram(
            "rollcall_site_request_seconds",
            "Time that the site took for a request, from its whole head to an answer that can be sent.",
        )
        .measured(&[], &self.seconds.snapshot());
        page.counter("rollcall_site_connections_total", "Connections to the site that were accepted.")
            .is(read(&self.connections));
        page.gauge("rollcall_site_connections_open", "Connections to the site that are open now.")
            .is(read(&self.connections_open));
        page.gauge(
            "rollcall_site_connections_max",
            "Connections to the site that may be open at the same time (site.connections_max).",
        )
        .is(read(&self.connections_max));
    }
}
