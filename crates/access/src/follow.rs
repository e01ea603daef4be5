//! Keeps a gate equal to the database while the server runs.
//!
//! Triggers record every change in the table `access_changes`, the change log ([`database::change_log`]). The follower
//! waits for changes, and reads the current rows of what changed. If the log was trimmed past the follower's position, it
//! reads everything again.
//!
//! # Guarantees
//!
//! - A change by any process is in the gate one poll later, a batch at a time; then it is reported to `on_change`.
//! - The gate is never emptied: a full reload inserts present rows before it removes absent ones.
//! - A failed poll changes nothing and is retried; failures are logged at most once a minute.
//! - The change log is bounded: the follower trims it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use database::{ChangeLogReader, ChangeWait, Position, SqlError};
use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, UserId};

use crate::error::AccessError;
use crate::gate::Gate;
use crate::store::Store;
use crate::store::tables::Tables;

mod gate_updater;
mod log;

use gate_updater::GateUpdater;
use log::{LOG, LogRead};

const POLL_EVERY: Duration = Duration::from_millis(200);
/// Rows that the change log keeps, so that slow followers need not reload.
const LOG_ROWS_MAX: u32 = 100_000;
/// Time limit of one poll: an unreachable server would block it until the kernel gives up, after many minutes.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// One warning a minute while polls fail.
const POLLS_PER_WARNING: u32 = 300;

/// A change of the gate, reported after it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A user was added or enabled, or has a new passkey or other slots.
    UserAdmitted(UserId),
    /// A user was removed or disabled: the peers must be evicted.
    UserRemoved(UserId),
    /// A torrent was added, enabled or approved, or its v2 hash, id or slots changed.
    TorrentAdmitted(InfoHash),
    /// A torrent was removed or disabled, or has another primary infohash: the peers must be evicted.
    TorrentRemoved(InfoHash),
    ClientsChanged,
    PortsChanged,
    /// The user of a passkey was added, removed, replaced, enabled or disabled. Reported in addition to the others, for
    /// copies of the gate.
    PasskeyChanged(Passkey),
    /// The same for an infohash, v1 or v2.
    InfoHashChanged(InfoHash),
    /// The site published this passkey: it must be verified again.
    PasskeyPublished(Passkey),
}

#[derive(Debug, Default)]
pub struct FollowCounters {
    /// Successful polls.
    pub polls: AtomicU64,
    pub failures: AtomicU64,
    /// Consecutive failures; zero while the database answers.
    pub failures_in_a_row: AtomicU64,
    /// Full reloads after the log was trimmed past the position.
    pub reloads: AtomicU64,
}

impl FollowCounters {
    pub(crate) fn count_poll(&self, is_failure: bool) {
        if is_failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
            self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
        } else {
            self.polls.fetch_add(1, Ordering::Relaxed);
            self.failures_in_a_row.store(0, Ordering::Relaxed);
        }
    }
}

pub struct Follower {
    store: Store,
    gate: Arc<Gate>,
    /// Every change up to here is in the gate. None before the first load.
    position: Option<Position>,
    /// None after a failure: the next poll opens another connection.
    log: Option<ChangeLogReader>,
    log_rows_max: u32,
    counters: Arc<FollowCounters>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("store", &self.store)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// Fills the gate from the database.
pub async fn load(store: Store, gate: Arc<Gate>) -> Result<Follower, AccessError> {
    let mut follower = Follower {
        store,
        gate,
        position: None,
        log: None,
        log_rows_max: LOG_ROWS_MAX,
        counters: Arc::default(),
        clock: Arc::new(SystemClock),
    };
    follower.reload(&mut |_| ()).await?;
    Ok(follower)
}

impl Follower {
    /// Default: 100,000.
    pub fn log_rows_max(mut self, rows: u32) -> Self {
        self.log_rows_max = rows;
        self
    }

    /// The clock for times of approval. Default: the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    pub fn counters(&self) -> Arc<FollowCounters> {
        Arc::clone(&self.counters)
    }

