//! A journal in a file, a view that can be made to fail, and running consumers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::{Clock, ManualClock};
use domain::{Seconds, UnixTime};
use journal::{
    AppendToken, Batch, Consumer, ConsumerCounters, ConsumerSettings, DeadLetter, EntryId, Fields,
    GroupStatus, Journal, Lane, ProcessName, Rejected, SqliteJournal, StartAt, View, ViewError,
};
use parking_lot::Mutex;
use tempfile::TempDir;
use testkit::{JOURNAL_FIELDS, eventually_async};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub const GROUP: &str = "ztorrent";
pub const VIEW: &str = "test";
const PATIENCE: Duration = Duration::from_secs(30);

/// An entry identified by its `du`.
pub fn entry(number: u64) -> Fields {
    fields_with(number, "", "")
}

/// Likewise, with one field replaced.
pub fn fields_with(number: u64, replaced: &str, by: &str) -> Fields {
    let du = number.to_string();
    let values = [
        "0123456789abcdef0123456789abcdef",
        "1111111111111111111111111111111111111111",
        "2d5452333030302d2e2e2e2e2e2e2e2e2e2e2e2e",
        "6881",
        "192.0.2.1",
        "IPv4",
        du.as_str(),
        "0",
        "0",
        "none",
        "1794742234",
        "0",
        "1800",
        "900",
    ];
    let pairs = JOURNAL_FIELDS.into_iter().zip(values);
    pairs.map(|(name, value)| (name, if name == replaced { by } else { value })).collect()
}

pub fn dead_letter_of(original: Fields) -> DeadLetter {
    DeadLetter {
        original,
        group: GROUP.to_owned(),
        retry: 0,
        reason: String::new(),
        origin: EntryId { ms: 1, seq: 1 },
        failed_at: UnixTime(0),
        due_at: UnixTime(0),
    }
}

#[derive(Default)]
struct Seen {
    applied: Vec<u64>,
    attempts: BTreeMap<u64, u32>,
    consumers: BTreeSet<String>,
    fenced: BTreeSet<String>,
    rejecting: BTreeSet<u64>,
    upset_by: Option<u64>,
    largest_batch: usize,
    saw_retry: bool,
    resume_after: Option<EntryId>,
}

/// Records the batches; fails on request.
#[derive(Default)]
pub struct TestView {
    seen: Mutex<Seen>,
    is_down: AtomicBool,
}

impl TestView {
    pub fn applied_uploads(&self) -> Vec<u64> {
        let mut applied = self.seen.lock().applied.clone();
        applied.sort_unstable();
        applied
    }

    pub fn reject(&self, number: u64) {
        self.seen.lock().rejecting.insert(number);
    }

    pub fn accept(&self, number: u64) {
        self.seen.lock().rejecting.remove(&number);
    }

    pub fn upset_by(&self, number: u64) {
        self.seen.lock().upset_by = Some(number);
    }

    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    pub fn attempts_of(&self, number: u64) -> u32 {
        self.seen.lock().attempts.get(&number).copied().unwrap_or(0)
    }

    pub fn consumers_seen(&self) -> usize {
        self.seen.lock().consumers.len()
    }

    pub fn largest_batch(&self) -> usize {
        self.seen.lock().largest_batch
    }

    pub fn saw_retries(&self) -> bool {
        self.seen.lock().saw_retry
    }

    pub fn fenced(&self) -> Vec<String> {
        self.seen.lock().fenced.iter().cloned().collect()
    }

    pub fn fence_all(&self) {
        let mut seen = self.seen.lock();
        let all = seen.consumers.clone();
        seen.fenced.extend(all);
    }

    pub fn resume_after(&self, id: EntryId) {
        self.seen.lock().resume_after = Some(id);
    }
}

#[async_trait]
impl View for TestView {
    fn name(&self) -> &'static str {
        VIEW
    }

    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(ViewError::Transient { reason: "down".to_owned() });
        }
        let mut seen = self.seen.lock();
        if seen.fenced.contains(batch.consumer) {
            return Err(ViewError::Fenced);
        }
        seen.consumers.insert(batch.consumer.to_owned());
        seen.largest_batch = seen.largest_batch.max(batch.arrivals.len());
        seen.saw_retry |= batch.is_retry;
        let upset_by = seen.upset_by;
        if batch.arrivals.iter().any(|arrival| Some(arrival.entry.uploaded_delta) == upset_by) {
            return Err(ViewError::Entry { reason: "upset".to_owned() });
        }
        let mut rejected = Vec::new();
        for (index, arrival) in batch.arrivals.iter().enumerate() {
            let number = arrival.entry.uploaded_delta;
            *seen.attempts.entry(number).or_default() += 1;
            if seen.rejecting.contains(&number) {
                rejected.push(Rejected { index, reason: "the view rejects it".to_owned() });
            } else {
                seen.applied.push(number);
            }
        }
        Ok(rejected)
    }

    async fn fence(&self, consumer: &str) -> Result<(), ViewError> {
        self.seen.lock().fenced.insert(consumer.to_owned());
        Ok(())
    }

    async fn resume_after(&self) -> Result<Option<EntryId>, ViewError> {
        Ok(self.seen.lock().resume_after)
    }
}

