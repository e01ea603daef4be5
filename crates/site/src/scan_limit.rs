//! Limits concurrent requests that scan a store.
//!
//! # Guarantees
//!
//! - Two scans of each kind run at a time, so that connections to the stores remain for other requests.
//! - A scan keeps its permit until it ends, even if its caller disconnects, because the store continues it.
//! - A request that waits too long for a permit is refused with `Retry-After`, and counted.
//!
//! # Deliberately absent
//!
//! Fairness between callers: each has a rate limit.

use domain::named;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use net::Refused;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// Concurrent scans of one kind.
const CONCURRENT_MAX: usize = 2;
/// How long a request waits for a permit.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// `Retry-After`, in seconds.
const RETRY_S: u64 = 2;

named! {
    /// What a scan reads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ScanKind {
        /// Names of users or torrents, in the database.
        Names = "names",
        /// Journal entries, backwards.
        Journal = "journal",
        /// Uploaded torrent files.
        TorrentFiles = "torrent_files",
    }
}

/// Permits, by kind.
#[derive(Debug)]
pub struct ScanLimits {
    permits: [Arc<Semaphore>; 3],
    wait_max: Duration,
}

impl Default for ScanLimits {
    fn default() -> ScanLimits {
        let permits = std::array::from_fn(|_| Arc::new(Semaphore::new(CONCURRENT_MAX)));
        ScanLimits { permits, wait_max: WAIT_MAX }
    }
}

impl ScanLimits {
    /// Runs a scan in its own task once a permit is available; otherwise counts a refusal.
    pub async fn run<T: Send + 'static>(
        &self,
        kind: ScanKind,
        refused: &Refused,
        scanning: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let waiting = Arc::clone(&self.permits[kind as usize]).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(self.wait_max, waiting).await else {
            refused.count(kind.name());
            return Err(too_many());
        };
        let scanning = tokio::spawn(async move {
            let found = scanning.await;
            drop(permit);
            found
        });
        scanning.await.map_err(|error| Problem::internal("the search", &error))
    }
}

fn too_many() -> Problem {
    let detail = format!("too many concurrent searches: try again in {RETRY_S} s");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_searches", detail).after(RETRY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn concurrency_is_limited_and_a_cancelled_caller_keeps_its_permit() {
        let scans = ScanLimits { wait_max: Duration::from_millis(20), ..ScanLimits::default() };
        let refused = Refused::default();
        let gate = Arc::new(Semaphore::new(0));
        for _ in 0..CONCURRENT_MAX {
            let gate = Arc::clone(&gate);
            let endless = scans.run(ScanKind::Names, &refused, async move { drop(gate.acquire().await) });
            let cancelled = tokio::time::timeout(Duration::from_millis(1), endless).await;
            assert!(cancelled.is_err());
        }
        let problem = scans.run(ScanKind::Names, &refused, async {}).await.unwrap_err();
        assert_eq!((problem.code(), refused.get("names")), ("too_many_searches", 1));
        assert_eq!(
            scans.run(ScanKind::Journal, &refused, async { 7 }).await.unwrap(),
            7,
            "each kind has its own"
        );
        gate.add_permits(1);
        let scans = ScanLimits { wait_max: WAIT_MAX, ..scans };
        assert_eq!(scans.run(ScanKind::Names, &refused, async { 8 }).await.unwrap(), 8);
        assert_eq!(refused.total(), 1);
    }
}