    /// Runs until `shutdown` is ready.
    pub async fn run(mut self, mut on_change: impl FnMut(Change), shutdown: impl Future) {
        let mut wait = ChangeWait::new(self.store.database(), LOG, POLL_EVERY);
        let mut had_changes = true;
        let mut failure_log = FailureLog::default();
        let follow = async {
            loop {
                wait.wait(had_changes).await;
                let known = self.position.clone();
                let outcome = self.poll(&mut on_change).await;
                had_changes = outcome.is_ok() && self.position != known;
                self.counters.count_poll(outcome.is_err());
                failure_log.record(outcome.as_ref().err());
            }
        };
        tokio::select! {
            () = follow => {}
            _ = shutdown => {}
        }
    }

    /// Applies all changes in the log, once. For tests, and for loops other than [`Follower::run`].
    pub async fn poll(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        loop {
            match self.read_log().await? {
                LogRead::UpToDate(position) => {
                    self.position = Some(position);
                    return self.trim().await;
                }
                LogRead::Batch(batch) => {
                    self.position = Some(batch.up_to.clone());
                    GateUpdater::new(&self.gate, on_change, self.clock.steady()).apply(batch);
                }
                LogRead::Truncated => {
                    tracing::info!(
                        "change log was trimmed past the last read; reloading all users and torrents"
                    );
                    self.counters.reloads.fetch_add(1, Ordering::Relaxed);
                    self.reload(on_change).await?;
                }
            }
        }
    }

    async fn read_log(&mut self) -> Result<LogRead, AccessError> {
        let Some(position) = self.position.clone() else { return Ok(LogRead::Truncated) };
        let mut log = self.take_log().await?;
        let read = tokio::time::timeout(POLL_TIMEOUT, log::read_after(&mut log, &position)).await;
        let read = read.unwrap_or(Err(SqlError::TimedOut)).map_err(|error| self.store.explain(error))?;
        self.log = Some(log);
        Ok(read)
    }

    async fn trim(&mut self) -> Result<(), AccessError> {
        let mut log = self.take_log().await?;
        log.trim(self.log_rows_max).await.map_err(|error| self.store.explain(error))?;
        self.log = Some(log);
        Ok(())
    }

    /// Reads everything in one consistent snapshot.
    async fn reload(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        let mut log = self.take_log().await?;
        let position = log.begin_snapshot().await.map_err(|error| self.store.explain(error))?;
        let mut updater = GateUpdater::new(&self.gate, on_change, self.clock.steady());
        let outcome = gate_updater::read_all(&mut Tables::Session(log.session()), &mut updater).await;
        // A failed reload has applied what it read until then.
        updater.finish();
        outcome.map_err(|error| self.store.explain(error))?;
        log.end_snapshot().await.map_err(|error| self.store.explain(error))?;
        self.position = Some(position);
        self.log = Some(log);
        Ok(())
    }

    /// The caller puts the log back unless an error occurred.
    async fn take_log(&mut self) -> Result<ChangeLogReader, AccessError> {
        match self.log.take() {
            Some(log) => Ok(log),
            None => {
                let connected = ChangeLogReader::connect(self.store.database(), LOG).await;
                connected.map_err(|error| self.store.explain(error))
            }
        }
    }
}

/// Logs the first of consecutive failures, then one a minute, then the recovery.
#[derive(Debug, Default)]
struct FailureLog {
    failures: u32,
}

impl FailureLog {
    /// Returns whether a line was written.
    fn record(&mut self, failure: Option<&AccessError>) -> bool {
        let Some(error) = failure else {
            let recovered = std::mem::take(&mut self.failures) > 0;
            if recovered {
                tracing::info!("database of users and torrents answers again");
            }
            return recovered;
        };
        let is_due = self.failures.is_multiple_of(POLLS_PER_WARNING);
        self.failures = self.failures.wrapping_add(1).max(1);
        if is_due {
            tracing::warn!(%error, "database of users and torrents failed; using the rows already read");
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use database::DatabaseError;

    use super::*;

    #[test]
    fn a_lasting_failure_is_logged_once_a_minute() {
        let mut failure_log = FailureLog::default();
        let lines = (0..601)
            .filter(|_| failure_log.record(Some(&AccessError::Database(DatabaseError::Busy))))
            .count();
        assert_eq!(lines, 3);
        assert!(failure_log.record(None));
        assert!(!failure_log.record(None));
        assert!(failure_log.record(Some(&AccessError::Database(DatabaseError::Busy))));
    }
}
