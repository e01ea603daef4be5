//! Atomic numbers for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, many: u64) {
        // Most heartbeats add zero: avoid touching the cache line.
        if many > 0 {
            self.0.fetch_add(many, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Level(AtomicU64);

impl Level {
    pub fn set(&self, level: usize) {
        self.0.store(level as u64, Ordering::Relaxed);
    }

    pub fn rise(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Must follow a [`Level::rise`].
    pub fn fall(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
