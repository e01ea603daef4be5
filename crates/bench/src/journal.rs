//! From an announce to an entry in the journal: the tracker's queue, its storing task and the journal, against raw
//! appends of the same entries; and the memory of a queued entry.
//!
//! Another thread enqueues events as fast as the queue accepts them, and a round ends when the last one is acknowledged
//! as stored: the path of an announce whose reply waits for that. The raw side has its bytes encoded before the timer
//! starts, does not deduplicate, and is the limit of Redis or SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use database::{Durability, SqliteDatabase, SqliteOptions, SqliteSession, Value};
use domain::TrafficEvent;
use domain::clock::{Stopwatch, SystemClock};
use journal::{Fields, Flusher, Journal, Queue, RedisJournal, SqliteJournal, TrafficEntry};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::{Fsync, RedisServer};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::load::{BATCH, Traffic, TrafficKind};
use crate::measure::{Comparison, RoundWatch};
use crate::progress::Stage;
use crate::raw_redis::{Piece, RawRedis};
use crate::run::{Figure, Run, new_folder};
use crate::server::new_runtime;
use crate::store::StoreKind;
use crate::swarms::allocated_bytes;

/// The default of `journal.queue_max`.
pub const QUEUE_MAX: usize = 100_000;
const RAW_STREAM: &str = "raw:traffic";
/// Timeout of a round.
const ROUND_LIMIT: Duration = Duration::from_secs(120);

const NOTE: &str = "ours: from the queue's lock to the acknowledgement of the last stored entry, queue, task and load \
    on one core";

pub fn on_redis(run: &mut Run<'_>) -> anyhow::Result<()> {
    let entries = run.sizes.entries;
    measure_redis(run, "journal append, Redis", entries, RedisServer::start)
}

/// With an append-only file synced every second, and not rewritten during a round.
pub fn on_redis_with_aof(run: &mut Run<'_>) -> anyhow::Result<()> {
    let entries = run.sizes.durable_entries;
    measure_redis(run, "journal append, Redis with AOF", entries, || {
        let builder = RedisServer::builder().append_only(Fsync::EverySecond);
        builder.directive("auto-aof-rewrite-percentage 0").start()
    })
}

fn measure_redis(
    run: &mut Run<'_>,
    name: &str,
    entries: u32,
    start: impl FnOnce() -> RedisServer,
) -> anyhow::Result<()> {
    StoreKind::Redis.need()?;
    let server = run.cores.on_server(start)?;
    let runtime = new_runtime()?;
    let journal = runtime.block_on(connect(&server))?;
    let mut raw = RawRedis::connect(server.port())?;
    let pid = Some(server.pid());
    let comparison = compare(run, name, (entries, pid), (runtime, Arc::new(journal)), |_, events| {
        raw.command(&["UNLINK", BaseNames::default().stream.as_str()])?;
        let pieces = xadds(events);
        let watch = RoundWatch::start(pid)?;
        raw.send(&pieces)?;
        let round = watch.stop(u64::from(entries))?;
        raw.command(&["UNLINK", RAW_STREAM])?;
        Ok(round)
    })?;
    run.add_rates(name, &comparison, NOTE);
    Ok(())
}

pub fn on_sqlite(run: &mut Run<'_>) -> anyhow::Result<()> {
    let (name, entries) = ("journal append, SQLite", run.sizes.durable_entries);
    let folder = new_folder()?;
    let runtime = new_runtime()?;
    let path = folder.path().join("journal.db");
    let journal = runtime.block_on(SqliteJournal::open(&path, Arc::new(SystemClock)))?;
    // Entries only, as durable as the journal's.
    let durable = SqliteOptions { durability: Durability::PowerLoss, ..SqliteOptions::default() };
    let raw = runtime.block_on(async {
        let database = SqliteDatabase::open(&folder.path().join("raw.db"), durable).await?;
        let create = "CREATE TABLE entries (place INTEGER NOT NULL PRIMARY KEY, fields BLOB NOT NULL)";
        database.write(move |session: &SqliteSession| session.execute(create, &[]).map(drop)).await?;
        anyhow::Ok(database)
    })?;
    let insert = |runtime: &Runtime, events: &[TrafficEvent]| {
        let fields: Vec<Fields> = events.iter().map(TrafficEntry::fields_of).collect();
        let watch = RoundWatch::start(None)?;
        runtime.block_on(insert(&raw, &fields))?;
        watch.stop(u64::from(entries))
    };
    let comparison = compare(run, name, (entries, None), (runtime, Arc::new(journal)), insert)?;
    new_runtime()?.block_on(raw.close());
    run.add_rates(name, &comparison, "");
    let stored = f64::from(entries) * f64::from(run.sizes.rounds + 1);
    let bytes = closed_bytes(&path)? as f64 / stored;
    run.add("journal entry on disk, SQLite", Figure::of(bytes).noting("the file once it is closed"));
    Ok(())
}

