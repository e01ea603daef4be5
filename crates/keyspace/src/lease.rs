//! A lease: of many processes, one at a time may do something.
//!
//! # Guarantees
//!
//! - No two processes hold a lease at the same time, as far as their clocks run at the same speed: a holder counts the
//!   time from before it asked, and stops a while before Redis lets go.
//! - Whoever dies loses the lease after its length; whoever ends gives it back at once.
//!
//! # Deliberately absent
//!
//! A promise about writes that are already on their way. What is written under a lease must bear being late: by a
//! watermark, by stating what is and not what changed, and by somebody who looks again.

use std::time::Duration;

use domain::clock::Stopwatch;
use parking_lot::Mutex;

use crate::error::RedisError;
use crate::handle::Redis;
use crate::scripts;

/// A lease on a key, as one process sees it.
#[derive(Debug)]
pub struct Lease {
    redis: Redis,
    key: String,
    holder: String,
    length: Duration,
    /// Since when, if it is ours.
    held: Mutex<Option<Stopwatch>>,
}

impl Lease {
    /// A lease that has yet to be taken. `holder` names this process, and no other that ever was.
    pub fn new(redis: Redis, key: String, holder: String, length: Duration) -> Self {
        Lease { redis, key, holder, length, held: Mutex::default() }
    }

    /// For how long it is taken each time.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Takes it, or makes it last longer. True if it is ours.
    pub async fn take(&self) -> Result<bool, RedisError> {
        // From before the question, so that we never think longer than Redis that it is ours.
        let asked = Stopwatch::start();
        let mut call = scripts::LEASE_TAKE.call(&[&self.key]);
        call.arg(&self.holder).arg(u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX));
        let is_ours = self.redis.query::<u8>(&call).await? == 1;
        *self.held.lock() = is_ours.then_some(asked);
        Ok(is_ours)
    }

    /// Whether it is surely ours, with a good part of its length to go.
    pub fn is_held(&self) -> bool {
        self.held.lock().as_ref().is_some_and(|since| since.elapsed() < self.length * 7 / 10)
    }

    /// Gives it back, if it is ours.
    pub async fn release(&self) -> Result<(), RedisError> {
        *self.held.lock() = None;
        let mut call = scripts::LEASE_RELEASE.call(&[&self.key]);
        call.arg(&self.holder);
        self.redis.query::<u8>(&call).await.map(drop)
    }
}
