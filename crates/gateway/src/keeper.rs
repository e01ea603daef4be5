//! Writes down what a restart must not forget: who is here, what they declared, and the history (P11, P13).
//!
//! # Guarantees
//!
//! - Writes are batches: a thousand rows, or what came together within a second.
//! - Of one person only the last state is written; the history is written in the order in which it happened, and
//!   before the state that follows from it.
//! - Who changes their status over and over does not fill the history: beyond ten changes, and one more each second, those
//!   that are not written yet are one change, from the first status to the last.
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
use people::{Occurrence, OccurrenceKind, People, PeopleError};
use presence::{LastKnown, Remembered};
use tokio::sync::{Notify, watch};

use crate::counters::GatewayCounters;

/// Rows in one write (P13).
const BATCH_ROWS_MAX: usize = 1_000;
/// What came together within this is written together (P13).
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Changes of one person's status that are kept each by itself: one in this time, in milliseconds, and so many at once.
const CHANGE_EVERY_MS: u64 = 1_000;
const CHANGES_AT_ONCE: u64 = 10;
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
    /// How much was ever taken out of the front of the history.
    taken: u64,
    /// Who changed their status lately.
    changes: HashMap<UserId, Changes, foldhash::fast::RandomState>,
}

/// Somebody's last changes of status.
#[derive(Default)]
struct Changes {
    /// Where the last one is, counted from the first row ever; none if something else followed it.
    place: Option<u64>,
    /// When it will be as if there had been none.
    forgotten_at_ms: u64,
}

impl Waiting {
    fn len(&self) -> usize {
        self.people.len() + self.history.len()
    }

    /// The newer state of a person counts: several tasks keep what the register says, and the later one may be first.
    fn add_person(&mut self, remembered: Remembered) {
        let user = remembered.user;
        let kept = self.people.get(&user).or_else(|| self.in_flight.get(&user));
        if kept.is_none_or(|kept| versions(kept) <= versions(&remembered)) {
            self.people.insert(user, remembered);
        }
    }

    fn take_people(&mut self) -> Vec<Remembered> {
        let users: Vec<UserId> = self.people.keys().copied().take(BATCH_ROWS_MAX).collect();
        let batch: Vec<Remembered> = users.iter().filter_map(|user| self.people.remove(user)).collect();
        self.in_flight.extend(batch.iter().map(|remembered| (remembered.user, remembered.clone())));
        batch
    }

    fn take_history(&mut self) -> Vec<Occurrence> {
        // What became nothing, by a change back, is not written; a batch of only such would look like the end.
        loop {
            let count = self.history.len().min(BATCH_ROWS_MAX);
            let mut batch: Vec<Occurrence> = self.history.drain(..count).collect();
            self.taken += count as u64;
            if let Some(last) = batch.last().filter(|_| self.history.is_empty()) {
                self.changes.retain(|_, changes| changes.forgotten_at_ms > last.at_ms);
                self.changes.shrink_to(BATCH_ROWS_MAX);
            }
            batch.retain(|one| !matches!(one.kind, OccurrenceKind::Transition { from, to } if from == to));
            if !batch.is_empty() || count == 0 {
                return batch;
            }
        }
    }

    /// What could not be written is first again.
    fn put_back(&mut self, batch: Vec<Occurrence>) {
        // Places are counted anew; what waits is not put together with what comes.
        self.changes.values_mut().for_each(|changes| changes.place = None);
        for occurrence in batch.into_iter().rev() {
            self.history.push_front(occurrence);
        }
    }

    fn add_history(&mut self, occurrence: Occurrence) {
        let user = occurrence.user;
        let OccurrenceKind::Transition { to, .. } = occurrence.kind else {
            if let Some(changes) = self.changes.get_mut(&user) {
                changes.place = None;
            }
            self.history.push_back(occurrence);
            return;
        };
        let changes = self.changes.entry(user).or_default();
        let forgotten_at_ms = changes.forgotten_at_ms.max(occurrence.at_ms) + CHANGE_EVERY_MS;
        if forgotten_at_ms <= occurrence.at_ms + CHANGE_EVERY_MS * CHANGES_AT_ONCE {
            changes.forgotten_at_ms = forgotten_at_ms;
        } else if let Some(place) = changes.place.and_then(|place| place.checked_sub(self.taken))
            && let Some(last) = self.history.get_mut(place as usize)
            && let OccurrenceKind::Transition { from, .. } = last.kind
        {
            last.kind = OccurrenceKind::Transition { from, to };
            (last.cause, last.device) = (occurrence.cause, occurrence.device);
            return;
        }
        changes.place = Some(self.taken + self.history.len() as u64);
        self.history.push_back(occurrence);
    }

