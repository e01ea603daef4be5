//! Keeps a gate equal to the database while the server runs.
//!
//! The tables' triggers note every change in `access_changes`. The follower asks a few times a second whether there is
//! anything new (one small read), and takes in the present state of what changed since it last looked. Where the log no
//! longer reaches back that far, it reads everything again.
//!
//! # Guarantees
//!
//! - A change by any process is in the gate one poll later, all of one batch together; then `on_change` hears of it.
//! - The gate is never emptied: a full reload puts in what is there before it takes out what is not.
//! - A poll that fails changes nothing: the gate keeps what it has, the next poll tries again, and the log hears of it
//!   once a minute at most.
//! - The log stays bounded: the follower trims it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, UserId};
use tokio::time::MissedTickBehavior;

use crate::error::AccessError;
use crate::gate::Gate;
use crate::store::Store;

mod apply;
mod log;

use apply::Applier;
use log::{ChangeLog, Known, News};

/// How often the follower looks.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How many changes the log keeps, so that several followers of one file need not reload.
const LOG_ROWS_MAX: u32 = 100_000;
/// How long one look may take.
const NEWS_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a failure that lasts is logged.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What became of somebody or something, told after the gate knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A user was added or enabled, or has a new passkey or other slots.
    UserAdmitted(UserId),
    /// A user was removed or disabled: their peers must go.
    UserRemoved(UserId),
    /// A torrent was added, enabled or approved, or its v2 hash, id or slots changed.
    TorrentAdmitted(InfoHash),
    /// A torrent was removed or disabled, or is known by another name now: its peers must go.
    TorrentRemoved(InfoHash),
    /// The list of clients changed.
    ClientsChanged,
    /// The list of banned ports changed.
    PortsChanged,
    /// A passkey means something else than before: it is somebody's now, or nobody's, or its owner was enabled or
    /// disabled. Comes besides the others, for whoever keeps a copy.
    PasskeyChanged(Passkey),
    /// An infohash of either kind means something else than before, likewise.
    NameChanged(InfoHash),
    /// The site published this passkey: what was found out about it must be asked again.
    PasskeyPublished(Passkey),
}

/// What is counted.
#[derive(Debug, Default)]
pub struct FollowCounters {
    /// Looks that found out what there was to find out.
    pub polls: AtomicU64,
    /// Looks that failed.
    pub failures: AtomicU64,
    /// Looks that failed in a row; zero while the database answers.
    pub failures_in_a_row: AtomicU64,
    /// Times that everything was read again, because the log did not reach back far enough.
    pub reloads: AtomicU64,
}

impl FollowCounters {
    pub(crate) fn note(&self, is_failure: bool) {
        if is_failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
            self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
        } else {
            self.polls.fetch_add(1, Ordering::Relaxed);
            self.failures_in_a_row.store(0, Ordering::Relaxed);
        }
    }
}

/// Watches a database on behalf of a gate.
pub struct Follower {
    store: Store,
    gate: Arc<Gate>,
    /// Every change up to here is in the gate. None before the first reading.
    known: Option<Known>,
    /// None after a failure: the next poll connects anew.
    log: Option<Box<dyn ChangeLog>>,
    poll_every: Duration,
    log_rows_max: u32,
    counters: Arc<FollowCounters>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("store", &self.store)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

/// Fills the gate from the database.
pub async fn load(store: Store, gate: Arc<Gate>) -> Result<Follower, AccessError> {
    let mut follower = Follower {
        store,
        gate,
        known: None,
        log: None,
        poll_every: POLL_EVERY,
        log_rows_max: LOG_ROWS_MAX,
        counters: Arc::default(),
        clock: Arc::new(SystemClock),
    };
    follower.reload(&mut |_| ()).await?;
    Ok(follower)
}

impl Follower {
    /// Looks this often instead of five times a second.
    pub fn poll_every(mut self, period: Duration) -> Self {
        self.poll_every = period.max(Duration::from_millis(1));
        self
    }

    /// Keeps this many changes in the log instead of 100,000.
    pub fn log_rows_max(mut self, rows: u32) -> Self {
        self.log_rows_max = rows;
        self
    }

    /// Goes by this clock instead of the system's; it tells when a torrent was approved.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<FollowCounters> {
        Arc::clone(&self.counters)
    }

