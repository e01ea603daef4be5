//! What is counted: plain numbers that only grow, ready for a metrics page.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tracing::info;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts many.
    pub fn add(&self, many: u64) {
        // Most heartbeats move nothing: leave the cache line to others.
        if many > 0 {
            self.0.fetch_add(many, Ordering::Relaxed);
        }
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything the tracker counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// Announces accepted over HTTP and HTTPS.
    pub announces_http: Counter,
    /// Announces accepted over UDP.
    pub announces_udp: Counter,
    /// Torrents scraped, over any wire.
    pub scrapes: Counter,
    /// Announces that came sooner than they may.
    pub too_soon: Counter,
    /// Announces that claimed more than can be believed.
    pub implausible: Counter,
    /// Peers that fell silent.
    pub peers_expired: Counter,
    /// Bytes that clients uploaded, as credited.
    pub uploaded_bytes: Counter,
    /// Bytes that clients downloaded, as credited.
    pub downloaded_bytes: Counter,
    /// HTTP connections accepted.
    pub connections: Counter,
    /// UDP packets received.
    pub packets: Counter,
    /// UDP replies that the system would not take.
    pub replies_unsent: Counter,
    /// UDP packets that waited until somebody was asked about their passkey.
    pub packets_set_aside: Counter,
    /// UDP packets that could not, because too many did, or nobody could be asked. Clients ask again.
    pub packets_not_set_aside: Counter,
    /// What was refused, by reason.
    pub refused: Refused,
}

/// Counts by reason. Reasons are few and fixed, so the map does not grow.
#[derive(Debug, Default)]
pub struct Refused(RwLock<BTreeMap<&'static str, Counter>>);

impl Refused {
    /// Counts one refusal.
    pub fn count(&self, reason: &'static str) {
        if let Some(counter) = self.0.read().get(reason) {
            counter.increment();
            return;
        }
        // Told once, because a new operator whose clients are all refused would otherwise see nothing for minutes.
        info!(reason, "refused for the first time since start; from now on only counted");
        self.0.write().entry(reason).or_default().increment();
    }

    /// How often something was refused for this reason.
    pub fn get(&self, reason: &str) -> u64 {
        self.0.read().get(reason).map_or(0, Counter::get)
    }

    /// All refusals.
    pub fn total(&self) -> u64 {
        self.0.read().values().map(Counter::get).sum()
    }

    /// Every reason so far, with its count.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        self.0.read().iter().map(|(reason, counter)| (*reason, counter.get())).collect()
    }
}

impl Counters {
    /// Announces accepted over any wire.
    pub fn announces(&self) -> u64 {
        self.announces_http.get() + self.announces_udp.get()
    }
}