    /// Lets the oldest row go if there are too many; whether it did.
    fn shorten(&mut self) -> bool {
        let is_too_long = self.history.len() > HISTORY_WAITING_MAX;
        if is_too_long {
            self.history.pop_front();
            self.taken += 1;
        }
        is_too_long
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
        waiting.add_person(remembered);
        self.wake(&waiting);
    }

    /// Something happened that belongs into the history.
    pub(crate) fn record(&self, occurrence: Occurrence) {
        let mut waiting = self.waiting.lock();
        waiting.add_history(occurrence);
        if waiting.shorten() {
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

    /// Whether something about this person waits to be written.
    pub(crate) fn has(&self, user: UserId) -> bool {
        let waiting = self.waiting.lock();
        waiting.people.contains_key(&user) || waiting.in_flight.contains_key(&user)
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
                self.waiting.lock().put_back(batch);
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

/// Which of two states of a person is the newer one, as the database sees it.
fn versions(remembered: &Remembered) -> (u64, u64) {
    (remembered.own_version, remembered.public_version)
}

#[cfg(test)]
mod tests {
    use presence::{Cause, Status};

    use super::*;

    fn change(at_ms: u64, from: Status, to: Status) -> Occurrence {
        let user = UserId::new(7).unwrap();
        let kind = OccurrenceKind::Transition { from, to };
        Occurrence { user, at_ms, kind, cause: Some(Cause::Declared), device: None }
    }

    fn kinds(waiting: &mut Waiting) -> Vec<(u64, OccurrenceKind)> {
        waiting.take_history().into_iter().map(|one| (one.at_ms, one.kind)).collect()
    }

    #[test]
    fn p13_who_flips_their_status_does_not_fill_the_history() {
        let mut waiting = Waiting::default();
        let flip = |step: u64| {
            let (from, to) = if step.is_multiple_of(2) {
                (Status::Online, Status::Busy)
            } else {
                (Status::Busy, Status::Online)
            };
            change(step * 50, from, to)
        };
        (0..41).for_each(|step| waiting.add_history(flip(step)));
        let told = kinds(&mut waiting);
        assert!((10..=12).contains(&told.len()), "{told:?}");
        let last = told.last().map(|(_, kind)| *kind);
        assert_eq!(last, Some(OccurrenceKind::Transition { from: Status::Online, to: Status::Busy }));
        (41..61).for_each(|step| waiting.add_history(flip(step)));
        assert!(kinds(&mut waiting).len() <= 2);
        // Who is slower, comes or goes is told of as it was.
        waiting.add_history(change(50_000, Status::Busy, Status::Offline));
        waiting.add_history(Occurrence { kind: OccurrenceKind::Left, ..flip(1_001) });
        assert_eq!(kinds(&mut waiting).len(), 2);
        assert!(waiting.changes.contains_key(&UserId::new(7).unwrap()));
        waiting.add_history(Occurrence { kind: OccurrenceKind::Left, ..flip(1_200) });
        kinds(&mut waiting);
        assert!(waiting.changes.is_empty());
    }

    #[test]
    fn an_older_state_never_takes_the_place_of_a_newer_one() {
        let mut waiting = Waiting::default();
        let state = |own_version, here| Remembered {
            user: UserId::new(7).unwrap(),
            here,
            declaration: None,
            last_seen: None,
            hidden_since: None,
            public_version: 1,
            own_version,
        };
        waiting.add_person(state(11, false));
        waiting.add_person(state(10, true));
        assert_eq!(waiting.take_people(), [state(11, false)]);
        waiting.add_person(state(10, true));
        assert!(waiting.take_people().is_empty(), "also while it is being written");
        waiting.add_person(state(11, true));
        assert_eq!(waiting.take_people(), [state(11, true)]);
    }

    #[test]
    fn what_is_put_back_is_not_put_together_with_another_persons() {
        let mut waiting = Waiting::default();
        let (online, away) = (Status::Online, Status::Away);
        (0..20).for_each(|_| waiting.add_history(change(0, online, away)));
        let batch = waiting.take_history();
        let other = UserId::new(8).unwrap();
        let others = || Occurrence { user: other, ..change(1, away, Status::Busy) };
        (0..10).for_each(|_| waiting.add_history(others()));
        let count = batch.len();
        waiting.put_back(batch);
        waiting.add_history(others());
        waiting.add_history(others());
        let all = waiting.take_history();
        assert_eq!(all.len(), count + 11);
        assert!(all.iter().all(|one| one.user == other || one.kind == change(0, online, away).kind));
    }
}
