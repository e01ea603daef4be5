//! Requests that look through much of what is stored: only so many at a time.
//!
//! # Guarantees
//!
//! - Two of each kind run at once, so that some connections to the stores are always left for everything else.
//! - A scan that has begun keeps its place until it is over, also when its caller hangs up: the store goes on as well.
//! - Who waits too long for a place is told when to come back, and counted.
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

/// Scans of one kind at the same time.
const AT_ONCE: usize = 2;
/// How long to wait for a place.
const PATIENCE: Duration = Duration::from_secs(2);
/// When whoever found no place should come back, in seconds.
const RETRY_S: u64 = 2;

/// What is looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The names of torrents, in the database.
    Names,
    /// The journal, backwards.
    Journal,
    /// Torrent files that are uploaded.
    TorrentFiles,
}

impl Scan {
    /// Its name on the metrics page.
    const fn name(self) -> &'static str {
        match self {
            Scan::Names => "names",
            Scan::Journal => "journal",
            Scan::TorrentFiles => "torrent_files",
        }
    }
}

/// The places that there are for scans.
#[derive(Debug)]
pub struct Scans {
    places: [Arc<Semaphore>; 3],
    patience: Duration,
}

impl Default for Scans {
    fn default() -> Scans {
        let places = std::array::from_fn(|_| Arc::new(Semaphore::new(AT_ONCE)));
        Scans { places, patience: PATIENCE }
    }
}

impl Scans {
    /// Scans as soon as there is a place. Who finds none is counted by what they wanted to look through.
    pub async fn run<T: Send + 'static>(
        &self,
        scan: Scan,
        refused: &Refused,
        scanning: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let waiting = Arc::clone(&self.places[scan as usize]).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(self.patience, waiting).await else {
            refused.count(scan.name());
            return Err(too_many());
        };
        let scanning = tokio::spawn(async move {
            let found = scanning.await;
            drop(place);
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
        let scans = Scans { patience: Duration::from_millis(20), ..Scans::default() };
        let refused = Refused::default();
        let gate = Arc::new(Semaphore::new(0));
        for _ in 0..AT_ONCE {
            let gate = Arc::clone(&gate);
            let endless = scans.run(Scan::Names, &refused, async move { drop(gate.acquire().await) });
            let hung_up = tokio::time::timeout(Duration::from_millis(1), endless).await;
            assert!(hung_up.is_err());
        }
        let problem = scans.run(Scan::Names, &refused, async {}).await.unwrap_err();
        assert_eq!((problem.code(), refused.get("names")), ("too_many_searches", 1));
        assert_eq!(
            scans.run(Scan::Journal, &refused, async { 7 }).await.unwrap(),
            7,
            "each kind has its own"
        );
        gate.add_permits(1);
        let scans = Scans { patience: PATIENCE, ..scans };
        assert_eq!(scans.run(Scan::Names, &refused, async { 8 }).await.unwrap(), 8);
        assert_eq!(refused.total(), 1);
    }
}