pub struct Rig {
    pub journal: Arc<SqliteJournal>,
    pub view: Arc<TestView>,
    pub clock: Arc<ManualClock>,
    appended: AtomicUsize,
    started: AtomicUsize,
    _folder: TempDir,
}

pub struct Running {
    pub counters: Counts,
    settings: watch::Sender<ConsumerSettings>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

pub struct Counts(Arc<ConsumerCounters>);

macro_rules! count {
    ($($name:ident: $field:ident),*) => {
        impl Counts {
            $( pub fn $name(&self) -> u64 { self.0.$field.load(Ordering::SeqCst) } )*
        }
    };
}
count!(applied: applied, skipped: skipped, skipped_old: skipped_old, foreign: foreign_consumers, retried: retried, failed: failed, taken_over: taken_over, waits: transient_failures, fenced: fenced);

impl Rig {
    pub async fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(UnixTime(1_794_742_234)));
        let journal = SqliteJournal::open(&folder.path().join("journal.db"), clock.clone()).await.unwrap();
        Rig {
            journal: Arc::new(journal),
            view: Arc::default(),
            clock,
            appended: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            _folder: folder,
        }
    }

    pub fn start(&self, node: &str, change: impl FnOnce(&mut ConsumerSettings)) -> Running {
        let mut settings = ConsumerSettings {
            group: GROUP.to_owned(),
            consumers: 1,
            batch_max: 100,
            entries_per_s_max: 0,
            not_before_ms: 0,
            read_wait: Duration::from_millis(50),
            dead_after: Duration::from_secs(3600),
            retry_max: 3,
            retry_delay: Seconds(0),
            handles_malformed: true,
        };
        change(&mut settings);
        let (settings, settings_seen) = watch::channel(settings);
        let (stop, stopped) = watch::channel(false);
        let started_ms = self.clock.now_ms() + self.started.fetch_add(1, Ordering::SeqCst) as u64;
        let process = ProcessName::new(node, started_ms);
        let journal = Arc::clone(&self.journal) as Arc<dyn Journal>;
        let view = Arc::clone(&self.view) as Arc<dyn View>;
        // Dead letters become due by a running clock.
        let clock = Arc::new(domain::clock::SystemClock);
        let consumer = Consumer::new(journal, view, clock, process, settings_seen, stopped);
        let counters = Counts(consumer.counters());
        Running { counters, settings, stop, task: tokio::spawn(consumer.run()) }
    }

    pub async fn append(&self, entries: &[Fields]) {
        self.append_to(Lane::Traffic, entries).await;
    }

    pub async fn append_to(&self, lane: Lane, entries: &[Fields]) {
        let number = self.appended.fetch_add(1, Ordering::SeqCst) as u64 + 1;
        let token = AppendToken { producer: "test".to_owned(), number };
        self.journal.append(lane, entries, &token).await.unwrap();
    }

    pub async fn ensure_groups(&self) {
        for lane in [Lane::Traffic, Lane::Dead] {
            self.journal.ensure_group(lane, GROUP, StartAt::Beginning).await.unwrap();
        }
    }

    pub async fn dead_letters(&self, lane: Lane) -> Vec<DeadLetter> {
        let stored = self.journal.list(lane, EntryId::ZERO, 1000).await.unwrap();
        stored.iter().map(|stored| DeadLetter::from_fields(&stored.fields)).collect()
    }

    pub async fn has_group(&self) -> bool {
        self.find_group().await.is_some()
    }

    async fn find_group(&self) -> Option<GroupStatus> {
        let status = self.journal.status(Lane::Traffic).await.unwrap();
        status.groups.into_iter().find(|group| group.name == GROUP)
    }

    pub async fn group_status(&self) -> GroupStatus {
        self.find_group().await.expect("the group is there")
    }

    pub async fn wait_lag_0(&self) {
        self.wait_for("the view to be up to date", async || {
            self.find_group().await.is_some_and(|group| group.lag() == 0)
        })
        .await;
    }

    pub async fn wait_for(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        eventually_async(what, PATIENCE, async || is_so().await.then_some(())).await;
    }
}

impl Counts {
    /// A paused view still has its group, which is created before anything is read.
    pub async fn is_paused_seen(&self, rig: &Rig) -> bool {
        rig.has_group().await && rig.journal.paused().await.unwrap().contains(VIEW)
    }
}

impl Running {
    pub fn change(&self, change: impl FnOnce(&mut ConsumerSettings)) {
        self.settings.send_modify(change);
    }

    pub async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.task).await.expect("the consumer ends").unwrap();
    }
}