    /// Follows the database until `shutdown` is ready.
    pub async fn run(mut self, mut on_change: impl FnMut(Change), shutdown: impl Future) {
        let mut ticks = tokio::time::interval(self.poll_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut complaints = Complaints::new(self.poll_every);
        let follow = async {
            loop {
                ticks.tick().await;
                let outcome = self.poll(&mut on_change).await;
                self.counters.note(outcome.is_err());
                complaints.hear(outcome.as_ref().err());
            }
        };
        tokio::select! {
            () = follow => {}
            _ = shutdown => {}
        }
    }

    /// Looks once, and takes in all there is. For tests and for loops other than [`Follower::run`].
    pub async fn poll(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        loop {
            match self.news().await? {
                News::None(known) => {
                    self.known = Some(known);
                    return self.trim().await;
                }
                News::Batch(batch) => {
                    self.known = Some(batch.up_to.clone());
                    Applier::new(&self.gate, on_change, self.clock.steady()).take_in(batch);
                }
                News::Lost => {
                    tracing::info!(
                        "the log of changes does not reach back far enough, reading all users and torrents again"
                    );
                    self.counters.reloads.fetch_add(1, Ordering::Relaxed);
                    self.reload(on_change).await?;
                }
            }
        }
    }

    async fn news(&mut self) -> Result<News, AccessError> {
        let Some(known) = self.known.clone() else { return Ok(News::Lost) };
        let mut log = self.take_log().await?;
        // A server that went away without a word would be waited for by the kernel for many minutes.
        let news = tokio::time::timeout(NEWS_TIMEOUT, log.news(&known)).await;
        let news =
            news.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|error| self.store.explain(error))?;
        self.log = Some(log);
        Ok(news)
    }

    async fn trim(&mut self) -> Result<(), AccessError> {
        let mut log = self.take_log().await?;
        log.trim(self.log_rows_max).await.map_err(|error| self.store.explain(error))?;
        self.log = Some(log);
        Ok(())
    }

    /// Reads everything in one consistent view.
    async fn reload(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        let mut log = self.take_log().await?;
        let known = log.begin_view().await.map_err(|error| self.store.explain(error))?;
        let mut applier = Applier::new(&self.gate, on_change, self.clock.steady());
        let outcome = apply::read_all(log.tables(), &mut applier).await;
        // Even a reload that broke off has changed what it had read by then.
        applier.finish();
        outcome.map_err(|error| self.store.explain(error))?;
        log.end_view().await.map_err(|error| self.store.explain(error))?;
        self.known = Some(known);
        self.log = Some(log);
        Ok(())
    }

    /// The log, to be put back where all went well.
    async fn take_log(&mut self) -> Result<Box<dyn ChangeLog>, AccessError> {
        match self.log.take() {
            Some(log) => Ok(log),
            None => log::connect(&self.store).await.map_err(|error| self.store.explain(error)),
        }
    }
}

/// Logs the first failure of a row, then one a minute, then the recovery.
#[derive(Debug)]
struct Complaints {
    failures: u32,
    polls_between_warnings: u32,
}

impl Complaints {
    fn new(poll_every: Duration) -> Self {
        let polls = WARN_EVERY.as_millis() / poll_every.as_millis().max(1);
        Complaints { failures: 0, polls_between_warnings: u32::try_from(polls).unwrap_or(u32::MAX).max(1) }
    }

    /// Takes note of a poll's outcome. Tells whether it was worth a line.
    fn hear(&mut self, failure: Option<&AccessError>) -> bool {
        let Some(error) = failure else {
            let recovered = std::mem::take(&mut self.failures) > 0;
            if recovered {
                tracing::info!("the database answers again");
            }
            return recovered;
        };
        let loud = self.failures.is_multiple_of(self.polls_between_warnings);
        self.failures = self.failures.wrapping_add(1).max(1);
        if loud {
            tracing::warn!(%error, "the database of users and torrents failed, going on with what is known");
        }
        loud
    }
}

#[cfg(test)]
mod tests {
    use database::DatabaseError;

    use super::*;

    #[test]
    fn a_failure_that_lasts_is_logged_once_a_minute() {
        let mut complaints = Complaints::new(Duration::from_millis(200));
        let loud =
            (0..601).filter(|_| complaints.hear(Some(&AccessError::Database(DatabaseError::Busy)))).count();
        assert_eq!(loud, 3);
        assert!(complaints.hear(None));
        assert!(!complaints.hear(None));
        assert!(complaints.hear(Some(&AccessError::Database(DatabaseError::Busy))));
    }
}
