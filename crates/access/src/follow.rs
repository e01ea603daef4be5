//! Keeps a gate equal to the database while the server runs.
//!
//! The tables' triggers number every change in `access_changes`. The follower asks for the newest number a few times a
//! second (one small read), and takes in the present state of what changed since the number it knows. Where the log
//! no longer reaches back that far, it reads everything again.
//!
//! # Guarantees
//!
//! - A change by any process is in the gate one poll later, all of one batch together; then `on_change` hears of it.
//! - The gate is never emptied: a full reload puts in what is there before it takes out what is not.
//! - A poll that fails changes nothing: the gate keeps what it has, the next poll tries again, and the log hears of it
//!   once a minute at most.
//! - The log stays bounded: the follower trims it.

use std::sync::Arc;
use std::time::Duration;

use domain::{InfoHash, UserId};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::time::MissedTickBehavior;

use crate::error::AccessError;
use crate::gate::Gate;
use crate::store::Store;

mod apply;
mod log;

use apply::Applier;

/// How often the follower looks.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How many changes the log keeps, so that several followers of one file need not reload.
const LOG_ROWS_MAX: u32 = 100_000;
/// How often a failure that lasts is logged.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What became of somebody or something, told after the gate knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A user was added or enabled, or has a new passkey.
    UserAdmitted(UserId),
    /// A user was removed or disabled: their peers must go.
    UserRemoved(UserId),
    /// A torrent was added or enabled, or its v2 hash or id changed.
    TorrentAdmitted(InfoHash),
    /// A torrent was removed or disabled, or is known by another name now: its peers must go.
    TorrentRemoved(InfoHash),
    /// The list of clients changed.
    ClientsChanged,
}

/// Watches a database on behalf of a gate.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    gate: Arc<Gate>,
    /// Every change up to this number is in the gate.
    known: i64,
    /// None after a failure: the next poll connects anew.
    connection: Option<SqliteConnection>,
    poll_every: Duration,
    log_rows_max: u32,
}

/// Fills the gate from the database.
pub async fn load(store: Store, gate: Arc<Gate>) -> Result<Follower, AccessError> {
    let mut follower = Follower {
        store,
        gate,
        known: 0,
        connection: None,
        poll_every: POLL_EVERY,
        log_rows_max: LOG_ROWS_MAX,
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

    /// Follows the database until `shutdown` is ready.
    pub async fn run(mut self, mut on_change: impl FnMut(Change), shutdown: impl Future) {
        let mut ticks = tokio::time::interval(self.poll_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut complaints = Complaints::new(self.poll_every);
        let follow = async {
            loop {
                ticks.tick().await;
                let outcome = self.poll(&mut on_change).await;
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
            let mut connection = self.take_connection().await?;
            let known = self.known;
            let explain = |error| self.store.explain(error);
            let news = log::read_news(&mut connection, known).await.map_err(explain)?;
            match news {
                log::News::None => {
                    log::trim(&mut connection, self.log_rows_max).await.map_err(explain)?;
                    self.connection = Some(connection);
                    return Ok(());
                }
                log::News::Batch(batch) => {
                    self.connection = Some(connection);
                    self.known = batch.up_to;
                    Applier::new(&self.gate, on_change).take_in(batch);
                }
                log::News::Lost => {
                    self.connection = Some(connection);
                    tracing::info!(
                        "the log of changes does not reach back far enough, reading all users and torrents again"
                    );
                    self.reload(on_change).await?;
                }
            }
        }
    }

    /// Reads everything in one consistent view.
    async fn reload(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        let mut connection = self.take_connection().await?;
        let mut transaction = connection.begin().await.map_err(|error| self.store.explain(error))?;
        let mut applier = Applier::new(&self.gate, on_change);
        let known = apply::read_all(&mut transaction, &mut applier).await;
        // Even a reload that broke off has changed what it had read by then.
        applier.finish();
        self.known = known.map_err(|error| self.store.explain(error))?;
        transaction.rollback().await.map_err(|error| self.store.explain(error))?;
        self.connection = Some(connection);
        Ok(())
    }

    /// The connection, to be put back where all went well.
    async fn take_connection(&mut self) -> Result<SqliteConnection, AccessError> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.store.connect().await,
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
    use super::*;

    #[test]
    fn a_failure_that_lasts_is_logged_once_a_minute() {
        let mut complaints = Complaints::new(Duration::from_millis(200));
        let loud = (0..601).filter(|_| complaints.hear(Some(&AccessError::Busy))).count();
        assert_eq!(loud, 3);
        assert!(complaints.hear(None));
        assert!(!complaints.hear(None));
        assert!(complaints.hear(Some(&AccessError::Busy)));
    }
}
