//! A consumer that brings the entries into its view one after the other, in the order of the journal, whatever happens.
//!
//! The usual consumer is for views that do not mind the order. This one is for a view that counts what happened by a
//! watermark: an entry that comes after a later one would be taken for old. So of all processes one works at a time
//! ([`LeaderLease`]), and it begins with what any of them left behind.
//!
//! # Guarantees
//!
//! - A batch is applied only once every earlier entry has been applied and acknowledged, or left out as malformed.
//!   Should two processes believe that it is their lease, both still apply in order: whoever reads a batch looks whether
//!   anybody holds an earlier entry, and if so takes that first. An entry may then be applied twice, never out of lease.
//! - An entry is acknowledged after its view has it. A store that is down stops everything, with growing pauses.
//! - Settings and pauses take effect while everything runs (J9).
//!
//! # Deliberately absent
//!
//! Dead dead letters: what cannot be understood is left to the view that answers for all, and what a view of this kind does
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
use crate::pause::PauseSwitch;
use crate::port::{ConsumerInfo, Journal, Lane, StartAt, Stored};
use crate::rate_limiter::RateLimiter;
use crate::view::{Arrival, Batch, View, ViewError};

/// How long whoever has nothing to do sleeps before it looks again.
const REST: Duration = Duration::from_millis(100);
/// How long whoever meets another at the same work lets it go on.
const CONTEST_PAUSE: Duration = Duration::from_millis(20);
/// How often pauses are looked for.
const PAUSE_POLL: Duration = Duration::from_millis(500);

/// Of many processes, one at a time.
#[async_trait]
pub trait LeaderLease: Send + Sync + 'static {
    /// Takes the lease, or keeps it. True if it is ours.
    async fn take(&self) -> Result<bool, JournalError>;

    /// Whether it is surely ours right now. Must not wait.
    fn is_held(&self) -> bool;

    /// Lets others have it.
    async fn release(&self);

    /// How often it has to be taken again.
    fn renew_interval(&self) -> Duration;
}

#[async_trait]
impl LeaderLease for keyspace::Lease {
    async fn take(&self) -> Result<bool, JournalError> {
        let taken = keyspace::Lease::take(self).await;
        taken.map_err(|trouble| JournalError::Unavailable { reason: trouble.to_string() })
    }

    fn is_held(&self) -> bool {
        self.is_held()
    }

    async fn release(&self) {
        if let Err(reason) = keyspace::Lease::release(self).await {
            warn!(%reason, "the lease could not be given back; others have it when it runs out");
        }
    }

    fn renew_interval(&self) -> Duration {
        self.length() / 5
    }
}

/// Brings the journal's entries into one view, in order.
pub struct OrderedConsumer {
    journal: Arc<dyn Journal>,
    view: Arc<dyn View>,
    lease: Arc<dyn LeaderLease>,
    clock: Arc<dyn Clock>,
    process: ProcessName,
    name: String,
    settings: watch::Receiver<ConsumerSettings>,
    stop: watch::Receiver<bool>,
    pause: PauseSwitch,
    rate_limiter: RateLimiter,
    on_group_created: Box<dyn Fn(&str) + Send + Sync>,
    is_recovered: Arc<AtomicBool>,
    counters: Arc<ConsumerCounters>,
    waits_log: LogThrottle,
}

/// What an ordered consumer works with.
pub struct OrderedParts {
    /// What is read.
    pub journal: Arc<dyn Journal>,
    /// Where it goes.
    pub view: Arc<dyn View>,
    /// Whose lease it is.
    pub lease: Arc<dyn LeaderLease>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who we are.
    pub process: ProcessName,
}

/// Why work on entries ended before they were all applied.
enum Interrupted {
    /// It is the end of the process, a pause, or no longer our lease.
    Over,
    /// The journal failed.
    Journal(JournalError),
}

impl From<JournalError> for Interrupted {
    fn from(error: JournalError) -> Self {
        Interrupted::Journal(error)
    }
}

