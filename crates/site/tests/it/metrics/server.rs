//! A server in this process, on real sockets and files, with its metrics.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::{Gate, Store};
use database::{SqliteDatabase, SqliteOptions};
use domain::clock::{Clock, SystemClock};
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::maintenance::{self, MaintenanceCounters, MaintenanceSettings};
use journal::{
    Consumer, ConsumerSettings, Flusher, Journal, ProcessName, Queue, RedisJournal, SqliteJournal, View,
};
use keyspace::{BaseNames, KeyNames, Redis, RedisSettings};
use ledger::{Directory, Ledger, LedgerSettings, LogRisks};
use site::metrics::{Metrics, MetricsSources, ViewSource};
use tempfile::TempDir;
use testkit::{Announce, AnnounceReply, RedisServer, eventually_async};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracker::settings::{LiveSettings, Settings};
use tracker::{BoundSockets, Prepared, Running, Secrets, Tracker};
use views::{Activity, ActivitySettings};

pub const TORRENT: InfoHash = InfoHash([0x11; 20]);
pub const VERSION: &str = "1.2.3";
/// Enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Users 1 to 9 exist.
pub fn passkey(user: u64) -> Passkey {
    format!("{user:032x}").parse().unwrap()
}

struct GateDirectory(Arc<Gate>);

impl Directory for GateDirectory {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.0.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.0.torrent_of(info_hash)
    }
}

pub struct TestServer {
    pub metrics: Metrics,
    pub queue: Arc<Queue>,
    pub running: Running,
    pub folder: TempDir,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl TestServer {
    /// With the journal in SQLite.
    pub async fn start() -> TestServer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let journal = SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap();
        TestServer::on(folder, Arc::new(journal), Vec::new()).await
    }

