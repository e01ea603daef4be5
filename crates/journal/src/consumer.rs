//! The consumer loop: applies the journal's entries to a view.
//!
//! # Layout
//!
//! - this file: settings, counters, and the task that starts and stops the others
//! - `intake`: one batch: decode, apply, move rejected entries to the dead letters, acknowledge the rest
//! - `reader`: reads new entries, batch by batch
//! - `dead_letter_retrier`: retries dead letters with growing delays, up to a maximum (J6)
//! - `takeover`: takes over the pending entries of dead consumers (J4)
//! - [`name`]: consumer names
//!
//! # Guarantees
//!
//! - An entry is acknowledged only after its view has committed it or it is a dead letter.
//! - A store that is down stops consumption, with growing delays: nothing is acknowledged and nothing becomes a dead
//!   letter. Only an error of the entry itself does that.
//! - Settings and pauses take effect at run time (J9).

mod dead_letter_retrier;
mod intake;
pub mod name;
mod reader;
mod takeover;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use domain::clock::Clock;
use domain::{Backoff, Histogram, LogThrottle, Seconds};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

pub use dead_letter_retrier::HELD_MAX as DEAD_LETTERS_HELD_MAX;
pub use name::ProcessName;
pub use takeover::foreign_consumers;

use crate::error::JournalError;
use crate::pause::PauseSwitch;
use crate::port::{Journal, Lane, StartAt};
use crate::rate_limiter::RateLimiter;
use crate::view::View;

/// Interval at which a paused reader checks for the end of the pause.
const PAUSE_POLL: Duration = Duration::from_millis(200);

/// Interval at which the task that recreates a group checks whether other tasks are still busy.
const BUSY_POLL: Duration = Duration::from_millis(5);

/// All of these may change at run time, except the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    pub group: String,
    /// Number of readers, each with one batch at a time.
    pub consumers: usize,
    pub batch_max: usize,
    /// Limit of this process (J10); zero means no limit.
    pub entries_per_s_max: u32,
    /// Entries appended before this time, in milliseconds since 1970, are older than the installation and skipped
    /// (J11).
    pub not_before_ms: u64,
    /// How long a read waits for the first entry.
    pub read_wait: Duration,
    /// A consumer that was idle for this long counts as dead.
    pub dead_after: Duration,
    /// Retries of a dead letter before it is failed (J6).
    pub retry_max: u32,
    /// Delay of the first retry; each further one is six times as long.
    pub retry_delay: Seconds,
    /// Whether this view moves malformed entries to the dead letters, and retries dead letters without a group. Set for
    /// one view of a journal, or each would store the same entry.
    pub handles_malformed: bool,
}

#[derive(Debug, Default)]
pub struct ConsumerCounters {
    /// Entries applied by the view.
    pub applied: AtomicU64,
    pub moved_to_dead_letters: AtomicU64,
    /// Malformed entries, which the view with `handles_malformed` moves to the dead letters.
    pub skipped: AtomicU64,
    /// Entries skipped because they are older than the installation (J11).
    pub skipped_old: AtomicU64,
    /// Live consumers of the group that belong to another program, and receive a part of the entries.
    pub foreign_consumers: AtomicU64,
    /// Dead letters that the view applied.
    pub restored: AtomicU64,
    /// Dead letters that were rejected again.
    pub retried: AtomicU64,
    /// Dead letters rejected for the last time.
    pub failed: AtomicU64,
    /// Entries taken over from dead consumers.
    pub taken_over: AtomicU64,
    /// Batches delayed because a store was down.
    pub transient_failures: AtomicU64,
    /// Times that a consumer of this process was fenced.
    pub fenced: AtomicU64,
    /// Consecutive failures, including the current batch; zero while the view makes progress.
    pub failures_in_a_row: AtomicU64,
    /// Dead letters waiting for their retry; at most [`DEAD_LETTERS_HELD_MAX`].
    pub dead_letters_held: AtomicU64,
    /// Times that no further dead letters were read because [`DEAD_LETTERS_HELD_MAX`] were held.
    pub dead_letters_full: AtomicU64,
    /// Retries of dead letters, by the number of earlier retries (J7). The last bucket counts all higher numbers.
    pub dead_letters_retried: [AtomicU64; RETRY_BUCKETS],
    /// Time the view took per batch, failed attempts included.
    pub applies: Histogram,
}

/// Buckets of `dead_letters_retried`.
pub const RETRY_BUCKETS: usize = 8;

/// Called with the group's name.
type OnGroupCreated = Box<dyn Fn(&str) + Send + Sync>;

/// State shared by the tasks of one consumer.
struct Shared {
    journal: Arc<dyn Journal>,
    view: Arc<dyn View>,
    clock: Arc<dyn Clock>,
    process: ProcessName,
    settings: watch::Receiver<ConsumerSettings>,
    stop: watch::Receiver<bool>,
    pause: PauseSwitch,
    rate_limiter: RateLimiter,
    on_group_created: OnGroupCreated,
    /// Earlier names of consumers of this process.
    former_names: Mutex<HashSet<String>>,
    /// Tasks that are reading, or hold entries not yet applied.
    busy: AtomicUsize,
    /// Held while groups are recreated.
    regrouping: tokio::sync::Mutex<()>,
    counters: Arc<ConsumerCounters>,
    log: LogThrottles,
}

/// Log lines that bad entries or an unavailable store cause repeatedly. The counters include every case.
#[derive(Default)]
struct LogThrottles {
    unreadable: LogThrottle,
    not_ready: LogThrottle,
    unfenced: LogThrottle,
    waits: LogThrottle,
    rejected: LogThrottle,
    restored: LogThrottle,
    failed: LogThrottle,
}

