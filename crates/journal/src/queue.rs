//! The bounded queue between the tracker and the journal.
//!
//! Announces enqueue events without waiting; one task takes everything queued, appends it in one batch, and takes the
//! next batch once that has been stored. So the batch grows with the load, and an idle tracker's event is stored at
//! once. A full next batch is encoded while the previous append is in flight.
//!
//! # Guarantees
//!
//! - Queued events are stored, in order, each once, as long as this process runs, however long the journal is
//!   unavailable.
//! - The queue never holds more than its capacity. A slot is reserved first; a failed reservation is counted.
//! - A callback is called once its event is stored, and not before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{Backoff, Histogram, RiskEvent, TrafficEvent};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::fields::Fields;
use crate::port::{AppendToken, Journal, Lane};
use crate::risk;

/// Called once an event is stored (true), or will not be (false).
pub type OnStored = Box<dyn FnOnce(bool) + Send>;

/// Enough to hide the round trip, few enough not to block Redis for long.
const BATCH_MAX: usize = 1000;
/// Entries encoded before yielding to the in-flight append.
const ENCODED_AT_ONCE: usize = 50;
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

struct Queued {
    event: TrafficEvent,
    on_stored: Option<OnStored>,
}

/// Size of a queued event, without its callback's captures.
pub const BYTES_PER_EVENT: usize = size_of::<Queued>();

#[derive(Default)]
struct QueueContents {
    /// A ring: taking a batch from the front of a long queue moves no other events.
    events: VecDeque<Queued>,
    risks: Vec<RiskEvent>,
}

/// Shared by the tracker's threads and the flusher.
pub struct Queue {
    waiting: Mutex<QueueContents>,
    /// Slots that are reserved, queued or being stored.
    occupied: AtomicUsize,
    capacity: usize,
    freed: Condvar,
    filled: Notify,
    /// Whether the flusher sleeps: waking it costs more than queueing.
    is_idle: AtomicBool,
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
            is_idle: AtomicBool::new(true),
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

    /// Enqueues an event for which a slot was reserved.
    pub fn put(&self, event: &TrafficEvent, on_stored: Option<OnStored>) {
        self.waiting.lock().events.push_back(Queued { event: *event, on_stored });
        self.wake();
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
        self.wake();
    }

    fn wake(&self) {
        if self.is_idle.load(Ordering::SeqCst) && self.is_idle.swap(false, Ordering::SeqCst) {
            self.filled.notify_one();
        }
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
        self.is_closed.store(true, Ordering::Release);
        self.filled.notify_one();
        self.freed.notify_all();
    }

    /// Drops what is still queued and calls the callbacks with false. For shutdown while the journal is unavailable.
    /// Returns the number of events that may be lost.
    pub fn abandon(&self) -> usize {
        let left = std::mem::take(&mut self.waiting.lock().events);
        // The batch being stored may be lost as well.
        let lost = self.occupied();
        self.counters.lost.fetch_add(lost as u64, Ordering::Relaxed);
        let count = left.len();
        for queued in left {
            if let Some(on_stored) = queued.on_stored {
                on_stored(false);
            }
        }
        self.free(count);
        lost
    }

