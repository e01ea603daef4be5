//! A cached value that is expensive to read.
//!
//! # Guarantees
//!
//! - It is read on demand when the cached one is too old, by one task at a time. A read that has started is finished and
//!   cached, even if the request is cancelled.
//! - During a read, requests get the previous value unless it is much too old.
//! - A value that took long to read is kept longer, so that reads take a bounded share of the time.

use std::sync::Arc;

use domain::clock::Stopwatch;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

use crate::problem::Problem;

/// Lifetime of a value as a multiple of its read time.
const KEPT_PER_READ_TIME: u64 = 10;
/// Maximum lifetime.
const KEPT_MS_MAX: u64 = 10 * 60 * 1000;

/// A value that expired less than this long ago is returned while the next one is read.
const STALE_MS: u64 = 60 * 1000;

pub(crate) struct CachedValue<T> {
    kept: Arc<Mutex<Option<Kept<T>>>>,
    reading: Arc<tokio::sync::Mutex<()>>,
    kept_ms_min: u64,
}

struct Kept<T> {
    value: Arc<T>,
    read_ms: u64,
    kept_ms: u64,
}

impl<T: Send + Sync + 'static> CachedValue<T> {
    /// Empty; each value is kept for at least `kept_ms_min`.
    pub(crate) fn new(kept_ms_min: u64) -> CachedValue<T> {
        CachedValue { kept: Arc::default(), reading: Arc::default(), kept_ms_min }
    }

    /// The cached value if it is recent enough, else the result of `reading`.
    pub(crate) async fn get(
        &self,
        now_ms: u64,
        reading: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        if let Some(recent) = self.within(now_ms, 0) {
            return Ok(recent);
        }
        if let Some(last) = self.within(now_ms, STALE_MS) {
            // If the lock is taken, another request is reading.
            if let Ok(guard) = Arc::clone(&self.reading).try_lock_owned() {
                drop(self.begin(guard, now_ms, reading));
            }
            return Ok(last);
        }
        let guard = Arc::clone(&self.reading).lock_owned().await;
        // Another request may have read it meanwhile.
        if let Some(recent) = self.within(now_ms, 0) {
            return Ok(recent);
        }
        let reading = self.begin(guard, now_ms, reading);
        reading.await.map_err(|error| Problem::internal("a cached list", &error))?
    }

    /// Reads in a task of its own.
    fn begin(
        &self,
        guard: OwnedMutexGuard<()>,
        now_ms: u64,
        reading: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> JoinHandle<Result<Arc<T>, Problem>> {
        let (kept, kept_ms_min) = (Arc::clone(&self.kept), self.kept_ms_min);
        tokio::spawn(async move {
            let watch = Stopwatch::start();
            let value = Arc::new(reading.await?);
            let took_ms = u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX);
            let kept_ms = took_ms.saturating_mul(KEPT_PER_READ_TIME).min(KEPT_MS_MAX).max(kept_ms_min);
            *kept.lock() = Some(Kept { value: Arc::clone(&value), read_ms: now_ms, kept_ms });
            drop(guard);
            Ok(value)
        })
    }

    /// The last value, however old.
    pub(crate) fn last(&self) -> Option<Arc<T>> {
        self.kept.lock().as_ref().map(|kept| Arc::clone(&kept.value))
    }

    /// The last value, unless it expired more than `beyond_ms` ago.
    fn within(&self, now_ms: u64, beyond_ms: u64) -> Option<Arc<T>> {
        let kept = self.kept.lock();
        let kept = kept.as_ref()?;
        // The wall clock may be set back.
        (kept.read_ms.abs_diff(now_ms) < kept.kept_ms + beyond_ms).then(|| Arc::clone(&kept.value))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn concurrent_requests_share_one_read_and_a_failure_is_not_cached() {
        let (cached, reads) = (CachedValue::new(1000), Arc::new(AtomicU64::new(0)));
        let get = |now_ms: u64| {
            let reads = Arc::clone(&reads);
            cached.get(now_ms, async move {
                tokio::task::yield_now().await;
                Ok(reads.fetch_add(1, Ordering::Relaxed) + 1)
            })
        };
        let (one, two) = tokio::join!(get(5000), get(5001));
        assert_eq!((*one.unwrap(), *two.unwrap()), (1, 1));
        assert_eq!(*get(5999).await.unwrap(), 1);
        assert_eq!(*get(6000).await.unwrap(), 1, "the previous value, while the next one is read");
        while cached.last().map(|last| *last) == Some(1) {
            tokio::task::yield_now().await;
        }
        assert_eq!(*get(6000).await.unwrap(), 2);
        assert!(cached.get(900_000, async { Err(Problem::bad_request("…")) }).await.is_err());
        assert_eq!(cached.last().map(|last| *last), Some(2));
        assert_eq!(*get(900_000).await.unwrap(), 3, "the previous value is too old");
    }
}
