//! The task that stores what is queued.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{Backoff, RiskEvent};
use tracing::{info, warn};

use super::{Chunk, OnStored, Queue, QueueContents};
use crate::error::JournalError;
use crate::fields::Fields;
use crate::packed::PackedEvents;
use crate::port::{AppendToken, Journal, Lane};
use crate::risk;

/// Stores queued events until the queue is closed and empty.
pub struct Flusher {
    queue: Arc<Queue>,
    journal: Arc<dyn Journal>,
    producer: String,
    traffic_number: u64,
    risk_number: u64,
    backoff: Backoff,
}

/// What was taken from the queue together.
struct Batch {
    events: Vec<PackedEvents>,
    count: usize,
    on_stored: Vec<OnStored>,
    risks: Vec<RiskEvent>,
}

impl Batch {
    fn of(QueueContents { chunks, events: count, risks }: QueueContents) -> Batch {
        let mut on_stored = Vec::new();
        let events = chunks.into_iter().map(|Chunk { events, on_stored: of_chunk }| {
            on_stored.extend(of_chunk);
            events
        });
        Batch { events: events.collect(), count, on_stored, risks }
    }
}

/// The next batch, if it is full; a smaller one grows until the previous append is done.
async fn prepare_next(queue: &Queue, journal: &dyn Journal, token: &AppendToken) -> Option<Batch> {
    // The previous append has to be sent first.
    tokio::task::yield_now().await;
    let next = Batch::of(queue.take_full()?);
    journal.prepare_events(&next.events, token).await;
    Some(next)
}

/// What is appended.
enum Payload {
    Traffic(Vec<PackedEvents>),
    Risks(Vec<Fields>),
}

impl Flusher {
    /// `producer` must be unique to this process start.
    pub fn new(queue: Arc<Queue>, journal: Arc<dyn Journal>, producer: String) -> Self {
        let backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(2));
        Flusher { queue, journal, producer, traffic_number: 0, risk_number: 0, backoff }
    }

    pub async fn run(mut self) {
        let mut ahead = None;
        while let Some(batch) = self.next(ahead.take()).await {
            ahead = self.store_batch(batch).await;
        }
    }

    async fn next(&self, ahead: Option<Batch>) -> Option<Batch> {
        match ahead {
            Some(batch) => Some(batch),
            None => Some(Batch::of(self.queue.next().await?)),
        }
    }

    /// Stores a batch, and returns the next one if it was prepared meanwhile.
    async fn store_batch(&mut self, batch: Batch) -> Option<Batch> {
        let Batch { events, count, on_stored, risks } = batch;
        let mut ahead = None;
        if count > 0 {
            self.traffic_number += 1;
            let payload = Payload::Traffic(events);
            let (queue, journal) = (Arc::clone(&self.queue), Arc::clone(&self.journal));
            let next = self.token(self.traffic_number + 1);
            let preparing = prepare_next(&queue, &*journal, &next);
            ((), ahead) = tokio::join!(self.store(&payload, self.traffic_number), preparing);
            queue.counters.stored.fetch_add(count as u64, Ordering::Relaxed);
            queue.counters.batches.fetch_add(1, Ordering::Relaxed);
            on_stored.into_iter().for_each(|on_stored| on_stored(true));
            queue.free(count);
        }
        self.store_risks(&risks).await;
        ahead
    }

    fn token(&self, number: u64) -> AppendToken {
        AppendToken { producer: self.producer.clone(), number }
    }

    async fn store_risks(&mut self, risks: &[RiskEvent]) {
        if risks.is_empty() {
            return;
        }
        let batch: Vec<Fields> = risks.iter().map(risk::fields_of).collect();
        self.risk_number += 1;
        self.store(&Payload::Risks(batch), self.risk_number).await;
        self.queue.counters.risks_stored.fetch_add(risks.len() as u64, Ordering::Relaxed);
    }

    /// Retries until the batch is stored.
    async fn store(&mut self, payload: &Payload, number: u64) {
        let token = self.token(number);
        let mut failures: u64 = 0;
        while let Err(error) = self.try_append(payload, &token).await {
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

    async fn try_append(&self, payload: &Payload, token: &AppendToken) -> Result<(), JournalError> {
        let appending = Stopwatch::start();
        let result = match payload {
            Payload::Traffic(events) => self.journal.append_events(events, token).await,
            Payload::Risks(batch) => self.journal.append(Lane::Risk, batch, token).await,
        };
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
