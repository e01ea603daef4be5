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
use domain::LogThrottle;
use domain::clock::{Clock, Stopwatch};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::consumer::{ConsumerCounters, ConsumerSettings, ProcessName};
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::pace::Pace;
use crate::pause::PauseSwitch;
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
    clock: Arc<dyn Clock>,
    process: ProcessName,
    name: String,
    settings: watch::Receiver<ConsumerSettings>,
    stop: watch::Receiver<bool>,
    pause: PauseSwitch,
    pace: Pace,
    on_group_made: Box<dyn Fn(&str) + Send + Sync>,
    is_settled: Arc<AtomicBool>,
    counters: Arc<ConsumerCounters>,
    waits_log: LogThrottle,
}

/// What an ordered consumer works with.
pub struct OrderedParts {
    /// What is read.
    pub journal: Arc<dyn Journal>,
    /// Where it goes.
    pub view: Arc<dyn View>,
    /// Whose turn it is.
    pub turn: Arc<dyn Turn>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
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
        let OrderedParts { journal, view, turn, clock, process } = parts;
        let name = process.consumer("ordered", 0);
        let (is_settled, counters) = (Arc::default(), Arc::default());
        OrderedConsumer {
            journal,
            view,
            turn,
            clock,
            process,
            name,
            settings,
            stop,
            pause: PauseSwitch::default(),
            pace: Pace::new(),
            on_group_made: Box::new(|_| ()),
            is_settled,
            counters,
            waits_log: LogThrottle::new(),
        }
    }

    /// Calls `listener` with the group's name whenever the group was missing and has been made (J10). It must not wait.
    pub fn on_group_made(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_group_made = Box::new(listener);
        self
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
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.look_for_pause().await {
            self.note_transient(1, &reason.to_string());
            if self.sleep(backoff.pause()).await {
                return;
            }
        }
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
        !*self.stop.borrow() && !self.pause.is_paused() && self.turn.is_ours()
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
            // A journal that is away changes nothing: the view stays as it is.
            let _ = self.look_for_pause().await;
        }
    }

    async fn look_for_pause(&self) -> Result<(), JournalError> {
        self.pause.follow(&*self.journal, self.view.name(), &self.process).await
    }

    /// Takes the turn as soon as it is free, and keeps it.
    async fn keep_turn(&self) {
        let (mut was_ours, mut was_told) = (false, true);
        loop {
            let taken = self.turn.take().await;
            if let (Err(reason), true) = (&taken, was_told) {
                // Once an outage: whoever reads the journal tells the rest.
                warn!(view = self.view.name(), %reason, "the lease of the view cannot be renewed");
            }
            was_told = taken.is_ok();
            let is_ours = taken.unwrap_or_else(|_| self.turn.is_ours());
            match (was_ours, is_ours) {
                (true, false) if !was_told => {
                    self.counters.fenced.fetch_add(1, Ordering::Relaxed);
                    warn!(view = self.view.name(), "the lease of the view ran out and cannot be renewed");
                }
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
        match made {
            Ok(true) => (self.on_group_made)(&self.group()),
            Ok(false) => {}
            Err(error) => {
                self.note_transient(1, &error.to_string());
                self.sleep(REST).await;
            }
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
            let count = Pace::batch_max(settings.batch_max, settings.entries_per_s_max);
            (settings.group.clone(), count, settings.read_wait)
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
        let (per_s_max, not_before_ms) = {
            let settings = self.settings.borrow();
            (settings.entries_per_s_max, settings.not_before_ms)
        };
        // Entries come in order. What is older than the installation is acknowledged and nothing else (J11).
        let old = entries.partition_point(|stored| stored.id.ms < not_before_ms);
        self.counters.skipped_old.fetch_add(old as u64, Ordering::Relaxed);
        let wait = self.pace.wait_for(entries.len() - old, per_s_max);
        if !wait.is_zero() && self.sleep(wait).await {
            return Err(Halt::Over);
        }
        let arrivals: Vec<Arrival> =
            entries[old..].iter().filter_map(|stored| understand(stored, &*self.clock)).collect();
        let skipped = (entries.len() - old - arrivals.len()) as u64;
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
            let Some(applying) = self.pause.enter().filter(|_| self.may_work()) else {
                return Err(Halt::Over);
            };
            let batch = Batch {
                lane: Lane::Traffic,
                consumer: &self.name,
                taken_from: None,
                is_retry: failures > 0,
                arrivals,
            };
            let stopwatch = Stopwatch::start();
            let applied = self.view.apply(&batch).await;
            drop(applying);
            self.counters.applies.record(stopwatch.elapsed());
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
        if let Some(left_out) = self.waits_log.admit(self.clock.now()) {
            let view = self.view.name();
            warn!(
                view,
                failures,
                reason,
                lines_left_out = left_out,
                "the view waits; nothing is lost, nothing is acknowledged"
            );
        }
    }
}

fn understand(stored: &Stored, clock: &dyn Clock) -> Option<Arrival> {
    let entry = TrafficEntry::parse_dated(&stored.fields, clock).ok()?;
    Some(Arrival { id: stored.id, origin: stored.id, entry })
}
