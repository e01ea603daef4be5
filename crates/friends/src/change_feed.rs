//! Change feed of friendships and privacy, including changes that other processes and the site's own SQL make.
//!
//! Triggers on the tables insert a row into `people_changes` for every change. A feed polls that log a few times a
//! second (one small read) and returns which users changed; the caller then reads their current state.
//!
//! # Guarantees
//!
//! - A change by any process is returned by the first poll after its commit, or [`FriendsChange::Everything`] is.
//! - A failed poll loses nothing: the next one returns the same changes. Failures are logged at most once a minute.
//! - [`ChangeFeed::next`] is cancel safe.
//! - The change log stays bounded: feeds trim it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use database::{ChangeLog, ChangeLogReader, ChangeWait, FromRow, LogRead, Position, Row, SqlError};
use domain::UserId;

use crate::error::FriendsError;
use crate::store::{FriendStore, user_of};

/// The log of the tables.
const LOG: ChangeLog = ChangeLog {
    table: "people_changes",
    columns: "kind, user_a, user_b",
    newest: "SELECT newest FROM people_counters WHERE name = 'changes'",
    trimmed_postgres: Some("people_trimmed"),
    channel_postgres: "people_changes",
    batch: None,
};
/// Rows that the change log keeps, so that several feeds can lag without reading everything again.
const LOG_ROWS_MAX: u32 = 100_000;
/// Timeout of each connect, read and trim.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// On a busy site, one poll in this many also trims the log.
const TRIM_EVERY_POLLS: u32 = 50;
/// Interval of warnings while polls keep failing.
const WARN_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FriendsChange {
    /// Two users became friends or ended their friendship. The lower id comes first.
    Friends(UserId, UserId),
    Privacy(UserId),
    /// Too many changes to list: read everything again.
    Everything,
}

#[derive(Debug, Default)]
pub struct ChangeFeedCounters {
    /// Successful polls.
    pub polls: AtomicU64,
    pub failures: AtomicU64,
    /// Zero while the database answers.
    pub failures_in_a_row: AtomicU64,
    /// Times that [`FriendsChange::Everything`] was returned.
    pub everything: AtomicU64,
}

pub struct ChangeFeed {
    store: FriendStore,
    every: Duration,
    log_rows_max: u32,
    wait: ChangeWait,
    /// Whether the last poll returned changes.
    had_changes: bool,
    /// Every change up to here was returned. None before the first poll.
    known: Option<Position>,
    /// Consecutive polls that returned changes.
    polls_untrimmed: u32,
    /// None after a failure: the next poll opens a new connection.
    log: Option<ChangeLogReader>,
    counters: Arc<ChangeFeedCounters>,
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed").field("known", &self.known).finish_non_exhaustive()
    }
}

impl FriendStore {
    /// A feed of the changes from [`ChangeFeed::begin`] on, polled at this interval.
    pub fn change_feed(&self, every: Duration) -> ChangeFeed {
        ChangeFeed {
            store: self.clone(),
            every: every.max(Duration::from_millis(1)),
            log_rows_max: LOG_ROWS_MAX,
            wait: ChangeWait::new(&self.database, LOG, every),
            had_changes: true,
            known: None,
            polls_untrimmed: 0,
            log: None,
            counters: Arc::default(),
        }
    }
}

impl ChangeFeed {
    /// Overrides the default of 100,000 rows in the change log.
    pub fn log_rows_max(mut self, rows: u32) -> Self {
        self.log_rows_max = rows;
        self
    }

    pub fn counters(&self) -> Arc<ChangeFeedCounters> {
        Arc::clone(&self.counters)
    }

    /// Starts the feed: every later change will be returned, so a caller that reads friends after this misses nothing.
    /// Without a successful call, the first poll starts the feed and returns [`FriendsChange::Everything`].
    pub async fn begin(&mut self) -> Result<(), FriendsError> {
        let mut log = self.take_log().await?;
        let present = log.position().await.map_err(|error| self.store.explain(error))?;
        self.known = Some(present);
        self.log = Some(log);
        Ok(())
    }

