//! A consumer that applies entries to its view one batch at a time, in the order of the journal.
//!
//! The usual consumer is for views that do not depend on the order. This one is for a view that recognises applied
//! entries by a watermark: an entry applied after a later one would be ignored. So one process at a time applies
//! entries, the holder of a [`LeaderLease`], and it starts with the entries that are pending for any process.
//!
//! # Guarantees
//!
//! - A batch is applied only after every earlier entry has been applied and acknowledged, or skipped as malformed. If
//!   two processes both consider themselves the leader, both still apply in order: after reading a batch, a process
//!   checks whether any consumer holds an earlier entry, and if so applies that first. An entry may then be applied
//!   twice, never out of order.
//! - An entry is acknowledged after its view has committed it. A store that is down stops consumption, with growing
//!   delays.
//! - Settings and pauses take effect at run time (J9).
//!
//! # Deliberately absent
//!
//! Dead letters: malformed entries are left to the view with `handles_malformed`, and entries that a view of this kind
//! does not support are skipped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::{Clock, Stopwatch};
use domain::{Backoff, LogThrottle};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::consumer::{ConsumerCounters, ConsumerSettings, ProcessName};
use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::id::EntryId;
use crate::pause::PauseSwitch;
use crate::port::{ConsumerInfo, Journal, Lane, StartAt, Stored};
use crate::rate_limiter::RateLimiter;
use crate::view::{Batch, DeliveredEntry, View, ViewError};

/// Pause of a process that may not apply entries.
const REST: Duration = Duration::from_millis(100);
/// Pause after meeting another process that applies entries.
const CONTEST_PAUSE: Duration = Duration::from_millis(20);
/// Interval of the pause check.
const PAUSE_POLL: Duration = Duration::from_millis(500);

/// A lease that one process at a time holds.
#[async_trait]
pub trait LeaderLease: Send + Sync + 'static {
    /// Acquires or renews the lease. True if this process holds it.
    async fn take(&self) -> Result<bool, JournalError>;

    /// Whether the lease is certainly held right now. Must not block.
    fn is_held(&self) -> bool;

    async fn release(&self);

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
            warn!(%reason, "leader lease could not be released; it expires by itself");
        }
    }

    fn renew_interval(&self) -> Duration {
        self.length() / 5
    }
}

/// Acquires the lease of a view as soon as it is free, and renews it, until dropped. `lost` counts the times that it was
/// lost.
pub async fn keep_lease(lease: &dyn LeaderLease, view: &str, lost: &AtomicU64) {
    let (mut was_ours, mut was_reachable) = (false, true);
    loop {
        let taken = lease.take().await;
        if let (Err(reason), true) = (&taken, was_reachable) {
            // Once per outage: failing reads are logged separately.
            warn!(view, %reason, "leader lease of the view cannot be renewed");
        }
        was_reachable = taken.is_ok();
        let is_held = taken.unwrap_or_else(|_| lease.is_held());
        match (was_ours, is_held) {
            (true, false) if !was_reachable => {
                lost.fetch_add(1, Ordering::Relaxed);
                warn!(view, "leader lease of the view expired and cannot be renewed");
            }
            (false, true) => info!(view, "this process holds the leader lease of the view"),
            (true, false) => {
                lost.fetch_add(1, Ordering::Relaxed);
                warn!(view, "another process holds the leader lease of the view now");
            }
            _ => {}
        }
        was_ours = is_held;
        tokio::time::sleep(lease.renew_interval().min(Duration::from_secs(1))).await;
    }
}

/// Applies the journal's entries to one view, in order.
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

pub struct OrderedParts {
    pub journal: Arc<dyn Journal>,
    pub view: Arc<dyn View>,
    pub lease: Arc<dyn LeaderLease>,
    pub clock: Arc<dyn Clock>,
    pub process: ProcessName,
}

/// Why entries were not all applied.
enum Interrupted {
    /// Shutdown, a pause, or the lease was lost.
    Stopped,
    Journal(JournalError),
}

impl From<JournalError> for Interrupted {
    fn from(error: JournalError) -> Self {
        Interrupted::Journal(error)
    }
}

impl OrderedConsumer {
    /// A consumer that has yet to run; it stops soon after `stop` becomes true. The settings for the number of readers
    /// and for dead letters are ignored.
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

    /// Calls `listener` with the group's name whenever the group was missing and has been created (J10). It must not
    /// block.
    pub fn on_group_created(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_group_created = Box::new(listener);
        self
    }

    pub fn counters(&self) -> Arc<ConsumerCounters> {
        Arc::clone(&self.counters)
    }

