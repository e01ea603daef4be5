//! Writes to SQL what a restart needs: the presence of users, their declarations, and the history (P11, P13).
//!
//! # Guarantees
//!
//! - Writes are batches: a thousand rows, or what was queued within a second.
//! - Only the last state of a user is written; the history is written in order, and before the state that follows
//!   from it.
//! - Rapid changes do not fill the history: beyond ten changes, and one more each second, the changes that are not
//!   written yet are merged, from the first status to the last.
//! - Failed writes are retried. The queue is bounded: beyond that the oldest history rows are dropped, and counted.
//! - [`PresenceWriter::flush`] returns when everything queued before has been written, or with an error.
//!
//! # Deliberately absent
//!
//! Guarantees about the last second before a crash: a user who connected within it is not pending after the restart,
//! and simply connects again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use friends::{FriendStore, FriendsError, PresenceEvent, PresenceEventKind};
use hashbrown::HashMap;
use parking_lot::Mutex;
use presence::{LastKnown, StoredPresence};
use tokio::sync::{Notify, watch};

use crate::counters::GatewayCounters;

/// Rows in one write (P13).
const BATCH_ROWS_MAX: usize = 1_000;
/// Rows queued within this time are written together (P13).
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Status changes of one user that are kept separately: one per this many milliseconds, and a burst of this many.
const CHANGE_EVERY_MS: u64 = 1_000;
const CHANGES_AT_ONCE: u64 = 10;
/// Time limit of one write, in case the server does not answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows of history that may wait.
const HISTORY_WAITING_MAX: usize = 200_000;
/// Users with unwritten state: more than fit into one server.
const USERS_WAITING_MAX: usize = 2_000_000;

#[derive(Default)]
struct WriteQueue {
    states: HashMap<UserId, StoredPresence, foldhash::fast::RandomState>,
    /// Of the batch that is being written right now.
    in_flight: HashMap<UserId, StoredPresence, foldhash::fast::RandomState>,
    history: VecDeque<PresenceEvent>,
    /// How much was ever taken out of the front of the history.
    taken: u64,
    /// Users with recent status changes.
    changes: HashMap<UserId, RecentChanges, foldhash::fast::RandomState>,
}

#[derive(Default)]
struct RecentChanges {
    /// Where the last one is, counted from the first row ever; none if something else followed it.
    place: Option<u64>,
    /// When the burst allowance is full again.
    forgotten_at_ms: u64,
}

impl WriteQueue {
    fn len(&self) -> usize {
        self.states.len() + self.history.len()
    }

    /// The newer state counts: several tasks save states, not always in order.
    fn add_state(&mut self, remembered: StoredPresence) {
        let user = remembered.user;
        let kept = self.states.get(&user).or_else(|| self.in_flight.get(&user));
        if kept.is_none_or(|kept| versions(kept) <= versions(&remembered)) {
            self.states.insert(user, remembered);
        }
    }

    fn take_states(&mut self) -> Vec<StoredPresence> {
        let users: Vec<UserId> = self.states.keys().copied().take(BATCH_ROWS_MAX).collect();
        let batch: Vec<StoredPresence> = users.iter().filter_map(|user| self.states.remove(user)).collect();
        self.in_flight.extend(batch.iter().map(|remembered| (remembered.user, remembered.clone())));
        batch
    }

    fn take_history(&mut self) -> Vec<PresenceEvent> {
        // Transitions merged to nothing are not written; a batch of only those must not look like the end.
        loop {
            let count = self.history.len().min(BATCH_ROWS_MAX);
            let mut batch: Vec<PresenceEvent> = self.history.drain(..count).collect();
            self.taken += count as u64;
            if let Some(last) = batch.last().filter(|_| self.history.is_empty()) {
                self.changes.retain(|_, changes| changes.forgotten_at_ms > last.at_ms);
                self.changes.shrink_to(BATCH_ROWS_MAX);
            }
            batch.retain(|one| !matches!(one.kind, PresenceEventKind::Transition { from, to } if from == to));
            if !batch.is_empty() || count == 0 {
                return batch;
            }
        }
    }

    /// Rows of a failed write are first again.
    fn put_back(&mut self, batch: Vec<PresenceEvent>) {
        // Positions are invalid now; queued rows are not merged with later ones.
        self.changes.values_mut().for_each(|changes| changes.place = None);
        for occurrence in batch.into_iter().rev() {
            self.history.push_front(occurrence);
        }
    }