    /// Waits for changes. Each is returned once; the result is never empty.
    pub async fn next(&mut self) -> Vec<FriendsChange> {
        loop {
            self.wait.wait(self.had_changes).await;
            let outcome = self.poll().await;
            self.had_changes = outcome.as_ref().is_ok_and(|changes| !changes.is_empty());
            self.note(outcome.as_ref().err());
            match outcome {
                Ok(changes) if !changes.is_empty() => return changes,
                _ => {}
            }
        }
    }

    /// Polls once.
    pub async fn poll(&mut self) -> Result<Vec<FriendsChange>, FriendsError> {
        let Some(known) = self.known.clone() else {
            self.begin().await?;
            return Ok(self.everything());
        };
        let mut log = self.take_log().await?;
        let changes = in_time(read(&mut log, &known)).await.map_err(|error| self.store.explain(error))?;
        // Trim when there are no changes, and regularly on a busy site, whose log would otherwise never shrink. Trims a
        // part at a time, and before the position advances.
        let is_quiet = matches!(changes, LogRead::UpToDate(_));
        self.polls_untrimmed = if is_quiet { 0 } else { self.polls_untrimmed.wrapping_add(1) };
        let trimmed = match is_quiet || self.polls_untrimmed.is_multiple_of(TRIM_EVERY_POLLS) {
            true => in_time(log.trim(self.log_rows_max)).await,
            false => Ok(()),
        };
        // A failed trim does not withhold the changes; the next poll opens a new connection.
        self.log = trimmed.is_ok().then_some(log);
        // No await from here on: the position advances only when the changes are returned.
        match changes {
            LogRead::UpToDate(up_to) => {
                self.known = Some(up_to);
                trimmed.map_err(|error| self.store.explain(error))?;
                Ok(Vec::new())
            }
            LogRead::Changes(rows, up_to) => {
                self.known = Some(up_to);
                let mut changes: Vec<FriendsChange> = rows.into_iter().filter_map(change_of).collect();
                changes.sort_unstable();
                changes.dedup();
                Ok(changes)
            }
            LogRead::Truncated(up_to) => {
                self.known = Some(up_to);
                Ok(self.everything())
            }
        }
    }

    fn everything(&self) -> Vec<FriendsChange> {
        self.counters.everything.fetch_add(1, Ordering::Relaxed);
        vec![FriendsChange::Everything]
    }

    /// The caller puts the log back after success.
    async fn take_log(&mut self) -> Result<ChangeLogReader, FriendsError> {
        match self.log.take() {
            Some(log) => Ok(log),
            None => {
                let connecting = ChangeLogReader::connect(&self.store.database, LOG);
                in_time(connecting).await.map_err(|error| self.store.explain(error))
            }
        }
    }

    /// Counts, and logs the first of consecutive failures, then one a minute, then the recovery.
    fn note(&self, failure: Option<&FriendsError>) {
        let Some(error) = failure else {
            self.counters.polls.fetch_add(1, Ordering::Relaxed);
            if self.counters.failures_in_a_row.swap(0, Ordering::Relaxed) > 0 {
                tracing::info!("the friend database answers again");
            }
            return;
        };
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let before = self.counters.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
        let polls_between = (WARN_EVERY.as_millis() / self.every.as_millis().max(1)).max(1) as u64;
        if before.is_multiple_of(polls_between) {
            tracing::warn!(%error, "cannot poll the friend database; friendships and privacy may be outdated until it answers");
        }
    }
}

async fn read(log: &mut ChangeLogReader, known: &Position) -> Result<LogRead, SqlError> {
    let changes = log.read_after(known).await?;
    if !matches!(changes, LogRead::UpToDate(_)) {
        log.end_snapshot().await?;
    }
    Ok(changes)
}

/// Without a timeout, an unreachable server would block for many minutes (kernel TCP timeouts).
async fn in_time<T>(work: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
    tokio::time::timeout(POLL_TIMEOUT, work).await.unwrap_or(Err(SqlError::TimedOut))
}

/// None for rows with invalid ids.
fn change_of(mut row: Row) -> Option<FriendsChange> {
    let (kind, one, other): (String, i64, i64) = FromRow::from_row(&mut row).ok()?;
    match kind.as_str() {
        "friends" => Some(FriendsChange::Friends(user_of(one)?, user_of(other)?)),
        _ => Some(FriendsChange::Privacy(user_of(one)?)),
    }
}
