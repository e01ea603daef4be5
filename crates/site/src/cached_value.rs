//! A value that takes a while to read, kept for the requests that follow.
//!
//! # Guarantees
//!
//! - It is read when it is asked for and the last one is too old, one at a time. A read that has begun is finished and
//!   kept, also when its caller hangs up.
//! - While a new one is read, requests are given the last one, unless that is much too old: only the first request after
//!   a pause waits.
//! - Reading takes a small share of the time: a value that took long to read is kept for longer.

use std::sync::Arc;

use domain::clock::Stopwatch;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

use crate::problem::Problem;

/// A value is kept for this many times as long as it took to read.
const KEPT_PER_READ_TIME: u64 = 10;
/// But for no longer than this.
const KEPT_MS_MAX: u64 = 10 * 60 * 1000;

/// For this long after that, a value is given while the next one is read.
const STALE_MS: u64 = 60 * 1000;

/// The last value, and whose guard it is to read the next one.
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
    /// No value yet. Each is kept for this long at least.
    pub(crate) fn new(kept_ms_min: u64) -> CachedValue<T> {
        CachedValue { kept: Arc::default(), reading: Arc::default(), kept_ms_min }
    }

    /// The last value if it is recent enough, else what `reading` finds.
    pub(crate) async fn get(
        &self,
        now_ms: u64,
        reading: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        if let Some(recent) = self.within(now_ms, 0) {
            return Ok(recent);
        }
        if let Some(last) = self.within(now_ms, STALE_MS) {
            // Where another request reads it already, nothing is to do.
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
        reading.await.map_err(|error| Problem::internal("a list that is kept", &error))?
    }

    /// Reads in a task of its own, for whose end nobody has to wait.
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

    /// The last value, unless it was to be kept for a time that ended more than this long ago.
    fn within(&self, now_ms: u64, beyond_ms: u64) -> Option<Arc<T>> {
        let kept = self.kept.lock();
        let kept = kept.as_ref()?;
        // A clock that was set back must not keep a value for hours.
        (kept.read_ms.abs_diff(now_ms) < kept.kept_ms + beyond_ms).then(|| Arc::clone(&kept.value))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn requests_at_the_same_time_share_one_read_and_a_failure_is_not_kept() {
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
        assert_eq!(*get(6000).await.unwrap(), 1, "the last one, while the next one is read");
        while cached.last().map(|last| *last) == Some(1) {
            tokio::task::yield_now().await;
        }
        assert_eq!(*get(6000).await.unwrap(), 2);
        assert!(cached.get(900_000, async { Err(Problem::bad_request("…")) }).await.is_err());
        assert_eq!(cached.last().map(|last| *last), Some(2));
        assert_eq!(*get(900_000).await.unwrap(), 3, "the last one is much too old");
    }
}
