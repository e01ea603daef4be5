//! A lease: a key with a deadline that one process at a time holds.
//!
//! # Guarantees
//!
//! - No two processes hold a lease at the same time, provided that their clocks run at the same speed: the holder
//!   measures from before its request, and considers the lease lost before it expires in Redis.
//! - The lease of a dead process expires after its length; an orderly shutdown releases it at once.
//!
//! # Deliberately absent
//!
//! Fencing of writes in flight: see [`crate::fence`]. Other writes under a lease must tolerate being late: by a
//! watermark, by writing state instead of differences, and by reconciliation.

use std::time::Duration;

use domain::clock::Stopwatch;
use parking_lot::Mutex;

use crate::error::RedisError;
use crate::handle::Redis;
use crate::scripts;

/// One process's handle to a lease.
#[derive(Debug)]
pub struct Lease {
    redis: Redis,
    key: String,
    holder: String,
    length: Duration,
    /// Runs since the last successful request; none if not held.
    held: Mutex<Option<Stopwatch>>,
}

impl Lease {
    /// Does not take it yet. `holder` must be unique to this run of this process.
    pub fn new(redis: Redis, key: String, holder: String, length: Duration) -> Self {
        Lease { redis, key, holder, length, held: Mutex::default() }
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    /// Takes or renews the lease. Returns whether this process holds it.
    pub async fn take(&self) -> Result<bool, RedisError> {
        // Started before the request, so that our deadline is never after that of Redis.
        let requested = Stopwatch::start();
        let mut call = scripts::LEASE_TAKE.call(&[&self.key]);
        call.arg(&self.holder).arg(u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX));
        let is_held = self.redis.query::<u8>(&call).await? == 1;
        *self.held.lock() = is_held.then_some(requested);
        Ok(is_held)
    }

    /// Whether this process holds it and less than 70 % of its length has passed.
    pub fn is_held(&self) -> bool {
        self.held.lock().as_ref().is_some_and(|since| since.elapsed() < self.length * 7 / 10)
    }

    /// Releases the lease if this process holds it.
    pub async fn release(&self) -> Result<(), RedisError> {
        *self.held.lock() = None;
        let mut call = scripts::LEASE_RELEASE.call(&[&self.key]);
        call.arg(&self.holder);
        self.redis.query::<u8>(&call).await.map(drop)
    }
}
