//! From an announce to an entry in the journal: the tracker's queue, its storing task and the journal, against raw
//! appends of the same entries.
//!
//! Another thread enqueues events as fast as the queue accepts them, and a round ends when the last one is acknowledged
//! as stored: the path of an announce whose reply waits for that. The raw side has its bytes encoded before the timer
//! starts, does not deduplicate, and is the limit of Redis or SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use database::{Durability, SqlError, SqliteDatabase, SqliteOptions, Value};
use domain::TrafficEvent;
use domain::clock::SystemClock;
use journal::{Fields, Flusher, Journal, Queue, RedisJournal, SqliteJournal, TrafficEntry};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::{Fsync, RedisServer};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::error::BenchError;
use crate::installed::need_redis;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rate_comparison::{LapWatch, RateComparison};
use crate::raw_redis::{Piece, RawRedis};
use crate::traffic::{Traffic, TrafficKind};

/// The default of `journal.queue_max`.
const QUEUE_MAX: usize = 100_000;
/// Raw entries per batch: the largest batch of the storing task.
const RAW_BATCH: usize = 1_000;
const RAW_STREAM: &str = "raw:traffic";
/// Timeout of a round.
const ROUND_S_MAX: u64 = 120;

#[derive(Clone, Copy, Debug)]
pub struct AppendPlan {
    pub cores: Cores,
    pub rounds: u32,
    /// Entries per round.
    pub entries: u64,
}

/// Measures the journal on a dedicated Redis without persistence, or with an append-only file synced every second.
pub fn on_redis(plan: &AppendPlan, fsync: Option<Fsync>) -> Result<RateComparison, BenchError> {
    need_redis()?;
    let name = match fsync {
        None => "journal append, Redis",
        Some(_) => "journal append, Redis with AOF",
    };
    let server = plan.cores.on_server(|| redis_server(fsync))?;
    let runtime = new_runtime()?;
    let journal = runtime.block_on(connect(&server))?;
    let traffic = Traffic::new(u32::try_from(plan.entries).unwrap_or(u32::MAX), TrafficKind::Steady);
    let store = RunningStore::start(&runtime, Arc::new(journal));
    let mut raw = RawRedis::connect(server.port())?;
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut comparison = RateComparison::new(name);
    // The first round is a warm-up.
    for round in 0..=plan.rounds {
        let events = round_of(&traffic, round);
        let pieces = xadds(&events);
        let watch = LapWatch::start(Some(server.pid()))?;
        store.round(&runtime, events)?;
        let product = watch.stop()?;
        raw.command(&["UNLINK", BaseNames::default().stream.as_str()])?;
        let watch = LapWatch::start(Some(server.pid()))?;
        raw.send(&pieces)?;
        let raw_lap = watch.stop()?;
        raw.command(&["UNLINK", RAW_STREAM])?;
        if round > 0 {
            comparison.add(plan.entries as usize, product, raw_lap);
        }
        stage.at(u64::from(round));
    }
    store.end(&runtime)?;
    stage.end(&comparison.summary());
    Ok(comparison)
}

/// Measures the journal in a SQLite file.
pub fn on_sqlite(plan: &AppendPlan) -> Result<RateComparison, BenchError> {
    let name = "journal append, SQLite";
    let folder = tempfile::TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
    let runtime = new_runtime()?;
    let path = folder.path().join("journal.db");
    let journal = runtime
        .block_on(SqliteJournal::open(&path, Arc::new(SystemClock)))
        .map_err(|error| BenchError::Database(error.to_string()))?;
    let raw = runtime.block_on(RawFile::open(&folder.path().join("raw.db")))?;
    let traffic = Traffic::new(u32::try_from(plan.entries).unwrap_or(u32::MAX), TrafficKind::Steady);
    let store = RunningStore::start(&runtime, Arc::new(journal));
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut comparison = RateComparison::new(name);
    for round in 0..=plan.rounds {
        let events = round_of(&traffic, round);
        let fields: Vec<Fields> = events.iter().map(TrafficEntry::fields_of).collect();
        let watch = LapWatch::start(None)?;
        store.round(&runtime, events)?;
        let product = watch.stop()?;
        let watch = LapWatch::start(None)?;
        runtime.block_on(raw.insert(&fields))?;
        if round > 0 {
            comparison.add(plan.entries as usize, product, watch.stop()?);
        }
        stage.at(u64::from(round));
    }
    store.end(&runtime)?;
    runtime.block_on(raw.database.close());
    stage.end(&comparison.summary());
    Ok(comparison)
}

fn round_of(traffic: &Traffic, round: u32) -> Vec<TrafficEvent> {
    let first = u64::from(round) * traffic.lap();
    traffic.events(first..first + traffic.lap())
}

