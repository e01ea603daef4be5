//! The consumer loop: brings the journal's entries into a view, whatever happens on the way.
//!
//! # Layout
//!
//! - this file: settings, counters, and the task that starts and ends the others
//! - `intake`: one batch: understood, applied, its failures moved_to_dead_letters, the rest acknowledged
//! - `reader`: reads new entries, one batch after the other
//! - `letters`: tries dead letters again, later and later, and gives up in the end (J6)
//! - `takeover`: takes over what dead consumers left behind (J4)
//! - [`name`]: names of consumers
//!
//! # Guarantees
//!
//! - An entry is acknowledged after its view has it, or after it lies in the dead letters; never before.
//! - A store that is down stops consumption, with growing pauses; nothing is acknowledged and nothing goes to the dead
//!   dead letters for it. Only a failure of the entry itself does.
//! - Settings and pauses take effect while everything runs (J9).

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
use domain::{Histogram, LogThrottle, Seconds};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

pub use dead_letter_retrier::HELD_MAX as DEAD_LETTERS_HELD_MAX;
pub use name::ProcessName;
pub use takeover::foreign_consumers;

use crate::backoff::Backoff;
use crate::error::JournalError;
use crate::pause::PauseSwitch;
use crate::port::{Journal, Lane, StartAt};
use crate::rate_limiter::RateLimiter;
use crate::view::View;

/// How long a reader sleeps while its view is paused, before it looks again.
const PAUSE_POLL: Duration = Duration::from_millis(200);

/// How long whoever makes a group again sleeps before it looks whether others are still busy.
const BUSY_POLL: Duration = Duration::from_millis(5);

/// What a consumer goes by. All of it may change while it runs, except the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// The view's group.
    pub group: String,
    /// How many batches are worked on at once.
    pub consumers: usize,
    /// Entries in a batch at most.
    pub batch_max: usize,
    /// Entries that this process takes a second, at most (J10); zero means no limit.
    pub entries_per_s_max: u32,
    /// Entries that were appended before this moment, in milliseconds since 1970, are skipped: they are older than the
    /// installation (J11).
    pub not_before_ms: u64,
    /// How long a read waits for entries.
    pub read_wait: Duration,
    /// A consumer that has been silent this long is taken for dead.
    pub dead_after: Duration,
    /// How often a dead letter is tried again before it has failed (J6).
    pub retry_max: u32,
    /// How long after its failure a dead letter is tried again; each further time it is six times as long.
    pub retry_delay: Seconds,
    /// Whether entries that nobody can understand, and dead letters that name no group, are this view's to move_to_dead_letters and to try
    /// again. One view of a journal does so; else each would move_to_dead_letters the same entry.
    pub handles_malformed: bool,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct ConsumerCounters {
    /// Entries that the view has taken.
    pub applied: AtomicU64,
    /// Entries that went to the dead letters.
    pub moved_to_dead_letters: AtomicU64,
    /// Entries that cannot be understood, left to the view that answers for all.
    pub skipped: AtomicU64,
    /// Entries that were skipped because they are older than the installation (J11).
    pub skipped_old: AtomicU64,
    /// Live consumers of the group that are no process of ours, and take a part of the entries.
    pub foreign_consumers: AtomicU64,
    /// Dead letters that the view took in the end.
    pub restored: AtomicU64,
    /// Dead letters that failed once more.
    pub retried: AtomicU64,
    /// Dead letters that were given up.
    pub failed: AtomicU64,
    /// Entries taken over from the dead.
    pub taken_over: AtomicU64,
    /// Batches that had to wait because a store was down.
    pub transient_failures: AtomicU64,
    /// Times that a consumer of ours was taken for dead.
    pub fenced: AtomicU64,
    /// Batches in a row that had to wait, the present one included; zero while the view goes on.
    pub failures_in_a_row: AtomicU64,
    /// Dead letters that wait for their time; at most [`DEAD_LETTERS_HELD_MAX`].
    pub dead_letters_held: AtomicU64,
    /// Times that new dead letters were left where they are, because that many waited already.
    pub dead_letters_full: AtomicU64,
    /// Dead letters that were tried again, by how often they had been tried before (J7). The last place has all the rest.
    pub dead_letters_retried: [AtomicU64; RETRY_BUCKETS],
    /// How long the view took to apply a batch, whatever came of it.
    pub applies: Histogram,
}

/// How many tries of a dead letter are told apart.
pub const RETRY_BUCKETS: usize = 8;

