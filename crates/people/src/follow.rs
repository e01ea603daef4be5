//! Tells of every change of friendships and privacy, by whomever it was made.
//!
//! The tables' triggers note every change in `people_changes`. A follower asks a few times a second whether there is
//! anything new (one small read), and says what it is about: whoever hears of it reads the present state.
//!
//! # Guarantees
//!
//! - A change by any process is told one look after its commit, or [`PeopleChange::Everything`] is.
//! - A look that fails loses nothing: the next one tells it. The log hears of it once a minute at most.
//! - [`Follower::next`] may be dropped while it waits; nothing is lost by it.
//! - The log of changes stays bounded: followers trim it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::UserId;
use tokio::time::{Interval, MissedTickBehavior};

use crate::error::PeopleError;
use crate::store::{People, user_of};

mod log;
mod mysql;
mod postgres;
mod sqlite;

use log::{ChangeLog, Entry, Known, News};

/// How many changes the log keeps, so that several followers need not read everything again.
const LOG_ROWS_MAX: u32 = 100_000;
/// How long one look may take.
const NEWS_TIMEOUT: Duration = Duration::from_secs(10);
/// Of so many looks in a row that had something to tell, one also shortens the log.
const BUSY_LOOKS: u32 = 50;
/// How often a failure that lasts is logged.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeopleChange {
    /// These two became friends, or are no longer; the lower id first.
    Friends(UserId, UserId),
    /// What this person has chosen.
    Privacy(UserId),
    /// Anything: more happened than can be told one by one.
    Everything,
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
    /// Times that everything was told to have changed.
    pub everything: AtomicU64,
}

/// Watches the database for changes.
pub struct Follower {
    people: People,
    every: Duration,
    log_rows_max: u32,
    ticks: Option<Interval>,
    /// Every change up to here was told. None before the first look.
    known: Option<Known>,
    /// Looks in a row that had something to tell.
    looks_untrimmed: u32,
    /// None after a failure: the next look connects anew.
    log: Option<Box<dyn ChangeLog>>,
    counters: Arc<FollowCounters>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("known", &self.known).finish_non_exhaustive()
    }
}

impl People {
    /// Follows changes from now on: see [`Follower::begin`]. Looks this often.
    pub fn follow(&self, every: Duration) -> Follower {
        Follower {
            people: self.clone(),
            every: every.max(Duration::from_millis(1)),
            log_rows_max: LOG_ROWS_MAX,
            ticks: None,
            known: None,
            looks_untrimmed: 0,
            log: None,
            counters: Arc::default(),
        }
    }
}

impl Follower {
    /// Keeps this many changes in the log instead of 100,000.
    pub fn log_rows_max(mut self, rows: u32) -> Self {
        self.log_rows_max = rows;
        self
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<FollowCounters> {
        Arc::clone(&self.counters)
    }

    /// Fixes the present: every change from here on will be told. Whoever reads friends after this misses nothing.
    /// Left out, or failed, the first look does it, and tells [`PeopleChange::Everything`] for what may have been before.
    pub async fn begin(&mut self) -> Result<(), PeopleError> {
        let mut log = self.take_log().await?;
        let present = log.present().await.map_err(|error| self.people.explain(error))?;
        self.known = Some(present);
        self.log = Some(log);
        Ok(())
    }

    /// Waits until something changed, and tells what: each change once, never nothing.
    pub async fn next(&mut self) -> Vec<PeopleChange> {
        loop {
            self.tick().await;
            let outcome = self.poll().await;
            self.note(outcome.as_ref().err());
            match outcome {
                Ok(changes) if !changes.is_empty() => return changes,
                _ => {}
            }
        }
    }

    /// Looks once. For tests and for loops of one's own.
    pub async fn poll(&mut self) -> Result<Vec<PeopleChange>, PeopleError> {
        let Some(known) = self.known.clone() else {
            self.begin().await?;
            return Ok(self.everything());
        };
        let mut log = self.take_log().await?;
        // A server that went away without a word would be waited for by the kernel for many minutes.
        let news = tokio::time::timeout(NEWS_TIMEOUT, log.news(&known)).await;
        let news = news.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let news = news.map_err(|error| self.people.explain(error))?;
        // When there is nothing to tell; but on a busy site now and then also otherwise, or its log would never get
        // shorter. A part at a time, and before anything is noted as told.
        let is_quiet = matches!(news, News::None(_));
        self.looks_untrimmed = if is_quiet { 0 } else { self.looks_untrimmed.wrapping_add(1) };
        let trimmed = match is_quiet || self.looks_untrimmed.is_multiple_of(BUSY_LOOKS) {
            true => {
                let trimming = tokio::time::timeout(NEWS_TIMEOUT, log.trim(self.log_rows_max)).await;
                trimming.unwrap_or(Err(sqlx::Error::PoolTimedOut))
            }
            false => Ok(()),
        };
        // What cannot be shortened can be told all the same; the next look connects anew.
        let log = trimmed.is_ok().then_some(log);
        // From here on nothing waits, so that what is noted as told is told.
        match news {
            News::None(up_to) => {
                self.known = Some(up_to);
                self.log = log;
                trimmed.map_err(|error| self.people.explain(error))?;
                Ok(Vec::new())
            }
            News::Some(entries, up_to) => {
                self.known = Some(up_to);
                self.log = log;
                let mut changes: Vec<PeopleChange> = entries.iter().filter_map(change_of).collect();
                changes.sort_unstable();
                changes.dedup();
                Ok(changes)
            }
            News::Lost(up_to) => {
                self.known = Some(up_to);
                self.log = log;
                Ok(self.everything())
            }
        }
    }

    fn everything(&self) -> Vec<PeopleChange> {
        self.counters.everything.fetch_add(1, Ordering::Relaxed);
        vec![PeopleChange::Everything]
    }

    async fn tick(&mut self) {
        let every = self.every;
        let ticks = self.ticks.get_or_insert_with(|| {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        ticks.tick().await;
    }

    /// The log, to be put back where all went well.
    async fn take_log(&mut self) -> Result<Box<dyn ChangeLog>, PeopleError> {
        match self.log.take() {
            Some(log) => Ok(log),
            None => {
                let connecting =
                    tokio::time::timeout(NEWS_TIMEOUT, log::connect(&self.people.database)).await;
                let connected = connecting.unwrap_or(Err(sqlx::Error::PoolTimedOut));
                connected.map_err(|error| self.people.explain(error))
            }
        }
    }

    /// Counts, and logs the first failure of a row, then one a minute, then the recovery.
    fn note(&self, failure: Option<&PeopleError>) {
        let Some(error) = failure else {
            self.counters.polls.fetch_add(1, Ordering::Relaxed);
            if self.counters.failures_in_a_row.swap(0, Ordering::Relaxed) > 0 {
                tracing::info!("the database of friends answers again");
            }
            return;
        };
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let before = self.counters.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
        let looks_between = (WARN_EVERY.as_millis() / self.every.as_millis().max(1)).max(1) as u64;
        if before.is_multiple_of(looks_between) {
            tracing::warn!(%error, "the database of friends failed, going on with what is known");
        }
    }
}

/// None for what nobody of us wrote.
fn change_of(entry: &Entry) -> Option<PeopleChange> {
    let (kind, one, other) = entry;
    match kind.as_str() {
        "friends" => Some(PeopleChange::Friends(user_of(*one)?, user_of(*other)?)),
        _ => Some(PeopleChange::Privacy(user_of(*one)?)),
    }
}