/// The size of a database whose connections are being closed: the last one moves its WAL into the file.
fn closed_bytes(path: &Path) -> anyhow::Result<u64> {
    let (wal, watch) = (path.with_extension("db-wal"), Stopwatch::start());
    while wal.exists() && watch.elapsed() < ROUND_LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    ensure!(!wal.exists(), "{} was not closed", path.display());
    Ok(path.metadata()?.len())
}

/// Alternating rounds; the first one is a warm-up.
fn compare(
    run: &Run<'_>,
    name: &str,
    (entries, server): (u32, Option<u32>),
    (runtime, journal): (Runtime, Arc<dyn Journal>),
    mut raw: impl FnMut(&Runtime, &[TrafficEvent]) -> anyhow::Result<crate::measure::Round>,
) -> anyhow::Result<Comparison> {
    let traffic = Traffic::new(entries, TrafficKind::Steady);
    let queue = Arc::new(Queue::new(QUEUE_MAX));
    let flusher = Flusher::new(Arc::clone(&queue), journal, "bench".to_owned());
    let storing = runtime.spawn(flusher.run());
    let mut stage = Stage::begin(name, u64::from(run.sizes.rounds));
    let mut comparison = Comparison::default();
    for round in 0..=run.sizes.rounds {
        let events = traffic.events(traffic.positions_of(round));
        let given = events.clone();
        let watch = RoundWatch::start(server)?;
        store(&runtime, &queue, given)?;
        let ours = watch.stop(u64::from(entries))?;
        let limit = raw(&runtime, &events)?;
        if round > 0 {
            comparison.add(ours, limit);
        }
        stage.at(u64::from(round));
    }
    queue.close();
    runtime.block_on(storing)?;
    stage.end(&comparison.summary());
    Ok(comparison)
}

/// From the first event enqueued until the last one is stored.
fn store(runtime: &Runtime, queue: &Arc<Queue>, events: Vec<TrafficEvent>) -> anyhow::Result<()> {
    let (on_stored, stored) = oneshot::channel();
    let of_thread = Arc::clone(queue);
    let tracker = std::thread::spawn(move || put(&of_thread, &events, on_stored));
    let outcome = runtime.block_on(async { tokio::time::timeout(ROUND_LIMIT, stored).await });
    if !outcome.context("the journal is slow")?? {
        bail!("the journal gave up entries");
    }
    if tracker.join().is_err() {
        bail!("the thread of the events ended early");
    }
    match queue.counters().failed_appends.load(Ordering::Relaxed) {
        0 => Ok(()),
        failed => bail!("the journal refused {failed} batches"),
    }
}

fn put(queue: &Queue, events: &[TrafficEvent], on_stored: oneshot::Sender<bool>) {
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

pub async fn connect(server: &RedisServer) -> anyhow::Result<RedisJournal> {
    let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
    Ok(RedisJournal::new(redis, KeyNames::new(&BaseNames::default(), Mode::Single)?))
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
    events.chunks(BATCH).map(piece_of).collect()
}

/// One statement and one commit per batch.
async fn insert(database: &SqliteDatabase, entries: &[Fields]) -> anyhow::Result<()> {
    for batch in entries.chunks(BATCH) {
        let places = vec!["(?)"; batch.len()].join(",");
        let insert = format!("INSERT INTO entries (fields) VALUES {places}");
        let values: Vec<Value> = batch.iter().map(|fields| fields.as_bytes().into()).collect();
        let write = move |session: &SqliteSession| session.execute(&insert, &values).map(drop);
        database.write(write).await?;
    }
    Ok(())
}

/// Fills a queue and reads the allocator's counters.
pub fn queue(run: &mut Run<'_>) -> anyhow::Result<()> {
    let events = run.sizes.queued;
    let traffic = Traffic::new(events, TrafficKind::Steady);
    let before = allocated_bytes()?;
    let queue = Queue::new(events as usize);
    for position in 0..u64::from(events) {
        queue.put_blocking(&traffic.event(position));
    }
    let allocated = allocated_bytes()?.saturating_sub(before);
    assert_eq!(queue.occupied(), events as usize, "every event has a place");
    let note = format!("by the allocator's counters, with {events} in the queue");
    run.add("memory per queued entry", Figure::of(allocated as f64 / f64::from(events)).noting(note));
    Ok(())
}