/// Is called with a group's name.
type OnGroupCreated = Box<dyn Fn(&str) + Send + Sync>;

/// What the tasks of one consumer share.
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
    /// Names that consumers of this process have given up.
    former_names: Mutex<HashSet<String>>,
    /// How many of our tasks read, or hold entries that they have yet to bring into the view.
    busy: AtomicUsize,
    /// Held by whoever makes groups again.
    regrouping: tokio::sync::Mutex<()>,
    counters: Arc<ConsumerCounters>,
    log: LogThrottles,
}

/// Lines of the log that bad entries, or a store that is away, cause over and over. The counters have every case.
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

/// One of our tasks at work on entries.
struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Brings the journal's entries into one view.
pub struct Consumer {
    shared: Arc<Shared>,
}

impl Consumer {
    /// A consumer that has yet to run. It ends soon after `stop` says so.
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

    /// Calls `listener` with the group's name whenever the group was missing and has been made (J10). It must not wait.
    pub fn on_group_created(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.on_group_created = Box::new(listener);
        }
        self
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<ConsumerCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// Runs until told to stop; ends between batches, or in the middle of waiting.
    pub async fn run(self) {
        let shared = self.shared;
        shared.prepare_groups().await;
        // A view that was paused before the start takes nothing at all.
        shared.load_pause().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(takeover::run(Arc::clone(&shared)));
        tasks.spawn(dead_letter_retrier::run(Arc::clone(&shared)));
        let (mut readers, mut spawned) = (0, 0);
        let mut settings = shared.settings.clone();
        loop {
            let wanted = settings.borrow_and_update().consumers.max(1);
            // A reader whose number is too high ends by itself, in its own time: the next one of that number must
            // not share its name.
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
        // Whoever holds the settings is gone only when everything ends.
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

    fn is_paused(&self) -> bool {
        self.pause.is_paused()
    }

    /// Finds out whether the view is paused, however long the journal is away.
    async fn load_pause(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.pause.refresh(&*self.journal, self.view.name(), &self.process).await {
            warn!(view = self.view.name(), %reason, "the view cannot begin yet: whether it is paused is unknown");
            if self.sleep(backoff.pause()).await {
                return;
            }
        }
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

    /// Forgets the consumers of this process that have nothing pending, so that a pause does not wait for them.
    async fn delete_idle_consumers(&self) {
        for lane in [Lane::Traffic, Lane::Dead] {
            let Ok(consumers) = self.journal.consumers(lane, &self.group()).await else { return };
            for consumer in consumers.iter().filter(|consumer| self.process.is_ours(&consumer.name)) {
                // Whatever is left of them is forgotten after the next start.
                let _ = self.journal.forget_consumer(lane, &self.group(), &consumer.name).await;
            }
        }
    }

    /// To be held from before entries are read until the view has them.
    fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(&self.busy)
    }

    /// Sees to it that the groups exist, however long the journal is away. Whoever calls this is not busy.
    async fn prepare_groups(&self) {
        let _alone = self.regrouping.lock().await;
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        while let Err(reason) = self.ensure_groups().await {
            if let Some(left_out) = self.log.not_ready.admit(self.clock.now()) {
                warn!(
                    view = self.view.name(),
                    reason,
                    lines_left_out = left_out,
                    "the view cannot begin yet"
                );
            }
            if self.sleep(backoff.pause()).await {
                return;
            }
        }
    }

    /// A group that is missing begins where its view ended: with the oldest entry there is, if the view is new or
    /// does not mind.
    async fn ensure_groups(&self) -> Result<(), String> {
        let explain = |error: JournalError| error.to_string();
        let group = self.group();
        let status = self.journal.status(Lane::Traffic).await.map_err(explain)?;
        if !status.groups.iter().any(|known| known.name == group) {
            // What our tasks still hold would otherwise be delivered, and applied, again.
            while self.busy.load(Ordering::Acquire) > 0 {
                if self.sleep(BUSY_POLL).await {
                    return Ok(());
                }
            }
            let resume_after = self.view.resume_after().await.map_err(|error| error.to_string())?;
            let start = resume_after.map_or(StartAt::Beginning, StartAt::After);
            if self.journal.ensure_group(Lane::Traffic, &group, start).await.map_err(explain)? {
                debug!(view = self.view.name(), group, ?start, "the view's group was made");
                (self.on_group_created)(&group);
            }
        }
        self.journal.ensure_group(Lane::Dead, &group, StartAt::Beginning).await.map_err(explain)?;
        Ok(())
    }
}