    /// Waits for something to store; none once the queue is closed and empty.
    async fn next(&self) -> Option<QueueContents> {
        loop {
            // Set before checking the queue: an event enqueued after the check wakes us.
            self.is_idle.store(true, Ordering::SeqCst);
            let taken = self.take();
            if !taken.events.is_empty() || !taken.risks.is_empty() {
                self.is_idle.store(false, Ordering::SeqCst);
                return Some(taken);
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

    /// The queued events, if they fill a batch.
    fn take_full(&self) -> Option<QueueContents> {
        let waiting = self.waiting.lock();
        (waiting.events.len() >= BATCH_MAX).then(|| Queue::take_from(waiting))
    }

    fn take(&self) -> QueueContents {
        Queue::take_from(self.waiting.lock())
    }

    fn take_from(mut waiting: MutexGuard<'_, QueueContents>) -> QueueContents {
        let events = if waiting.events.len() <= BATCH_MAX {
            std::mem::take(&mut waiting.events)
        } else {
            waiting.events.drain(..BATCH_MAX).collect()
        };
        QueueContents { events, risks: std::mem::take(&mut waiting.risks) }
    }
}

/// Events taken from the queue, encoded.
struct EncodedBatch {
    events: VecDeque<Queued>,
    batch: Vec<Fields>,
    risks: Vec<RiskEvent>,
}

impl EncodedBatch {
    async fn encode(waiting: QueueContents) -> EncodedBatch {
        let QueueContents { events, risks } = waiting;
        let mut batch = Vec::with_capacity(events.len());
        while batch.len() < events.len() {
            let some = events.range(batch.len()..).take(ENCODED_AT_ONCE);
            batch.extend(some.map(|queued| TrafficEntry::fields_of(&queued.event)));
            tokio::task::yield_now().await;
        }
        EncodedBatch { events, batch, risks }
    }

    /// The next batch, if it is full; a smaller one grows until the previous append is done.
    async fn encode_ahead(queue: &Queue) -> Option<EncodedBatch> {
        // The previous append has to be sent first.
        tokio::task::yield_now().await;
        match queue.take_full() {
            Some(waiting) => Some(EncodedBatch::encode(waiting).await),
            None => None,
        }
    }
}

/// Stores queued events until the queue is closed and empty.
pub struct Flusher {
    queue: Arc<Queue>,
    journal: Arc<dyn Journal>,
    producer: String,
    traffic_number: u64,
    risk_number: u64,
    backoff: Backoff,
}

impl Flusher {
    /// `producer` must be unique to this process start.
    pub fn new(queue: Arc<Queue>, journal: Arc<dyn Journal>, producer: String) -> Self {
        let backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(2));
        Flusher { queue, journal, producer, traffic_number: 0, risk_number: 0, backoff }
    }

    pub async fn run(mut self) {
        let mut ahead = None;
        while let Some(ready) = self.next(ahead.take()).await {
            ahead = self.store_batch(ready).await;
        }
    }

    async fn next(&self, ahead: Option<EncodedBatch>) -> Option<EncodedBatch> {
        match ahead {
            Some(ready) => Some(ready),
            None => Some(EncodedBatch::encode(self.queue.next().await?).await),
        }
    }

    /// Stores a batch, and returns the next one if it was encoded meanwhile.
    async fn store_batch(&mut self, ready: EncodedBatch) -> Option<EncodedBatch> {
        let queue = Arc::clone(&self.queue);
        let EncodedBatch { events, batch, risks } = ready;
        let ((), ahead) = tokio::join!(self.store_events(events, &batch), EncodedBatch::encode_ahead(&queue));
        self.store_risks(&risks).await;
        ahead
    }

    async fn store_events(&mut self, events: VecDeque<Queued>, batch: &[Fields]) {
        if events.is_empty() {
            return;
        }
        self.traffic_number += 1;
        self.store(Lane::Traffic, batch, self.traffic_number).await;
        let count = events.len();
        self.queue.counters.stored.fetch_add(count as u64, Ordering::Relaxed);
        self.queue.counters.batches.fetch_add(1, Ordering::Relaxed);
        for queued in events {
            if let Some(on_stored) = queued.on_stored {
                on_stored(true);
            }
        }
        self.queue.free(count);
    }

    async fn store_risks(&mut self, risks: &[RiskEvent]) {
        if risks.is_empty() {
            return;
        }
        let batch: Vec<Fields> = risks.iter().map(risk::fields_of).collect();
        self.risk_number += 1;
        self.store(Lane::Risk, &batch, self.risk_number).await;
        self.queue.counters.risks_stored.fetch_add(risks.len() as u64, Ordering::Relaxed);
    }

    /// Retries until the batch is stored.
    async fn store(&mut self, lane: Lane, batch: &[Fields], number: u64) {
        let token = AppendToken { producer: self.producer.clone(), number };
        let mut failures: u64 = 0;
        while let Err(error) = self.try_append(lane, batch, &token).await {
            failures += 1;
            self.note_failure(&error, failures);
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
        if failures > 0 {
            info!(failures, waiting = self.queue.occupied(), "journal accepts entries again");
            self.queue.counters.failures_in_a_row.store(0, Ordering::Relaxed);
        }
        self.backoff.reset();
    }

    async fn try_append(
        &self,
        lane: Lane,
        batch: &[Fields],
        token: &AppendToken,
    ) -> Result<(), JournalError> {
        let appending = Stopwatch::start();
        let result = self.journal.append(lane, batch, token).await;
        self.queue.counters.appends.record(appending.elapsed());
        result
    }

    fn note_failure(&self, error: &JournalError, failures: u64) {
        self.queue.counters.failures_in_a_row.store(failures, Ordering::Relaxed);
        self.queue.counters.failed_appends.fetch_add(1, Ordering::Relaxed);
        if failures == 1 || failures.is_multiple_of(60) {
            let (occupied, capacity) = (self.queue.occupied(), self.queue.capacity);
            warn!(reason = %error, occupied, capacity, "journal unavailable; entries wait in the queue");
        }
    }
}
