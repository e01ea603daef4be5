//! Cached hit-and-run counts of members. Counting scans all accounts of a member.
//!
//! # Guarantees
//!
//! - A member's accounts are scanned at most once a minute, by at most two scans at a time.
//! - A scan that has started is finished and cached, even if the request is cancelled.
//! - The cache is bounded; evictions are counted.

use std::collections::HashMap;
use std::sync::Arc;

use domain::{Counter, UserId};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// Lifetime of a cached count.
const FRESH_MS: u64 = 60 * 1000;
/// Maximum number of cached counts.
const KEPT_MAX: usize = 10_000;
/// Concurrent scans.
const CONCURRENT_MAX: usize = 2;

/// Time and count. The task that holds the lock counts; other requests wait for it.
type Slot = Arc<tokio::sync::Mutex<Option<(u64, u64)>>>;

pub(crate) struct HitAndRunCounts {
    kept: Mutex<HashMap<UserId, Slot, RandomState>>,
    permits: Arc<Semaphore>,
}

impl Default for HitAndRunCounts {
    fn default() -> HitAndRunCounts {
        HitAndRunCounts { kept: Mutex::default(), permits: Arc::new(Semaphore::new(CONCURRENT_MAX)) }
    }
}

impl HitAndRunCounts {
    /// The cached count if it is fresh, else the result of `counting`.
    pub(crate) async fn of(
        &self,
        user: UserId,
        now_ms: u64,
        forgotten: &Counter,
        counting: impl Future<Output = Result<u64, Problem>> + Send + 'static,
    ) -> Result<u64, Problem> {
        let mut slot = self.slot(user, forgotten).lock_owned().await;
        if let Some((at_ms, count)) = *slot
            && now_ms.abs_diff(at_ms) < FRESH_MS
        {
            return Ok(count);
        }
        let permits = Arc::clone(&self.permits);
        let counting = tokio::spawn(async move {
            let permit = permits.acquire_owned().await;
            let count = counting.await?;
            drop(permit);
            *slot = Some((now_ms, count));
            Ok(count)
        });
        counting.await.map_err(|error| Problem::internal("the accounts", &error))?
    }

    fn slot(&self, user: UserId, forgotten: &Counter) -> Slot {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX && !kept.contains_key(&user) {
            let before = kept.len();
            // Slots in use stay, or the accounts would be scanned twice at the same time.
            kept.retain(|_, slot| Arc::strong_count(slot) > 1);
            forgotten.add((before - kept.len()) as u64);
        }
        Arc::clone(kept.entry(user).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn concurrent_requests_share_one_count_which_expires_after_a_minute() {
        let (counts_cache, forgotten) = (HitAndRunCounts::default(), Counter::default());
        let counts = Arc::new(AtomicU64::new(0));
        let user = UserId::new(7).unwrap();
        let ask = |now_ms: u64| {
            let counts = Arc::clone(&counts);
            counts_cache.of(user, now_ms, &forgotten, async move {
                tokio::task::yield_now().await;
                Ok(counts.fetch_add(1, Ordering::Relaxed) + 1)
            })
        };
        let (one, two, three) = tokio::join!(ask(1000), ask(1000), ask(1001));
        assert_eq!((one.unwrap(), two.unwrap(), three.unwrap()), (1, 1, 1));
        assert_eq!(ask(60_999).await.unwrap(), 1);
        assert_eq!(ask(61_000).await.unwrap(), 2);
        let failing = async { Err(Problem::bad_request("…")) };
        assert!(counts_cache.of(user, 121_000, &forgotten, failing).await.is_err());
        assert_eq!(ask(121_001).await.unwrap(), 3, "a failure is not cached");
    }

    #[tokio::test]
    async fn the_cache_is_bounded_and_evictions_are_counted() {
        let (counts_cache, forgotten) = (HitAndRunCounts::default(), Counter::default());
        let in_use = counts_cache.slot(UserId::new(1).unwrap(), &forgotten);
        (2..=KEPT_MAX as u64 + 1)
            .for_each(|id| drop(counts_cache.slot(UserId::new(id).unwrap(), &forgotten)));
        assert_eq!((counts_cache.kept.lock().len(), forgotten.get()), (2, KEPT_MAX as u64 - 1));
        assert!(Arc::ptr_eq(&in_use, &counts_cache.slot(UserId::new(1).unwrap(), &forgotten)));
    }
}
