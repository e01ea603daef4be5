//! Requests that look through much of what is stored: only so many at a time.
//!
//! # Guarantees
//!
//! - Two of each kind run at once, so that some connections to the stores are always left for everything else.
//! - A scan that has begun keeps its permit until it is over, also when its caller hangs up: the store goes on as well.
//! - Who waits too long for a permit is told when to come back, and counted.
//!
//! # Deliberately absent
//!
//! Fairness between callers: each has a bound on its requests already.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Semaphore;
use tracker::counters::Refused;

use crate::problem::Problem;

/// ScanLimits of one kind at the same time.
const CONCURRENT_MAX: usize = 2;
/// How long to wait for a permit.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// When whoever found no permit should come back, in seconds.
const RETRY_S: u64 = 2;

/// What is looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanKind {
    /// The names of torrents, in the database.
    Names,
    /// The journal, backwards.
    Journal,
    /// Torrent files that are uploaded.
    TorrentFiles,
}

impl ScanKind {
    /// Its name on the metrics page.
    const fn name(self) -> &'static str {
        match self {
            ScanKind::Names => "names",
            ScanKind::Journal => "journal",
            ScanKind::TorrentFiles => "torrent_files",
        }
    }
}

/// The permits that there are for scans.
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
    /// ScanLimits as soon as there is a permit. Who finds none is counted by what they wanted to look through.
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
    let detail = format!("too many searches are under way: try again in {RETRY_S} s");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_searches", detail).after(RETRY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_so_many_run_at_once_and_one_whose_caller_has_gone_keeps_its_place_to_its_end() {
        let scans = ScanLimits { wait_max: Duration::from_millis(20), ..ScanLimits::default() };
        let refused = Refused::default();
        let gate = Arc::new(Semaphore::new(0));
        for _ in 0..CONCURRENT_MAX {
            let gate = Arc::clone(&gate);
            let endless = scans.run(ScanKind::Names, &refused, async move { drop(gate.acquire().await) });
            let hung_up = tokio::time::timeout(Duration::from_millis(1), endless).await;
            assert!(hung_up.is_err());
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