    /// Whether this process holds the lease and no pending entries are left: the view is consistent.
    pub fn recovered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_recovered)
    }

    /// Runs until stopped; ends between batches, or while waiting.
    pub async fn run(self) {
        // A view that was paused before the start applies nothing.
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.refresh_pause().await {
            self.record_transient_failure(1, &reason.to_string());
            if self.sleep(backoff.next_delay()).await {
                return;
            }
        }
        tokio::select! {
            () = self.work() => {}
            () = keep_lease(&*self.lease, self.view.name(), &self.counters.fenced) => {}
            () = self.follow_pause() => {}
        }
        if self.lease.is_held() {
            self.lease.release().await;
        }
    }

    fn group(&self) -> String {
        self.settings.borrow().group.clone()
    }

    fn may_apply(&self) -> bool {
        !*self.stop.borrow() && !self.pause.is_paused() && self.lease.is_held()
    }

    /// Sleeps, but not beyond shutdown. True at shutdown.
    async fn sleep(&self, length: Duration) -> bool {
        tokio::time::timeout(length, self.stop.clone().wait_for(|stopped| *stopped)).await.is_ok()
    }

    async fn follow_pause(&self) {
        loop {
            tokio::time::sleep(PAUSE_POLL).await;
            // While the journal is unavailable the pause state stays as it is.
            let _ = self.refresh_pause().await;
        }
    }

    async fn refresh_pause(&self) -> Result<(), JournalError> {
        self.pause.refresh(&*self.journal, self.view.name(), &self.process).await
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
                Err(Interrupted::Stopped) => is_recovered = false,
                Err(Interrupted::Journal(JournalError::NoGroup { .. })) => {
                    is_recovered = false;
                    self.prepare_group().await;
                }
                Err(Interrupted::Journal(error)) => {
                    is_recovered = false;
                    self.record_transient_failure(1, &error.to_string());
                    if self.sleep(backoff.next_delay()).await {
                        return;
                    }
                }
            }
        }
    }

    /// A missing group starts at the oldest entry: a view of this kind recognises what it has applied.
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

    /// Applies all entries that are pending for any consumer, oldest first. False if another process does the same: to
    /// be repeated.
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
            // Another process that considers itself the leader may have taken over earlier entries meanwhile.
            if self.pending_of_others(&group).await? > 0 {
                self.sleep(CONTEST_PAUSE).await;
                return Ok(false);
            }
            self.process(&page).await?;
        }
    }

    /// Takes over the pending entries of another consumer. They are read again under our name, in the journal's order.
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
            self.journal.delete_consumer(Lane::Traffic, group, &from.name).await?;
        }
        Ok(())
    }

    /// Entries pending for other consumers of the group. If there are none, everything before our batch is acknowledged
    /// or ours.
    async fn pending_of_others(&self, group: &str) -> Result<u64, Interrupted> {
        let consumers = self.journal.consumers(Lane::Traffic, group).await?;
        let others = consumers.iter().filter(|consumer| consumer.name != self.name);
        Ok(others.map(|consumer| consumer.pending).sum())
    }

    /// Reads and applies the next batch. False if any consumer holds an earlier entry, which comes first.
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
            // What is delivered during shutdown stays pending.
            _ = stop.wait_for(|stopped| *stopped) => return Err(Interrupted::Stopped),
        };
        if read.is_empty() {
            return Ok(true);
        }
        // Everything delivered before this batch is acknowledged by now, or pending for some consumer.
        let consumers = self.journal.consumers(Lane::Traffic, &group).await?;
        let pending: u64 = consumers.iter().map(|consumer| consumer.pending).sum();
        if pending > read.len() as u64 {
            return Ok(false);
        }
        self.process(&read).await?;
        Ok(true)
    }

    async fn process(&self, entries: &[Stored]) -> Result<(), Interrupted> {
        let (per_s_max, not_before_ms) = {
            let settings = self.settings.borrow();
            (settings.entries_per_s_max, settings.not_before_ms)
        };
        // Entries are in order. Those older than the installation are acknowledged without being applied (J11).
        let old = entries.partition_point(|stored| stored.id.ms < not_before_ms);
        self.counters.skipped_old.fetch_add(old as u64, Ordering::Relaxed);
        let wait = self.rate_limiter.wait_for(entries.len() - old, per_s_max);
        if !wait.is_zero() && self.sleep(wait).await {
            return Err(Interrupted::Stopped);
        }
        let arrivals: Vec<DeliveredEntry> =
            entries[old..].iter().filter_map(|stored| parse_entry(stored, &*self.clock)).collect();
        let skipped = (entries.len() - old - arrivals.len()) as u64;
        self.apply(&arrivals).await?;
        let ids: Vec<EntryId> = entries.iter().map(|stored| stored.id).collect();
        self.journal.acknowledge(Lane::Traffic, &self.group(), &ids).await?;
        self.counters.skipped.fetch_add(skipped, Ordering::Relaxed);
        self.counters.applied.fetch_add(arrivals.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Applies a batch; retries while the view's store is unavailable and the lease is held.
    async fn apply(&self, arrivals: &[DeliveredEntry]) -> Result<(), Interrupted> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        for failures in 0_u32.. {
            if arrivals.is_empty() {
                break;
            }
            let Some(applying) = self.pause.begin_applying().filter(|_| self.may_apply()) else {
                return Err(Interrupted::Stopped);
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
                Err(ViewError::Fenced) => return Err(Interrupted::Stopped),
                Err(ViewError::Transient { reason } | ViewError::Entry { reason }) => {
                    self.is_recovered.store(false, Ordering::Release);
                    self.counters.failures_in_a_row.store(u64::from(failures) + 1, Ordering::Relaxed);
                    self.record_transient_failure(failures + 1, &reason);
                    if self.sleep(backoff.next_delay()).await {
                        return Err(Interrupted::Stopped);
                    }
                }
            }
        }
        if self.counters.failures_in_a_row.swap(0, Ordering::Relaxed) > 0 {
            info!(view = self.view.name(), "view continues");
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
                "view waits and retries; nothing is lost"
            );
        }
    }
}

fn parse_entry(stored: &Stored, clock: &dyn Clock) -> Option<DeliveredEntry> {
    let entry = TrafficEntry::parse_dated(&stored.fields, clock).ok()?;
    Some(DeliveredEntry { id: stored.id, origin: stored.id, entry })
}
