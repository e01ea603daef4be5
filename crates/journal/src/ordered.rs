//! A consumer that brings the entries into its view one after the other, in the order of the journal, whatever happens.
//!
//! The usual consumer is for views that do not mind the order. This one is for a view that counts what happened by a
//! watermark: an entry that comes after a later one would be taken for old. So of all processes one works at a time
//! ([`Turn`]), and it begins with what any of them left behind.
//!
//! # Guarantees
//!
//! - A batch is applied only once every earlier entry has been applied and acknowledged, or left out as malformed.
//!   Should two processes believe that it is their turn, both still apply in order: whoever reads a batch looks whether
//!   anybody holds an earlier entry, and if so takes that first. An entry may then be applied twice, never out of turn.
//! - An entry is acknowledged after its view has it. A store that is down stops everything, with growing pauses.
//! - Settings and pauses take effect while everything runs (J9).
//!
//! # Deliberately absent
//!
//! Dead letters: what cannot be understood is left to the view that answers for all, and what a view of this kind does
//! not know it leaves out and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::Stopwatch;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::consumer::{ConsumerCounters, ConsumerSettings, ProcessName};
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::port::{ConsumerInfo, Journal, Lane, StartAt, Stored};
use crate::view::{Arrival, Batch, View, ViewError};

/// How long whoever has nothing to do sleeps before it looks again.
const REST: Duration = Duration::from_millis(100);
/// How long whoever meets another at the same work lets it go on.
const CONTEST_PAUSE: Duration = Duration::from_millis(20);
/// How often pauses are looked for.
const PAUSE_POLL: Duration = Duration::from_millis(500);

/// Of many processes, one at a time.
#[async_trait]
pub trait Turn: Send + Sync + 'static {
    /// Takes the turn, or keeps it. True if it is ours.
    async fn take(&self) -> Result<bool, JournalError>;

    /// Whether it is surely ours right now. Must not wait.
    fn is_ours(&self) -> bool;

    /// Lets others have it.
    async fn release(&self);

    /// How often it has to be taken again.
    fn renew_every(&self) -> Duration;
}

#[async_trait]
impl Turn for keyspace::Lease {
    async fn take(&self) -> Result<bool, JournalError> {
        let taken = keyspace::Lease::take(self).await;
        taken.map_err(|trouble| JournalError::Unavailable { reason: trouble.to_string() })
    }

    fn is_ours(&self) -> bool {
        self.is_held()
    }

    async fn release(&self) {
        if let Err(reason) = keyspace::Lease::release(self).await {
            warn!(%reason, "the turn could not be given back; others have it when it runs out");
        }
    }

    fn renew_every(&self) -> Duration {
        self.length() / 5
    }
}

/// Brings the journal's entries into one view, in order.
pub struct OrderedConsumer {
    journal: Arc<dyn Journal>,
    view: Arc<dyn View>,
    turn: Arc<dyn Turn>,
    process: ProcessName,
    name: String,
    settings: watch::Receiver<ConsumerSettings>,
    stop: watch::Receiver<bool>,
    is_paused: AtomicBool,
    is_settled: Arc<AtomicBool>,
    counters: Arc<ConsumerCounters>,
}

/// What an ordered consumer works with.
pub struct OrderedParts {
    /// What is read.
    pub journal: Arc<dyn Journal>,
    /// Where it goes.
    pub view: Arc<dyn View>,
    /// Whose turn it is.
    pub turn: Arc<dyn Turn>,
    /// Who we are.
    pub process: ProcessName,
}

/// Why work on entries ended before they were all applied.
enum Halt {
    /// It is the end of the process, a pause, or no longer our turn.
    Over,
    /// The journal failed.
    Journal(JournalError),
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Halt::Journal(error)
    }
}

