//! Counters of refusals by reason.

use std::collections::BTreeMap;

use domain::Counter;
use parking_lot::RwLock;
use tracing::info;

/// Reasons are few and fixed, so the map is bounded.
#[derive(Debug, Default)]
pub struct Refused(RwLock<BTreeMap<&'static str, Counter>>);

impl Refused {
    pub fn count(&self, reason: &'static str) {
        if let Some(counter) = self.0.read().get(reason) {
            counter.increment();
            return;
        }
        // Logged once: a new operator whose clients are all refused would otherwise see nothing for minutes.
        info!(reason, "first refusal for this reason since start; further ones are only counted");
        self.0.write().entry(reason).or_default().increment();
    }

    pub fn get(&self, reason: &str) -> u64 {
        self.0.read().get(reason).map_or(0, Counter::get)
    }

    pub fn total(&self) -> u64 {
        self.0.read().values().map(Counter::get).sum()
    }

    pub fn all(&self) -> Vec<(&'static str, u64)> {
        self.0.read().iter().map(|(reason, counter)| (*reason, counter.get())).collect()
    }
}