/// A Redis that does not rewrite files during a round.
fn redis_server(fsync: Option<Fsync>) -> RedisServer {
    match fsync {
        None => RedisServer::start(),
        Some(fsync) => {
            RedisServer::builder().append_only(fsync).directive("auto-aof-rewrite-percentage 0").start()
        }
    }
}

/// A single-threaded runtime, as a tracker has for its journal.
pub(crate) fn new_runtime() -> Result<Runtime, BenchError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("starting a runtime"))
}

pub(crate) async fn connect(server: &RedisServer) -> Result<RedisJournal, BenchError> {
    let connect = async {
        let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
        Ok(RedisJournal::new(redis, keys))
    };
    connect.await.map_err(|disconnect: keyspace::RedisError| BenchError::Database(disconnect.to_string()))
}

/// The queue with its storing task.
struct RunningStore {
    queue: Arc<Queue>,
    task: tokio::task::JoinHandle<()>,
}

impl RunningStore {
    fn start(runtime: &Runtime, journal: Arc<dyn Journal>) -> Self {
        let queue = Arc::new(Queue::new(QUEUE_MAX));
        let flusher = Flusher::new(Arc::clone(&queue), journal, "loadgen".to_owned());
        RunningStore { queue, task: runtime.spawn(flusher.run()) }
    }

    /// From the first event enqueued until the last one is stored.
    fn round(&self, runtime: &Runtime, events: Vec<TrafficEvent>) -> Result<(), BenchError> {
        let (on_stored, stored) = oneshot::channel();
        let queue = Arc::clone(&self.queue);
        let tracker = std::thread::spawn(move || put_in(&queue, &events, on_stored));
        let limit = Duration::from_secs(ROUND_S_MAX);
        let outcome = runtime.block_on(async { tokio::time::timeout(limit, stored).await });
        match outcome {
            Ok(Ok(true)) => {}
            Ok(_) => return Err(BenchError::Database("the journal gave up entries".to_owned())),
            Err(_) => {
                return Err(BenchError::Timeout { waited_s: ROUND_S_MAX, in_flight: self.queue.occupied() });
            }
        }
        tracker
            .join()
            .map_err(|_| BenchError::Database("the thread of the events ended early".to_owned()))?;
        match self.queue.counters().failed_appends.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => Err(BenchError::Database(format!("the journal refused {failed} batches"))),
        }
    }

    fn end(self, runtime: &Runtime) -> Result<(), BenchError> {
        self.queue.close();
        runtime.block_on(self.task).map_err(|error| BenchError::Database(error.to_string()))
    }
}

fn put_in(queue: &Queue, events: &[TrafficEvent], on_stored: oneshot::Sender<bool>) {
    let Some((last, others)) = events.split_last() else { return };
    for event in others {
        queue.put_blocking(event);
    }
    while !queue.reserve() {
        std::thread::yield_now();
    }
    // The receiver is gone after a timeout.
    queue.put(last, Some(Box::new(move |is_stored| on_stored.send(is_stored).unwrap_or(()))));
}

/// The same entries for the raw side.
fn xadds(events: &[TrafficEvent]) -> Vec<Piece> {
    let piece_of = |events: &[TrafficEvent]| {
        let mut piece = Piece::default();
        for event in events {
            let fields = TrafficEntry::fields_of(event);
            let mut words: Vec<&[u8]> = vec![b"XADD", RAW_STREAM.as_bytes(), b"*"];
            words.extend(fields.iter().flat_map(|(name, value)| [name, value]));
            piece.push(words.into_iter());
        }
        piece
    };
    events.chunks(RAW_BATCH).map(piece_of).collect()
}

/// A file with entries only, as durable as the journal's.
struct RawFile {
    database: SqliteDatabase,
}

impl RawFile {
    async fn open(path: &Path) -> Result<Self, BenchError> {
        let durable = SqliteOptions { durability: Durability::PowerLoss, ..SqliteOptions::default() };
        let database = SqliteDatabase::open(path, durable)
            .await
            .map_err(|error| BenchError::Database(error.to_string()))?;
        let create = "CREATE TABLE entries (place INTEGER NOT NULL PRIMARY KEY, fields BLOB NOT NULL)";
        database
            .write(move |session| session.execute(create, &[]))
            .await
            .map_err(BenchError::sql::<SqlError>)?;
        Ok(RawFile { database })
    }

    /// One statement and one commit per batch.
    async fn insert(&self, entries: &[Fields]) -> Result<(), BenchError> {
        for batch in entries.chunks(RAW_BATCH) {
            let places = vec!["(?)"; batch.len()].join(",");
            let insert = format!("INSERT INTO entries (fields) VALUES {places}");
            let values: Vec<Value> = batch.iter().map(|fields| fields.as_bytes().into()).collect();
            let inserted = self.database.write(move |session| session.execute(&insert, &values)).await;
            inserted.map_err(BenchError::sql::<SqlError>)?;
        }
        Ok(())
    }
}