/// Guard of `Shared::busy`.
struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Applies the journal's entries to one view.
pub struct Consumer {
    shared: Arc<Shared>,
}

impl Consumer {
    /// A consumer that has yet to run; it stops soon after `stop` becomes true.
    pub fn new(
        journal: Arc<dyn Journal>,
        view: Arc<dyn View>,
        clock: Arc<dyn Clock>,
        process: ProcessName,
        settings: watch::Receiver<ConsumerSettings>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Consumer {
            shared: Arc::new(Shared {
                journal,
                view,
                clock,
                process,
                settings,
                stop,
                pause: PauseSwitch::default(),
                rate_limiter: RateLimiter::new(),
                on_group_created: Box::new(|_| ()),
                former_names: Mutex::default(),
                busy: AtomicUsize::new(0),
                regrouping: tokio::sync::Mutex::default(),
                counters: Arc::default(),
                log: LogThrottles::default(),
            }),
        }
    }

    /// Calls `listener` with the group's name whenever the group was missing and has been created (J10). It must not
    /// block.
    pub fn on_group_created(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.on_group_created = Box::new(listener);
        }
        self
    }

    pub fn counters(&self) -> Arc<ConsumerCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// Runs until stopped; ends between batches, or while waiting.
    pub async fn run(self) {
        let shared = self.shared;
        shared.prepare_groups().await;
        // A view that was paused before the start applies nothing.
        shared.load_pause().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(takeover::run(Arc::clone(&shared)));
        tasks.spawn(dead_letter_retrier::run(Arc::clone(&shared)));
        let (mut readers, mut spawned) = (0, 0);
        let mut settings = shared.settings.clone();
        loop {
            let wanted = settings.borrow_and_update().consumers.max(1);
            // A reader whose number is too high ends by itself, with a delay: its successor must not share its name.
            readers = readers.min(wanted);
            while readers < wanted {
                tasks.spawn(reader::run(Arc::clone(&shared), readers, spawned));
                readers += 1;
                spawned += 1;
            }
            let mut stop = shared.stop.clone();
            let is_over = tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => true,
                changed = settings.changed() => changed.is_err(),
            };
            if is_over {
                break;
            }
        }
        // The sender of the settings is dropped only at shutdown.
        let _ = shared.stop.clone().wait_for(|stopped| *stopped).await;
        while tasks.join_next().await.is_some() {}
        shared.delete_idle_consumers().await;
    }
}

impl Shared {
    fn group(&self) -> String {
        self.settings.borrow().group.clone()
    }

    fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Paused, or another process is the view's only writer.
    fn is_idle(&self) -> bool {
        self.pause.is_paused() || !self.view.is_active()
    }

    /// Loads the pause state; retries while the journal is unavailable.
    async fn load_pause(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.pause.refresh(&*self.journal, self.view.name(), &self.process).await {
            warn!(view = self.view.name(), %reason, "view waits: its pause state cannot be read from the journal");
            if self.sleep(backoff.next_delay()).await {
                return;
            }
        }
    }

    /// Sleeps, but not beyond shutdown. True at shutdown.
    async fn sleep(&self, length: Duration) -> bool {
        tokio::time::timeout(length, self.stop.clone().wait_for(|stopped| *stopped)).await.is_ok()
    }

    /// Deletes consumers of this process without pending entries, so that a pause does not wait for them.
    async fn delete_idle_consumers(&self) {
        for lane in [Lane::Traffic, Lane::Dead] {
            let Ok(consumers) = self.journal.consumers(lane, &self.group()).await else { return };
            for consumer in consumers.iter().filter(|consumer| self.process.is_ours(&consumer.name)) {
                // Those that remain are deleted after the next start.
                let _ = self.journal.delete_consumer(lane, &self.group(), &consumer.name).await;
            }
        }
    }

    /// To be held from before entries are read until the view has them.
    fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(&self.busy)
    }

    /// Creates missing groups; retries while the journal is unavailable. The caller must not be busy.
    async fn prepare_groups(&self) {
        let _alone = self.regrouping.lock().await;
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.ensure_groups().await {
            if let Some(left_out) = self.log.not_ready.admit(self.clock.now()) {
                warn!(
                    view = self.view.name(),
                    reason,
                    lines_left_out = left_out,
                    "view waits: its consumer group cannot be created"
                );
            }
            if self.sleep(backoff.next_delay()).await {
                return;
            }
        }
    }

    /// A missing group starts after the last entry that its view applied, or at the oldest entry.
    async fn ensure_groups(&self) -> Result<(), String> {
        let explain = |error: JournalError| error.to_string();
        let group = self.group();
        let status = self.journal.status(Lane::Traffic).await.map_err(explain)?;
        if !status.groups.iter().any(|known| known.name == group) {
            // Otherwise entries that our tasks still hold would be delivered and applied again.
            while self.busy.load(Ordering::Acquire) > 0 {
                if self.sleep(BUSY_POLL).await {
                    return Ok(());
                }
            }
            let resume_after = self.view.resume_after().await.map_err(|error| error.to_string())?;
            let start = resume_after.map_or(StartAt::Beginning, StartAt::After);
            if self.journal.ensure_group(Lane::Traffic, &group, start).await.map_err(explain)? {
                debug!(view = self.view.name(), group, ?start, "consumer group created");
                (self.on_group_created)(&group);
            }
        }
        self.journal.ensure_group(Lane::Dead, &group, StartAt::Beginning).await.map_err(explain)?;
        Ok(())
    }
}