impl OrderedConsumer {
    /// A consumer that has yet to run. It ends soon after `stop` says so. Of the settings, those about readers at once
    /// and about dead letters mean nothing here.
    pub fn new(
        parts: OrderedParts,
        settings: watch::Receiver<ConsumerSettings>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let OrderedParts { journal, view, lease, clock, process } = parts;
        let name = process.consumer("ordered", 0);
        let (is_recovered, counters) = (Arc::default(), Arc::default());
        OrderedConsumer {
            journal,
            view,
            lease,
            clock,
            process,
            name,
            settings,
            stop,
            pause: PauseSwitch::default(),
            rate_limiter: RateLimiter::new(),
            on_group_created: Box::new(|_| ()),
            is_recovered,
            counters,
            waits_log: LogThrottle::new(),
        }
    }

    /// Calls `listener` with the group's name whenever the group was missing and has been made (J10). It must not wait.
    pub fn on_group_created(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_group_created = Box::new(listener);
        self
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<ConsumerCounters> {
        Arc::clone(&self.counters)
    }

    /// Whether it is our lease and nothing is half applied, as far as is known: the view may be judged by what it shows.
    pub fn recovered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_recovered)
    }

    /// Runs until told to stop; ends between batches, or in the middle of waiting.
    pub async fn run(self) {
        // A view that was paused before the start takes nothing at all.
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.refresh_pause().await {
            self.record_transient_failure(1, &reason.to_string());
            if self.sleep(backoff.pause()).await {
                return;
            }
        }
        tokio::select! {
            () = self.work() => {}
            () = self.keep_lease() => {}
            () = self.follow_pause() => {}
        }
        if self.lease.is_held() {
            self.lease.release().await;
        }
    }

    fn group(&self) -> String {
        self.settings.borrow().group.clone()
    }

    /// Whether to go on: not the end, no pause, and our lease.
    fn may_apply(&self) -> bool {
        !*self.stop.borrow() && !self.pause.is_paused() && self.lease.is_held()
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

    async fn follow_pause(&self) {
        loop {
            tokio::time::sleep(PAUSE_POLL).await;
            // A journal that is away changes nothing: the view stays as it is.
            let _ = self.refresh_pause().await;
        }
    }

    async fn refresh_pause(&self) -> Result<(), JournalError> {
        self.pause.refresh(&*self.journal, self.view.name(), &self.process).await
    }

    /// Takes the lease as soon as it is free, and keeps it.
    async fn keep_lease(&self) {
        let (mut was_ours, mut was_reachable) = (false, true);
        loop {
            let taken = self.lease.take().await;
            if let (Err(reason), true) = (&taken, was_reachable) {
                // Once an outage: whoever reads the journal tells the rest.
                warn!(view = self.view.name(), %reason, "the lease of the view cannot be renewed");
            }
            was_reachable = taken.is_ok();
            let is_held = taken.unwrap_or_else(|_| self.lease.is_held());
            match (was_ours, is_held) {
                (true, false) if !was_reachable => {
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
            was_ours = is_held;
            tokio::time::sleep(self.lease.renew_interval().min(Duration::from_secs(1))).await;
        }
    }

    async fn work(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        let mut is_recovered = false;
        while !*self.stop.borrow() {
            self.is_recovered.store(is_recovered, Ordering::Release);
            if !self.may_apply() {
                is_recovered = false;
                if self.sleep(REST).await {
                    return;
                }
                continue;
            }
            let done = match is_recovered {
                false => self.recover().await,
                true => self.process_next().await,
            };
            match done {
                Ok(recovered) => {
                    backoff.reset();
                    is_recovered = recovered;
                }
                Err(Interrupted::Over) => is_recovered = false,
                Err(Interrupted::Journal(JournalError::NoGroup { .. })) => {
                    is_recovered = false;
                    self.prepare_group().await;
                }
                Err(Interrupted::Journal(error)) => {
                    is_recovered = false;
                    self.record_transient_failure(1, &error.to_string());
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
            Ok(true) => (self.on_group_created)(&self.group()),
            Ok(false) => {}
            Err(error) => {
                self.record_transient_failure(1, &error.to_string());
                self.sleep(REST).await;
            }
        }
    }

    /// Applies everything that was delivered to anybody and not acknowledged, oldest first. False if somebody else does
    /// the same: then it is to be done again.
    async fn recover(&self) -> Result<bool, Interrupted> {
        let group = self.group();
        let batch_max = self.settings.borrow().batch_max;
        for consumer in self.journal.consumers(Lane::Traffic, &group).await? {
            if consumer.name != self.name {
                self.take_over_from(&group, &consumer).await?;
            }
        }
        loop {
            let own = self.journal.take_over(Lane::Traffic, &group, &self.name, &self.name, batch_max);
            let page = own.await?;
            if page.is_empty() {
                return Ok(true);
            }
            // Somebody else who believes it is their lease may have taken earlier ones from us meanwhile.
            if self.pending_of_others(&group).await? > 0 {
                self.sleep(CONTEST_PAUSE).await;
                return Ok(false);
            }
            self.process(&page).await?;
        }
    }

    /// Makes what another consumer holds ours. It is read again under our name, in the order of all.
    async fn take_over_from(&self, group: &str, from: &ConsumerInfo) -> Result<(), Interrupted> {
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
    async fn pending_of_others(&self, group: &str) -> Result<u64, Interrupted> {
        let consumers = self.journal.consumers(Lane::Traffic, group).await?;
        let others = consumers.iter().filter(|consumer| consumer.name != self.name);
        Ok(others.map(|consumer| consumer.pending).sum())
    }

    /// Reads and applies the next batch. False if somebody holds an earlier entry: then that comes first.
    async fn process_next(&self) -> Result<bool, Interrupted> {
        let (group, count, wait) = {
            let settings = self.settings.borrow();
            let count = RateLimiter::batch_max(settings.batch_max, settings.entries_per_s_max);
            (settings.group.clone(), count, settings.read_wait)
        };
        let mut stop = self.stop.clone();
        let read = tokio::select! {
            biased;
            read = self.journal.read(Lane::Traffic, &group, &self.name, count, wait) => read?,
            // What is delivered while we stop listening stays pending.
            _ = stop.wait_for(|stopped| *stopped) => return Err(Interrupted::Over),
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
        self.process(&read).await?;
        Ok(true)
    }

    /// Applies entries and acknowledges them.
    async fn process(&self, entries: &[Stored]) -> Result<(), Interrupted> {
        let (per_s_max, not_before_ms) = {
            let settings = self.settings.borrow();
            (settings.entries_per_s_max, settings.not_before_ms)
        };
        // Entries come in order. What is older than the installation is acknowledged and nothing else (J11).
        let old = entries.partition_point(|stored| stored.id.ms < not_before_ms);
        self.counters.skipped_old.fetch_add(old as u64, Ordering::Relaxed);
        let wait = self.rate_limiter.wait_for(entries.len() - old, per_s_max);
        if !wait.is_zero() && self.sleep(wait).await {
            return Err(Interrupted::Over);
        }
        let arrivals: Vec<Arrival> =
            entries[old..].iter().filter_map(|stored| parse_entry(stored, &*self.clock)).collect();
        let skipped = (entries.len() - old - arrivals.len()) as u64;
        self.apply(&arrivals).await?;
        let ids: Vec<EntryId> = entries.iter().map(|stored| stored.id).collect();
        self.journal.acknowledge(Lane::Traffic, &self.group(), &ids).await?;
        self.counters.skipped.fetch_add(skipped, Ordering::Relaxed);
        self.counters.applied.fetch_add(arrivals.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Applies a batch, however long the view's store is away, as long as it is our lease.
    async fn apply(&self, arrivals: &[Arrival]) -> Result<(), Interrupted> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        for failures in 0_u32.. {
            if arrivals.is_empty() {
                break;
            }
            let Some(applying) = self.pause.begin_applying().filter(|_| self.may_apply()) else {
                return Err(Interrupted::Over);
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
                Err(ViewError::Fenced) => return Err(Interrupted::Over),
                Err(ViewError::Transient { reason } | ViewError::Entry { reason }) => {
                    self.is_recovered.store(false, Ordering::Release);
                    self.counters.failures_in_a_row.store(u64::from(failures) + 1, Ordering::Relaxed);
                    self.record_transient_failure(failures + 1, &reason);
                    if self.sleep(backoff.pause()).await {
                        return Err(Interrupted::Over);
                    }
                }
            }
        }
        if self.counters.failures_in_a_row.swap(0, Ordering::Relaxed) > 0 {
            info!(view = self.view.name(), "the view goes on");
        }
        Ok(())
    }

    fn record_transient_failure(&self, failures: u32, reason: &str) {
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

fn parse_entry(stored: &Stored, clock: &dyn Clock) -> Option<Arrival> {
    let entry = TrafficEntry::parse_dated(&stored.fields, clock).ok()?;
    Some(Arrival { id: stored.id, origin: stored.id, entry })
}