impl OrderedConsumer {
    /// A consumer that has yet to run. It ends soon after `stop` says so. Of the settings, those about readers at once
    /// and about letters mean nothing here.
    pub fn new(
        parts: OrderedParts,
        settings: watch::Receiver<ConsumerSettings>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let OrderedParts { journal, view, turn, process } = parts;
        let name = process.consumer("ordered", 0);
        let (is_paused, is_settled, counters) = (AtomicBool::new(false), Arc::default(), Arc::default());
        OrderedConsumer {
            journal,
            view,
            turn,
            process,
            name,
            settings,
            stop,
            is_paused,
            is_settled,
            counters,
        }
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<ConsumerCounters> {
        Arc::clone(&self.counters)
    }

    /// Whether it is our turn and nothing is half applied, as far as is known: the view may be judged by what it shows.
    pub fn settled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_settled)
    }

    /// Runs until told to stop; ends between batches, or in the middle of waiting.
    pub async fn run(self) {
        // A view that was paused before the start takes nothing at all.
        self.look_for_pause().await;
        tokio::select! {
            () = self.work() => {}
            () = self.keep_turn() => {}
            () = self.keep_looking() => {}
        }
        if self.turn.is_ours() {
            self.turn.release().await;
        }
    }

    fn group(&self) -> String {
        self.settings.borrow().group.clone()
    }

    /// Whether to go on: not the end, no pause, and our turn.
    fn may_work(&self) -> bool {
        !*self.stop.borrow() && !self.is_paused.load(Ordering::Acquire) && self.turn.is_ours()
    }

    /// Sleeps, but not beyond the end. True if it is the end.
    async fn sleep(&self, length: Duration) -> bool {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => true,
            () = tokio::time::sleep(length) => false,
        }
    }

    async fn keep_looking(&self) {
        loop {
            tokio::time::sleep(PAUSE_POLL).await;
            self.look_for_pause().await;
        }
    }

    async fn look_for_pause(&self) {
        // A journal that is away changes nothing: the view stays as it is.
        let Ok(paused) = self.journal.paused().await else { return };
        let is_paused = paused.contains(self.view.name());
        if self.is_paused.swap(is_paused, Ordering::AcqRel) != is_paused {
            info!(view = self.view.name(), is_paused, "pause");
        }
    }

    /// Takes the turn as soon as it is free, and keeps it.
    async fn keep_turn(&self) {
        let (mut was_ours, mut was_told) = (false, true);
        loop {
            let taken = self.turn.take().await;
            if let (Err(reason), true) = (&taken, was_told) {
                // Once an outage: whoever reads the journal tells the rest.
                warn!(view = self.view.name(), %reason, "nobody can tell whose turn it is");
            }
            was_told = taken.is_ok();
            let is_ours = taken.unwrap_or_else(|_| self.turn.is_ours());
            match (was_ours, is_ours) {
                (false, true) => info!(view = self.view.name(), "this process keeps the view"),
                (true, false) => {
                    self.counters.fenced.fetch_add(1, Ordering::Relaxed);
                    warn!(view = self.view.name(), "another process keeps the view now");
                }
                _ => {}
            }
            was_ours = is_ours;
            tokio::time::sleep(self.turn.renew_every().min(Duration::from_secs(1))).await;
        }
    }

    async fn work(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        let mut is_settled = false;
        while !*self.stop.borrow() {
            self.is_settled.store(is_settled, Ordering::Release);
            if !self.may_work() {
                is_settled = false;
                if self.sleep(REST).await {
                    return;
                }
                continue;
            }
            let done = match is_settled {
                false => self.settle().await,
                true => self.take_next().await,
            };
            match done {
                Ok(settled) => {
                    backoff.reset();
                    is_settled = settled;
                }
                Err(Halt::Over) => is_settled = false,
                Err(Halt::Journal(JournalError::NoGroup { .. })) => {
                    is_settled = false;
                    self.prepare_group().await;
                }
                Err(Halt::Journal(error)) => {
                    is_settled = false;
                    self.note_transient(1, &error.to_string());
                    if self.sleep(backoff.pause()).await {
                        return;
                    }
                }
            }
        }
    }

    /// A group that is missing begins with the oldest entry there is: a view of this kind knows what it has.
    async fn prepare_group(&self) {
        let made = self.journal.ensure_group(Lane::Traffic, &self.group(), StartAt::Beginning).await;
        if let Err(error) = made {
            self.note_transient(1, &error.to_string());
            self.sleep(REST).await;
        }
    }

    /// Applies everything that was delivered to anybody and not acknowledged, oldest first. False if somebody else does
    /// the same: then it is to be done again.
    async fn settle(&self) -> Result<bool, Halt> {
        let group = self.group();
        let batch_max = self.settings.borrow().batch_max;
        for consumer in self.journal.consumers(Lane::Traffic, &group).await? {
            if consumer.name != self.name {
                self.inherit(&group, &consumer).await?;
            }
        }
        loop {
            let own = self.journal.take_over(Lane::Traffic, &group, &self.name, &self.name, batch_max);
            let page = own.await?;
            if page.is_empty() {
                return Ok(true);
            }
            // Somebody else who believes it is their turn may have taken earlier ones from us meanwhile.
            if self.pending_of_others(&group).await? > 0 {
                self.sleep(CONTEST_PAUSE).await;
                return Ok(false);
            }
            self.take_in(&page).await?;
        }
    }

    /// Makes what another consumer holds ours. It is read again under our name, in the order of all.
    async fn inherit(&self, group: &str, from: &ConsumerInfo) -> Result<(), Halt> {
        let (batch_max, dead_after) = {
            let settings = self.settings.borrow();
            (settings.batch_max, settings.dead_after)
        };
        let mut is_empty = from.pending == 0;
        while !is_empty {
            let page =
                self.journal.take_over(Lane::Traffic, group, &from.name, &self.name, batch_max).await?;
            self.counters.taken_over.fetch_add(page.len() as u64, Ordering::Relaxed);
            is_empty = page.is_empty();
        }
        if self.process.was_ours(&from.name) || from.idle >= dead_after {
            self.journal.forget_consumer(Lane::Traffic, group, &from.name).await?;
        }
        Ok(())
    }

    /// Entries that other consumers of the group hold. If there are none, everything before what we were given is
    /// acknowledged or ours.
    async fn pending_of_others(&self, group: &str) -> Result<u64, Halt> {
        let consumers = self.journal.consumers(Lane::Traffic, group).await?;
        let others = consumers.iter().filter(|consumer| consumer.name != self.name);
        Ok(others.map(|consumer| consumer.pending).sum())
    }

    /// Reads and applies the next batch. False if somebody holds an earlier entry: then that comes first.
    async fn take_next(&self) -> Result<bool, Halt> {
        let (group, count, wait) = {
            let settings = self.settings.borrow();
            (settings.group.clone(), settings.batch_max, settings.read_wait)
        };
        let mut stop = self.stop.clone();
        let read = tokio::select! {
            biased;
            read = self.journal.read(Lane::Traffic, &group, &self.name, count, wait) => read?,
            // What is delivered while we stop listening stays pending.
            _ = stop.wait_for(|stopped| *stopped) => return Err(Halt::Over),
        };
        if read.is_empty() {
            return Ok(true);
        }
        // Whatever was delivered before this batch is acknowledged by now, or pending for somebody.
        let consumers = self.journal.consumers(Lane::Traffic, &group).await?;
        let pending: u64 = consumers.iter().map(|consumer| consumer.pending).sum();
        if pending > read.len() as u64 {
            return Ok(false);
        }
        self.take_in(&read).await?;
        Ok(true)
    }

    /// Applies entries and acknowledges them.
    async fn take_in(&self, entries: &[Stored]) -> Result<(), Halt> {
        let arrivals: Vec<Arrival> = entries.iter().filter_map(understand).collect();
        let skipped = (entries.len() - arrivals.len()) as u64;
        self.apply(&arrivals).await?;
        let ids: Vec<EntryId> = entries.iter().map(|stored| stored.id).collect();
        self.journal.acknowledge(Lane::Traffic, &self.group(), &ids).await?;
        self.counters.skipped.fetch_add(skipped, Ordering::Relaxed);
        self.counters.applied.fetch_add(arrivals.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Applies a batch, however long the view's store is away, as long as it is our turn.
    async fn apply(&self, arrivals: &[Arrival]) -> Result<(), Halt> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        for failures in 0_u32.. {
            if arrivals.is_empty() {
                break;
            }
            if !self.may_work() {
                return Err(Halt::Over);
            }
            let batch = Batch {
                lane: Lane::Traffic,
                consumer: &self.name,
                taken_from: None,
                is_retry: failures > 0,
                arrivals,
            };
            let applying = Stopwatch::start();
            let applied = self.view.apply(&batch).await;
            self.counters.applies.record(applying.elapsed());
            match applied {
                Ok(_) => break,
                Err(ViewError::Fenced) => return Err(Halt::Over),
                Err(ViewError::Transient { reason } | ViewError::Entry { reason }) => {
                    self.is_settled.store(false, Ordering::Release);
                    self.counters.failures_in_a_row.store(u64::from(failures) + 1, Ordering::Relaxed);
                    self.note_transient(failures + 1, &reason);
                    if self.sleep(backoff.pause()).await {
                        return Err(Halt::Over);
                    }
                }
            }
        }
        if self.counters.failures_in_a_row.swap(0, Ordering::Relaxed) > 0 {
            info!(view = self.view.name(), "the view goes on");
        }
        Ok(())
    }

    fn note_transient(&self, failures: u32, reason: &str) {
        self.counters.transient_failures.fetch_add(1, Ordering::Relaxed);
        if failures == 1 || failures.is_multiple_of(60) {
            let view = self.view.name();
            warn!(view, failures, reason, "the view waits; nothing is lost, nothing is acknowledged");
        }
    }
}

fn understand(stored: &Stored) -> Option<Arrival> {
    let entry = TrafficEntry::parse(&stored.fields).ok()?;
    Some(Arrival { id: stored.id, origin: stored.id, entry })
}