    fn add_history(&mut self, occurrence: PresenceEvent) {
        let user = occurrence.user;
        let PresenceEventKind::Transition { to, .. } = occurrence.kind else {
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
            && let PresenceEventKind::Transition { from, .. } = last.kind
        {
            last.kind = PresenceEventKind::Transition { from, to };
            (last.cause, last.device) = (occurrence.cause, occurrence.device);
            return;
        }
        changes.place = Some(self.taken + self.history.len() as u64);
        self.history.push_back(occurrence);
    }

    /// Drops the oldest row if there are too many. Returns whether it did.
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
pub(crate) enum PresenceWriterError {
    #[error(transparent)]
    FriendStore(#[from] FriendsError),
    /// Whether it was written is unknown.
    #[error("the database does not answer in time")]
    TimedOut,
}

pub(crate) struct PresenceWriter {
    friend_store: FriendStore,
    counters: Arc<GatewayCounters>,
    waiting: Mutex<WriteQueue>,
    some: Notify,
    full: Notify,
    /// One writer at a time, or an older state could be written after a newer one.
    writing: tokio::sync::Mutex<()>,
}

impl PresenceWriter {
    pub(crate) fn new(friend_store: FriendStore, counters: Arc<GatewayCounters>) -> PresenceWriter {
        PresenceWriter {
            friend_store,
            counters,
            waiting: Mutex::default(),
            some: Notify::new(),
            full: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Queues the state of a user.
    pub(crate) fn remember(&self, remembered: StoredPresence) {
        let mut waiting = self.waiting.lock();
        if waiting.states.len() >= USERS_WAITING_MAX && !waiting.states.contains_key(&remembered.user) {
            self.counters.hub.writer_dropped.increment();
            return;
        }
        waiting.add_state(remembered);
        self.wake(&waiting);
    }

    /// Something happened that belongs into the history.
    pub(crate) fn record(&self, occurrence: PresenceEvent) {
        let mut waiting = self.waiting.lock();
        waiting.add_history(occurrence);
        if waiting.shorten() {
            self.counters.hub.writer_dropped.increment();
        }
        self.wake(&waiting);
    }

    /// The state read from the database, unless a newer one is queued.
    pub(crate) fn newest(&self, user: UserId, read: LastKnown) -> LastKnown {
        let waiting = self.waiting.lock();
        match waiting.states.get(&user).or_else(|| waiting.in_flight.get(&user)) {
            None => read,
            Some(newer) => LastKnown {
                last_seen: newer.last_seen,
                public_version: newer.public_version,
                own_version: newer.own_version,
                declaration: newer.declaration.clone(),
            },
        }
    }

    /// Whether a state of this user is queued or being written.
    pub(crate) fn has(&self, user: UserId) -> bool {
        let waiting = self.waiting.lock();
        waiting.states.contains_key(&user) || waiting.in_flight.contains_key(&user)
    }

    fn wake(&self, waiting: &WriteQueue) {
        self.counters.hub.writer_waiting.set(waiting.len());
        self.some.notify_one();
        if waiting.len() >= BATCH_ROWS_MAX {
            self.full.notify_one();
        }
    }

    /// Writes until stopped. The rest is for [`PresenceWriter::flush`].
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
                tracing::warn!(%error, "cannot write presence to the database; retrying");
                self.some.notify_one();
                tokio::select! {
                    () = tokio::time::sleep(BATCH_WAIT) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    pub(crate) async fn flush(&self) -> Result<(), PresenceWriterError> {
        let _one_writer = self.writing.lock().await;
        loop {
            let history = self.waiting.lock().take_history();
            if !history.is_empty() {
                self.write_history(history).await?;
                continue;
            }
            let states = self.waiting.lock().take_states();
            if states.is_empty() {
                break;
            }
            self.write_states(states).await?;
        }
        Ok(())
    }

    async fn write_history(&self, batch: Vec<PresenceEvent>) -> Result<(), PresenceWriterError> {
        let written = in_time(self.friend_store.record(&batch)).await;
        match &written {
            Ok(_) => self.wrote(batch.len()),
            Err(_) => {
                self.counters.hub.writer_failures.increment();
                self.waiting.lock().put_back(batch);
            }
        }
        written.map(drop)
    }

    async fn write_states(&self, batch: Vec<StoredPresence>) -> Result<(), PresenceWriterError> {
        let written = in_time(self.friend_store.save_presence(&batch)).await;
        let rows = batch.len();
        let mut waiting = self.waiting.lock();
        waiting.in_flight.clear();
        if written.is_err() {
            for remembered in batch {
                // A state queued meanwhile is newer.
                waiting.states.entry(remembered.user).or_insert(remembered);
            }
        }
        drop(waiting);
        match &written {
            Ok(_) => self.wrote(rows),
            Err(_) => self.counters.hub.writer_failures.increment(),
        }
        written.map(drop)
    }

    fn wrote(&self, rows: usize) {
        self.counters.hub.writer_written.add(rows as u64);
        self.counters.hub.writer_waiting.set(self.waiting.lock().len());
    }
}

/// Waits for the database with a time limit.
async fn in_time<T>(write: impl Future<Output = Result<T, FriendsError>>) -> Result<T, PresenceWriterError> {
    let written =
        tokio::time::timeout(WRITE_TIMEOUT, write).await.map_err(|_| PresenceWriterError::TimedOut)?;
    Ok(written?)
}

/// Orders states of a user, as the database does.
fn versions(remembered: &StoredPresence) -> (u64, u64) {
    (remembered.own_version, remembered.public_version)
}

#[cfg(test)]
mod tests {
    use presence::{Cause, Status};

    use super::*;

    fn change(at_ms: u64, from: Status, to: Status) -> PresenceEvent {
        let user = UserId::new(7).unwrap();
        let kind = PresenceEventKind::Transition { from, to };
        PresenceEvent { user, at_ms, kind, cause: Some(Cause::Declared), device: None }
    }

    fn kinds(waiting: &mut WriteQueue) -> Vec<(u64, PresenceEventKind)> {
        waiting.take_history().into_iter().map(|one| (one.at_ms, one.kind)).collect()
    }

    #[test]
    fn p13_rapid_changes_do_not_fill_the_history() {
        let mut waiting = WriteQueue::default();
        let flip = |step: u64| {
            let (from, to) = if step.is_multiple_of(2) {
                (Status::Online, Status::Busy)
            } else {
                (Status::Busy, Status::Online)
            };
            change(step * 50, from, to)
        };
        (0..41).for_each(|step| waiting.add_history(flip(step)));
        let written = kinds(&mut waiting);
        assert!((10..=12).contains(&written.len()), "{written:?}");
        let last = written.last().map(|(_, kind)| *kind);
        assert_eq!(last, Some(PresenceEventKind::Transition { from: Status::Online, to: Status::Busy }));
        (41..61).for_each(|step| waiting.add_history(flip(step)));
        assert!(kinds(&mut waiting).len() <= 2);
        // Slower changes, arrivals and departures are kept as they are.
        waiting.add_history(change(50_000, Status::Busy, Status::Offline));
        waiting.add_history(PresenceEvent { kind: PresenceEventKind::Left, ..flip(1_001) });
        assert_eq!(kinds(&mut waiting).len(), 2);
        assert!(waiting.changes.contains_key(&UserId::new(7).unwrap()));
        waiting.add_history(PresenceEvent { kind: PresenceEventKind::Left, ..flip(1_200) });
        kinds(&mut waiting);
        assert!(waiting.changes.is_empty());
    }

    #[test]
    fn an_older_state_never_takes_the_place_of_a_newer_one() {
        let mut waiting = WriteQueue::default();
        let state = |own_version, here| StoredPresence {
            user: UserId::new(7).unwrap(),
            online: here,
            declaration: None,
            last_seen: None,
            hidden_since: None,
            public_version: 1,
            own_version,
        };
        waiting.add_state(state(11, false));
        waiting.add_state(state(10, true));
        assert_eq!(waiting.take_states(), [state(11, false)]);
        waiting.add_state(state(10, true));
        assert!(waiting.take_states().is_empty(), "also while it is being written");
        waiting.add_state(state(11, true));
        assert_eq!(waiting.take_states(), [state(11, true)]);
    }

    #[test]
    fn returned_entries_are_not_merged_with_those_of_another_user() {
        let mut waiting = WriteQueue::default();
        let (online, away) = (Status::Online, Status::Away);
        (0..20).for_each(|_| waiting.add_history(change(0, online, away)));
        let batch = waiting.take_history();
        let other = UserId::new(8).unwrap();
        let others = || PresenceEvent { user: other, ..change(1, away, Status::Busy) };
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
