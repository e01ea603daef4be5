//! The bounded queue between the tracker and the journal.
//!
//! Announces enqueue packed events without waiting. One task takes everything queued, appends it in one batch, and
//! takes the next batch once that has been stored, so the batch grows with the load.
//!
//! # Wake-ups
//!
//! A listener thread wakes the flusher at most once per turn of its poll loop: it enqueues with [`Queue::put_in_turn`]
//! and calls [`Queue::hand_over`] at the end of the turn. The flusher is woken only if it would otherwise sleep on:
//! while it stores a batch, it looks again by itself. If no reply waits for what is queued, it first rests for
//! [`REST`], so that a batch collects; a reply that waits ends the rest.
//!
//! # Guarantees
//!
//! - Queued events are stored, in the order in which they were enqueued, each once, as long as this process runs,
//!   however long the journal is unavailable.
//! - The queue never holds more than its capacity. A slot is reserved first; a failed reservation is counted.
//! - A callback is called once its event is stored, and not before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use domain::{Histogram, RiskEvent, TrafficEvent};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::packed::PackedEvents;

mod flusher;

pub use flusher::Flusher;

/// Called once an event is stored (true), or will not be (false).
pub type OnStored = Box<dyn FnOnce(bool) + Send>;

/// Enough to hide the round trip, few enough not to block Redis for long.
const BATCH_MAX: usize = 1000;
/// Events packed into one piece of memory. A batch is several of them.
const CHUNK_EVENTS: usize = 250;
/// A thread whose turn is long hands over after this many events of all threads.
const TURN_EVENTS: usize = 64;
/// How long events wait for others, unless a reply waits for them.
const REST: Duration = Duration::from_millis(4);
/// Risk events waiting to be stored; more are dropped and counted.
pub const RISKS_MAX: usize = 1000;
/// Longest sleep of a thread that waits for a slot before it checks again.
const SLOT_POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub struct QueueCounters {
    pub stored: AtomicU64,
    pub batches: AtomicU64,
    /// Failed attempts to store a batch.
    pub failed_appends: AtomicU64,
    /// Failed reservations.
    pub full: AtomicU64,
    pub risks_stored: AtomicU64,
    pub risks_dropped: AtomicU64,
    /// Events abandoned at shutdown.
    pub lost: AtomicU64,
    /// Consecutive failed attempts for the current batch; zero while the journal accepts entries.
    pub failures_in_a_row: AtomicU64,
    /// Duration of attempts to store a batch, failed ones included.
    pub appends: Histogram,
}

/// Consecutive events, and the callbacks of those that have one.
struct Chunk {
    events: PackedEvents,
    on_stored: Vec<OnStored>,
}

/// What is queued, or was taken from the queue together.
#[derive(Default)]
struct QueueContents {
    chunks: VecDeque<Chunk>,
    events: usize,
    risks: Vec<RiskEvent>,
}

impl QueueContents {
    fn push(&mut self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        self.events += 1;
        if let Some(last) = self.chunks.back_mut() {
            if last.events.len() < CHUNK_EVENTS && last.events.push(event) {
                return last.on_stored.extend(on_stored);
            }
            last.events.shrink();
        }
        let on_stored = on_stored.into_iter().collect();
        self.chunks.push_back(Chunk { events: PackedEvents::of(event), on_stored });
    }

    /// Takes a batch.
    fn take(&mut self) -> QueueContents {
        let mut taken = QueueContents { risks: std::mem::take(&mut self.risks), ..QueueContents::default() };
        while let Some(chunk) = self.chunks.pop_front_if(|next| taken.events + next.events.len() <= BATCH_MAX)
        {
            taken.events += chunk.events.len();
            taken.chunks.push_back(chunk);
        }
        self.events -= taken.events;
        taken
    }

    fn is_empty(&self) -> bool {
        self.events == 0 && self.risks.is_empty()
    }

    fn is_awaited(&self) -> bool {
        self.chunks.iter().any(|chunk| !chunk.on_stored.is_empty())
    }
}

/// What the flusher does.
mod flusher_state {
    /// Stores a batch, and looks for more by itself.
    pub(super) const BUSY: u8 = 0;
    /// Found nothing, and sleeps until it is woken.
    pub(super) const IDLE: u8 = 1;
    /// Lets a batch collect.
    pub(super) const RESTING: u8 = 2;
}

/// Shared by the tracker's threads and the flusher.
pub struct Queue {
    waiting: Mutex<QueueContents>,
    /// Slots that are reserved, queued or being stored.
    occupied: AtomicUsize,
    capacity: usize,
    freed: Condvar,
    /// Wakes the flusher.
    filled: Notify,
    /// One of [`flusher_state`].
    flusher: AtomicU8,
    /// Whether a reply waits for a queued event.
    is_awaited: AtomicBool,
    is_closed: AtomicBool,
    counters: QueueCounters,
}

impl Queue {
    pub fn new(capacity: usize) -> Self {
        Queue {
            waiting: Mutex::default(),
            occupied: AtomicUsize::new(0),
            capacity,
            freed: Condvar::new(),
            filled: Notify::new(),
            flusher: AtomicU8::new(flusher_state::IDLE),
            is_awaited: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            counters: QueueCounters::default(),
        }
    }

