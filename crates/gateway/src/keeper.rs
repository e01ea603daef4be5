//! Writes down what a restart must not forget: who is here, what they declared, and the history (P11, P13).
//!
//! # Guarantees
//!
//! - Writes are batches: a thousand rows, or what came together within a second.
//! - Of one person only the last state is written; the history is written in the order in which it happened, and
//!   before the state that follows from it.
//! - What could not be written waits and is tried again. What waits is bounded: beyond that the oldest rows of history
//!   are dropped, and counted.
//! - [`Keeper::flush`] returns when everything that was there before has been written, or says that it could not be.
//!
//! # Deliberately absent
//!
//! Promises about the last second before a crash: who came within it is not pending after the restart, and
//! simply connects again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use people::{Occurrence, People, PeopleError};
use presence::{LastKnown, Remembered};
use tokio::sync::{Notify, watch};

use crate::counters::GatewayCounters;

/// Rows in one write (P13).
const BATCH_ROWS_MAX: usize = 1_000;
/// What came together within this is written together (P13).
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How long one write may take. A server that went away without a word would be waited for for many minutes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows of history that may wait.
const HISTORY_WAITING_MAX: usize = 200_000;
/// People whose state may wait: more than fit into one server.
const PEOPLE_WAITING_MAX: usize = 2_000_000;

/// What waits to be written.
#[derive(Default)]
struct Waiting {
    people: HashMap<UserId, Remembered, foldhash::fast::RandomState>,
    /// Of the batch that is being written right now.
    in_flight: HashMap<UserId, Remembered, foldhash::fast::RandomState>,
    history: VecDeque<Occurrence>,
}

impl Waiting {
    fn len(&self) -> usize {
        self.people.len() + self.history.len()
    }

    fn take_people(&mut self) -> Vec<Remembered> {
        let users: Vec<UserId> = self.people.keys().copied().take(BATCH_ROWS_MAX).collect();
        let batch: Vec<Remembered> = users.iter().filter_map(|user| self.people.remove(user)).collect();
        self.in_flight.extend(batch.iter().map(|remembered| (remembered.user, remembered.clone())));
        batch
    }

    fn take_history(&mut self) -> Vec<Occurrence> {
        let count = self.history.len().min(BATCH_ROWS_MAX);
        self.history.drain(..count).collect()
    }
}

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    /// The database says so.
    #[error(transparent)]
    People(#[from] PeopleError),
    /// It may have been written or not.
    #[error("the database does not answer in time")]
    TimedOut,
}

/// Keeps what is to be written, and writes it.
pub(crate) struct Keeper {
    people: People,
    counters: Arc<GatewayCounters>,
    waiting: Mutex<Waiting>,
    /// Something waits.
    some: Notify,
    /// A whole batch waits.
    full: Notify,
    /// One writer at a time, or an older state could be written after a newer one.
    writing: tokio::sync::Mutex<()>,
}

impl Keeper {
    pub(crate) fn new(people: People, counters: Arc<GatewayCounters>) -> Keeper {
        Keeper {
            people,
            counters,
            waiting: Mutex::default(),
            some: Notify::new(),
            full: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The state of a person is to be written.
    pub(crate) fn remember(&self, remembered: Remembered) {
        let mut waiting = self.waiting.lock();
        if waiting.people.len() >= PEOPLE_WAITING_MAX && !waiting.people.contains_key(&remembered.user) {
            self.counters.hub.keeper_dropped.increment();
            return;
        }
        waiting.people.insert(remembered.user, remembered);
        self.wake(&waiting);
    }

    /// Something happened that belongs into the history.
    pub(crate) fn record(&self, occurrence: Occurrence) {
        let mut waiting = self.waiting.lock();
        waiting.history.push_back(occurrence);
        if waiting.history.len() > HISTORY_WAITING_MAX {
            waiting.history.pop_front();
            self.counters.hub.keeper_dropped.increment();
        }
        self.wake(&waiting);
    }

    /// What is known of a person: what the database said, unless something newer waits to be written.
    pub(crate) fn newest(&self, user: UserId, read: LastKnown) -> LastKnown {
        let waiting = self.waiting.lock();
        match waiting.people.get(&user).or_else(|| waiting.in_flight.get(&user)) {
            None => read,
            Some(newer) => LastKnown {
                last_seen: newer.last_seen,
                public_version: newer.public_version,
                own_version: newer.own_version,
                declaration: newer.declaration.clone(),
            },
        }
    }

    fn wake(&self, waiting: &Waiting) {
        self.counters.hub.keeper_waiting.set(waiting.len());
        self.some.notify_one();
        if waiting.len() >= BATCH_ROWS_MAX {
            self.full.notify_one();
        }
    }

    /// Writes until it is told to stop. What is left then is for [`Keeper::flush`].
    pub(crate) async fn run(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.some.notified() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::select! {
                () = self.full.notified() => {}
                () = tokio::time::sleep(BATCH_WAIT) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            if let Err(error) = self.flush().await {
                tracing::warn!(%error, "presence cannot be written down; it is tried again");
                self.some.notify_one();
                tokio::select! {
                    () = tokio::time::sleep(BATCH_WAIT) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    /// Writes everything that waits.
    pub(crate) async fn flush(&self) -> Result<(), KeeperError> {
        let _one_writer = self.writing.lock().await;
        loop {
            let history = self.waiting.lock().take_history();
            if !history.is_empty() {
                self.write_history(history).await?;
                continue;
            }
            let people = self.waiting.lock().take_people();
            if people.is_empty() {
                break;
            }
            self.write_people(people).await?;
        }
        Ok(())
    }

    async fn write_history(&self, batch: Vec<Occurrence>) -> Result<(), KeeperError> {
        let written = in_time(self.people.record(&batch)).await;
        match &written {
            Ok(_) => self.wrote(batch.len()),
            Err(_) => {
                self.counters.hub.keeper_failures.increment();
                let mut waiting = self.waiting.lock();
                for occurrence in batch.into_iter().rev() {
                    waiting.history.push_front(occurrence);
                }
            }
        }
        written.map(drop)
    }

    async fn write_people(&self, batch: Vec<Remembered>) -> Result<(), KeeperError> {
        let written = in_time(self.people.remember(&batch)).await;
        let rows = batch.len();
        let mut waiting = self.waiting.lock();
        waiting.in_flight.clear();
        if written.is_err() {
            for remembered in batch {
                // What came meanwhile is newer.
                waiting.people.entry(remembered.user).or_insert(remembered);
            }
        }
        drop(waiting);
        match &written {
            Ok(_) => self.wrote(rows),
            Err(_) => self.counters.hub.keeper_failures.increment(),
        }
        written.map(drop)
    }

    fn wrote(&self, rows: usize) {
        self.counters.hub.keeper_written.add(rows as u64);
        self.counters.hub.keeper_waiting.set(self.waiting.lock().len());
    }
}

/// Waits for the database, but not for ever.
async fn in_time<T>(write: impl Future<Output = Result<T, PeopleError>>) -> Result<T, KeeperError> {
    let written = tokio::time::timeout(WRITE_TIMEOUT, write).await.map_err(|_| KeeperError::TimedOut)?;
    Ok(written?)
}
