//! The ordered consumer: one process at a time, oldest entries first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::consumer::rig::entry;
use async_trait::async_trait;
use domain::UnixTime;
use domain::clock::ManualClock;
use journal::{
    AppendToken, Batch, ConsumerSettings, Fields, Journal, JournalError, Lane, LeaderLease, OrderedConsumer,
    OrderedParts, ProcessName, Rejected, SqliteJournal, StartAt, View, ViewError,
};
use parking_lot::Mutex;
use testkit::eventually_async;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const GROUP: &str = "mirror";
const PATIENCE: Duration = Duration::from_secs(30);

/// Records the order.
#[derive(Default)]
struct Recorder {
    seen: Mutex<Vec<u64>>,
    is_down: AtomicBool,
}

#[async_trait]
impl View for Recorder {
    fn name(&self) -> &'static str {
        "mirror"
    }

    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(ViewError::Transient { reason: "down".to_owned() });
        }
        self.seen.lock().extend(batch.arrivals.iter().map(|arrival| arrival.entry.uploaded_delta));
        Ok(Vec::new())
    }
}

/// A lease that the test grants and revokes.
#[derive(Default)]
struct TestLease(AtomicBool);

#[async_trait]
impl LeaderLease for TestLease {
    async fn take(&self) -> Result<bool, JournalError> {
        Ok(self.is_held())
    }
    fn is_held(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    async fn release(&self) {}
    fn renew_interval(&self) -> Duration {
        Duration::from_millis(10)
    }
}

struct Rig {
    journal: Arc<SqliteJournal>,
    view: Arc<Recorder>,
    _folder: tempfile::TempDir,
}

struct Running {
    lease: Arc<TestLease>,
    stop: watch::Sender<bool>,
    _settings: watch::Sender<ConsumerSettings>,
    task: JoinHandle<()>,
}

impl Rig {
    async fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(UnixTime(1_794_742_234)));
        let journal = SqliteJournal::open(&folder.path().join("journal.db"), clock).await.unwrap();
        Rig { journal: Arc::new(journal), view: Arc::default(), _folder: folder }
    }

    async fn append(&self, numbers: std::ops::Range<u64>) {
        let token = AppendToken { producer: "test".to_owned(), number: numbers.start + 1 };
        let entries: Vec<Fields> = numbers.map(entry).collect();
        self.journal.append(Lane::Traffic, &entries, &token).await.unwrap();
    }

    fn start(&self, node: &str, has_lease: bool) -> Running {
        let settings = ConsumerSettings {
            group: GROUP.to_owned(),
            consumers: 1,
            batch_max: 10,
            entries_per_s_max: 0,
            not_before_ms: 0,
            read_wait: Duration::from_millis(20),
            dead_after: Duration::from_secs(3600),
            retry_max: 3,
            retry_delay: domain::Seconds(0),
            handles_malformed: false,
        };
        let (settings, seen) = watch::channel(settings);
        let (stop, stopped) = watch::channel(false);
        let lease = Arc::new(TestLease(AtomicBool::new(has_lease)));
        let parts = OrderedParts {
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            view: Arc::clone(&self.view) as Arc<dyn View>,
            lease: Arc::clone(&lease) as Arc<dyn LeaderLease>,
            clock: Arc::new(domain::clock::SystemClock),
            process: ProcessName::new(node, 1),
        };
        let consumer = OrderedConsumer::new(parts, seen, stopped);
        Running { lease, stop, _settings: settings, task: tokio::spawn(consumer.run()) }
    }

    async fn wait_until_seen(&self, count: usize) {
        eventually_async("entries to arrive", PATIENCE, async || {
            (self.view.seen.lock().len() >= count).then_some(())
        })
        .await;
    }

    async fn wait_until_acknowledged(&self) {
        eventually_async("every entry to be acknowledged", PATIENCE, async || {
            let status = self.journal.status(Lane::Traffic).await.unwrap();
            status.groups.iter().any(|group| group.name == GROUP && group.lag() == 0).then_some(())
        })
        .await;
    }
}

impl Running {
    async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(Duration::from_secs(30), self.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn entries_come_in_order_and_malformed_ones_are_left_out() {
    let rig = Rig::new().await;
    let running = rig.start("a", true);
    rig.append(0..25).await;
    let token = AppendToken { producer: "odd".to_owned(), number: 1 };
    let odd: Fields = [("passkey", "no entry at all")].into_iter().collect();
    rig.journal.append(Lane::Traffic, &[odd], &token).await.unwrap();
    rig.append(25..40).await;
    rig.wait_until_acknowledged().await;
    assert_eq!(*rig.view.seen.lock(), (0..40).collect::<Vec<_>>());
    assert_eq!(rig.journal.status(Lane::Dead).await.unwrap().length, 0);
    running.stop().await;
}

#[tokio::test]
async fn what_several_consumers_left_behind_comes_first_and_oldest_first() {
    let rig = Rig::new().await;
    rig.append(0..9).await;
    rig.journal.ensure_group(Lane::Traffic, GROUP, StartAt::Beginning).await.unwrap();
    // Alternating, as two processes do that both consider themselves the leader.
    for round in 0..3 {
        let name = if round == 1 { "b.1.ordered.0" } else { "c.1.ordered.0" };
        let read = rig.journal.read(Lane::Traffic, GROUP, name, 3, Duration::ZERO).await.unwrap();
        assert_eq!(read.len(), 3);
    }
    rig.append(9..12).await;
    let running = rig.start("a", true);
    rig.wait_until_acknowledged().await;
    assert_eq!(*rig.view.seen.lock(), (0..12).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test]
async fn an_earlier_entry_of_another_consumer_comes_first() {
    let rig = Rig::new().await;
    let running = rig.start("a", true);
    rig.append(0..5).await;
    rig.wait_until_acknowledged().await;
    rig.view.is_down.store(true, Ordering::SeqCst);
    // While the view is down, the consumer holds at most one batch; what follows is delivered to another.
    rig.append(5..6).await;
    eventually_async("the entry to be delivered", PATIENCE, async || {
        (rig.journal.status(Lane::Traffic).await.unwrap().groups[0].pending > 0).then_some(())
    })
    .await;
    rig.append(6..8).await;
    let stolen = rig.journal.read(Lane::Traffic, GROUP, "b.1.ordered.0", 1, Duration::ZERO).await.unwrap();
    assert_eq!(stolen.len(), 1);
    rig.view.is_down.store(false, Ordering::SeqCst);
    rig.wait_until_seen(8).await;
    rig.wait_until_acknowledged().await;
    assert_eq!(*rig.view.seen.lock(), (0..8).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test]
async fn one_process_applies_at_a_time_and_a_pause_stops_all() {
    let rig = Rig::new().await;
    let (first, second) = (rig.start("a", true), rig.start("b", false));
    rig.append(0..30).await;
    rig.wait_until_acknowledged().await;
    // It must be visible that no process holds the lease before anything new is written.
    first.lease.0.store(false, Ordering::SeqCst);
    first.stop().await;
    rig.append(30..60).await;
    assert_eq!(rig.view.seen.lock().len(), 30, "no process holds the lease");
    rig.journal.set_note("mirror", Some("paused")).await.unwrap();
    let paused = rig.start("c", true);
    paused.stop().await;
    assert_eq!(rig.view.seen.lock().len(), 30, "paused");
    rig.journal.set_note("mirror", None).await.unwrap();
    second.lease.0.store(true, Ordering::SeqCst);
    rig.wait_until_acknowledged().await;
    assert_eq!(*rig.view.seen.lock(), (0..60).collect::<Vec<_>>());
    second.stop().await;
}