    /// Reserves a slot for one event; false if none is free.
    pub fn reserve(&self) -> bool {
        if self.try_occupy() {
            return true;
        }
        self.counters.full.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn try_occupy(&self) -> bool {
        let is_free = self.occupied.fetch_add(1, Ordering::AcqRel) < self.capacity
            && !self.is_closed.load(Ordering::Acquire);
        if !is_free {
            self.occupied.fetch_sub(1, Ordering::AcqRel);
        }
        is_free
    }

    /// Releases a reserved slot.
    pub fn release(&self) {
        self.free(1);
    }

    fn free(&self, places: usize) {
        self.occupied.fetch_sub(places, Ordering::AcqRel);
        self.freed.notify_all();
    }

    /// Enqueues an event for which a slot was reserved, and hands it over.
    pub fn put(&self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        self.put_in_turn(event, on_stored);
        self.hand_over();
    }

    /// Enqueues an event for which a slot was reserved. The caller hands over at the end of its turn.
    pub fn put_in_turn(&self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        let is_awaited = on_stored.is_some();
        let mut waiting = self.waiting.lock();
        waiting.push(event, on_stored);
        let events = waiting.events;
        if is_awaited {
            self.is_awaited.store(true, Ordering::SeqCst);
        }
        drop(waiting);
        if events.is_multiple_of(TURN_EVENTS) {
            self.hand_over();
        }
    }

    /// Wakes the flusher if it sleeps although something is to be stored now.
    pub fn hand_over(&self) {
        use flusher_state::{BUSY, IDLE, RESTING};
        let state = self.flusher.load(Ordering::SeqCst);
        let must_wake = match state {
            IDLE => !self.waiting.lock().is_empty(),
            RESTING => self.is_urgent(),
            _ => false,
        };
        // One thread wakes it.
        if must_wake && self.flusher.compare_exchange(state, BUSY, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            self.filled.notify_one();
        }
    }

    /// Whether a batch is to be stored without waiting for more events.
    fn is_urgent(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
            || self.is_closed.load(Ordering::SeqCst)
            || self.waiting.lock().events >= BATCH_MAX
    }

    /// Enqueues an event as soon as a slot is free; blocks the thread. False if the queue was closed first.
    pub fn put_blocking(&self, event: &TrafficEvent) -> bool {
        while !self.try_occupy() {
            if self.is_closed.load(Ordering::Acquire) {
                self.counters.lost.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            self.freed.wait_for(&mut self.waiting.lock(), SLOT_POLL);
        }
        self.put(event, None);
        true
    }

    /// Enqueues a risk event, or drops and counts it.
    pub fn report(&self, risk: &RiskEvent) {
        {
            let mut waiting = self.waiting.lock();
            if waiting.risks.len() >= RISKS_MAX {
                self.counters.risks_dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            waiting.risks.push(*risk);
        }
        self.hand_over();
    }

    pub fn counters(&self) -> &QueueCounters {
        &self.counters
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// At most [`RISKS_MAX`].
    pub fn risks_waiting(&self) -> usize {
        self.waiting.lock().risks.len()
    }

    /// Slots in use.
    pub fn occupied(&self) -> usize {
        self.occupied.load(Ordering::Acquire)
    }

    /// Refuses further events. The flusher ends when everything queued is stored.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.filled.notify_one();
        self.freed.notify_all();
    }

    /// Drops what is still queued and calls the callbacks with false. For shutdown while the journal is unavailable.
    /// Returns the number of events that may be lost.
    pub fn abandon(&self) -> usize {
        let left = {
            let mut waiting = self.waiting.lock();
            waiting.events = 0;
            std::mem::take(&mut waiting.chunks)
        };
        // The batch being stored may be lost as well.
        let lost = self.occupied();
        self.counters.lost.fetch_add(lost as u64, Ordering::Relaxed);
        let count = left.iter().map(|chunk| chunk.events.len()).sum();
        left.into_iter().flat_map(|chunk| chunk.on_stored).for_each(|on_stored| on_stored(false));
        self.free(count);
        lost
    }

    /// Waits for something to store; none once the queue is closed and empty.
    async fn next(&self) -> Option<QueueContents> {
        loop {
            // Set before checking the queue: events enqueued after the check wake us when they are handed over.
            self.flusher.store(flusher_state::IDLE, Ordering::SeqCst);
            if !self.waiting.lock().is_empty() {
                self.rest().await;
                self.flusher.store(flusher_state::BUSY, Ordering::SeqCst);
                return Some(self.take());
            }
            if !self.is_closed.load(Ordering::Acquire) {
                self.filled.notified().await;
                continue;
            }
            if self.occupied() == 0 {
                return None;
            }
            // A closed queue may still receive events with a reserved slot, and reserved slots may be given back.
            let _ = tokio::time::timeout(Duration::from_millis(100), self.filled.notified()).await;
        }
    }

    /// Lets a batch collect.
    async fn rest(&self) {
        self.flusher.store(flusher_state::RESTING, Ordering::SeqCst);
        if !self.is_urgent() {
            let _ = tokio::time::timeout(REST, self.filled.notified()).await;
        }
    }

    /// What is queued, if it fills a batch.
    fn take_full(&self) -> Option<QueueContents> {
        let is_full = self.waiting.lock().events >= BATCH_MAX;
        is_full.then(|| self.take())
    }

    fn take(&self) -> QueueContents {
        let mut waiting = self.waiting.lock();
        let taken = waiting.take();
        self.is_awaited.store(waiting.is_awaited(), Ordering::SeqCst);
        taken
    }
}