    pub async fn on(
        folder: TempDir,
        journal: Arc<dyn Journal>,
        redis: Vec<(&'static str, Redis)>,
    ) -> TestServer {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let gate = Arc::new(Gate::default());
        for user in 1..=9 {
            gate.put_user(UserId::new(user).unwrap(), passkey(user), true);
        }
        gate.put_torrent(TorrentId::new(1).unwrap(), TORRENT, None, true);
        let queue = Arc::new(Queue::new(1_000));
        let ledger = Arc::new(open_ledger(folder.path(), &gate, &clock).await);
        let activity = open_activity(&clock);
        let store =
            Store::open(&format!("sqlite:{}", folder.path().join("access.db").display())).await.unwrap();
        let follower = access::load(store.clone(), Arc::new(Gate::default())).await.unwrap();
        let maintenance = Arc::new(MaintenanceCounters::default());
        let running = start_tracker(&gate, &queue, &clock);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(Flusher::new(Arc::clone(&queue), Arc::clone(&journal), "test".to_owned()).run());
        let mut views = Vec::new();
        for (view, handles_malformed) in [
            (Arc::clone(&ledger) as Arc<dyn View>, true),
            (Arc::new(activity.clone()) as Arc<dyn View>, false),
        ] {
            let name = view.name();
            let settings = watch::Sender::new(consumer_settings(name, handles_malformed));
            let process = ProcessName::new("test", 1);
            let consumer = Consumer::new(
                Arc::clone(&journal),
                view,
                Arc::clone(&clock),
                process,
                settings.subscribe(),
                stopped.clone(),
            );
            views.push(ViewSource { view: name, group: name.to_owned(), counters: consumer.counters() });
            tasks.spawn(async move {
                consumer.run().await;
                drop(settings);
            });
        }
        let metrics = Metrics::new(MetricsSources {
            version: VERSION,
            clock: Arc::clone(&clock),
            tracker: Some(Arc::clone(running.tracker())),
            queue: Arc::clone(&queue),
            journal: Arc::clone(&journal),
            maintenance: Arc::clone(&maintenance),
            views,
            ledger: Some(ledger),
            activity: Some(activity),
            gate,
            follower: Some(follower.counters()),
            databases: vec![("access", store.database().clone())],
            redis,
        });
        let settings = watch::Sender::new(MaintenanceSettings {
            keep: Seconds(3_600),
            keep_risks: Seconds(3_600),
            length_alarm: 1_000,
        });
        let upkeep = maintenance::run(journal, clock, settings.subscribe(), maintenance, stopped.clone());
        tasks.spawn(async move {
            upkeep.await;
            drop(settings);
        });
        let mut ended = stopped;
        tasks.spawn(async move {
            let end = async move { ended.wait_for(|stopped| *stopped).await.is_ok() };
            follower.run(|_| (), end).await;
        });
        TestServer { metrics, queue, running, folder, stop, tasks }
    }

    /// Where announces go.
    pub fn http_addr(&self) -> SocketAddr {
        self.running.addresses().http[0]
    }

    /// Announces over HTTP.
    pub fn announce(&self, user: u64, announce: &Announce) -> AnnounceReply {
        AnnounceReply::decode(&testkit::http::get(self.http_addr(), &announce.target(&passkey(user))).body)
    }

    /// Value of a sample after a poll of the journal.
    pub async fn poll_for(&self, sample: &str) -> f64 {
        self.metrics.journal_poller().poll().await;
        number(&self.metrics.render(), sample)
    }

    /// Waits until a sample has a value.
    pub async fn wait_for(&self, sample: &str, expected: f64) {
        eventually_async(&format!("{sample} to be {expected}"), PATIENCE, async || {
            self.metrics.journal_poller().poll().await;
            // A group that does not exist yet has no sample.
            (find(&self.metrics.render(), sample) == Some(expected)).then_some(())
        })
        .await;
    }

    pub async fn end(mut self) {
        let running = self.running;
        tokio::task::spawn_blocking(move || running.drain(net::ShutdownMode::Drain)).await.unwrap();
        self.queue.close();
        self.stop.send(true).unwrap();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// With the journal in Redis.
pub async fn on_redis(server: &RedisServer) -> TestServer {
    let settings = RedisSettings::from_url(&server.url()).unwrap();
    let names = KeyNames::new(&BaseNames::default(), settings.mode).unwrap();
    let redis = Redis::new(settings).unwrap();
    let journal = Arc::new(RedisJournal::new(redis.clone(), names));
    TestServer::on(tempfile::tempdir().unwrap(), journal, vec![("journal", redis)]).await
}

/// Value of a sample on the page.
fn find(page: &str, sample: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|number| number.parse().unwrap())
}

/// Value of a sample on the page; panics if there is none.
#[track_caller]
pub fn number(page: &str, sample: &str) -> f64 {
    find(page, sample).unwrap_or_else(|| panic!("no {sample} on the page:\n{page}"))
}

fn consumer_settings(group: &str, handles_malformed: bool) -> ConsumerSettings {
    ConsumerSettings {
        group: group.to_owned(),
        consumers: 1,
        batch_max: 100,
        entries_per_s_max: 0,
        not_before_ms: 0,
        read_wait: Duration::from_millis(100),
        dead_after: Duration::from_secs(60),
        retry_max: 3,
        retry_delay: Seconds(3_600),
        handles_malformed,
    }
}

async fn open_ledger(folder: &Path, gate: &Arc<Gate>, clock: &Arc<dyn Clock>) -> Ledger {
    let database = SqliteDatabase::open(&folder.join("ledger.db"), SqliteOptions::default()).await.unwrap();
    let directory = Arc::new(GateDirectory(Arc::clone(gate)));
    let settings = LedgerSettings { session_retention: Seconds(86_400), ..LedgerSettings::default() };
    let risks = Arc::new(LogRisks);
    Ledger::open(database::Database::Sqlite(database), settings, directory, Arc::clone(clock), risks)
        .await
        .unwrap()
}

fn open_activity(clock: &Arc<dyn Clock>) -> Activity {
    Activity::in_memory(ActivitySettings::default(), Arc::clone(clock))
}

fn start_tracker(gate: &Arc<Gate>, queue: &Arc<Queue>, clock: &Arc<dyn Clock>) -> Running {
    let secrets = Secrets::draw().unwrap();
    let settings = Settings {
        http_addresses: vec!["127.0.0.1:0".parse().unwrap()],
        https_addresses: Vec::new(),
        udp_addresses: vec!["127.0.0.1:0".parse().unwrap()],
        tls: None,
        workers: 1,
        share_ports: false,
        drain_timeout: Duration::from_secs(5),
        live: LiveSettings::default(),
    };
    let tracker = Tracker::new(
        Arc::clone(gate),
        Arc::clone(clock),
        Arc::clone(queue) as Arc<dyn tracker::TrafficSink>,
        settings.live.clone(),
        &secrets,
    );
    let sockets = BoundSockets::open(&settings).unwrap();
    Prepared::new(&settings, Arc::new(tracker)).unwrap().start(sockets, secrets.connection_ids()).unwrap()
}
