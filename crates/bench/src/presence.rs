//! Presence across two gateways on one Redis: changes per second, cost of changes and of idle sessions in Redis,
//! notification latency at the other gateway, and memory per online user.
//!
//! Two real gateways, a real Redis and WebSocket clients; the first of two friends is connected to the first gateway,
//! the second to the second. Rates and latencies are compared with Redis itself: the same commands, recorded and
//! replayed over one connection.

pub mod redis_counters;
mod replay;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use domain::clock::Stopwatch;
use fastrand::Rng;
use simulate::websocket::ClientId;
use testkit::RedisServer;

use crate::load::shuffled;
use crate::measure::{Latencies, Percentiles, median};
use crate::progress::Stage;
use crate::raw_redis::RawRedis;
use crate::run::{Figure, Run};
use crate::store::StoreKind;
use crate::testbed::{Testbed, pairs_of, random_pause, status_command};
use redis_counters::RedisCounters;
use replay::{Recorder, Recording};

/// Seeds the order of changes.
const SEED: u64 = 17;
/// Single changes replayed for the raw latency.
const SINGLE_REPLAYS_MAX: usize = 500;
const CHANGES_PER_S: f64 = 200.0;
/// Timeout until all are notified.
const LIMIT: Duration = Duration::from_secs(180);
/// Declared in turn.
const STATUSES: [&str; 2] = ["busy", "away"];

/// Gateways that share a Redis, which a stand-in does not.
pub fn measure(run: &mut Run<'_>) -> anyhow::Result<()> {
    let Some(binary) = run.binary() else { return Ok(()) };
    StoreKind::Redis.need()?;
    let sizes = run.sizes;
    let sessions = f64::from(sizes.cluster_sessions);
    let mut stage = Stage::begin("presence over two gateways and Redis", u64::from(sizes.rounds) + 4);
    let redis = run.cores.on_server(RedisServer::start)?;
    let settings = format!("redis.url = \"{}\"\npresence.batch_ms = 0", redis.url());
    let pairs = pairs_of(sizes.cluster_sessions);
    let testbed = Testbed::start_gateways(run, binary, &pairs, &[settings.clone(), settings])?;
    let mut friends = Friends { testbed, pairs: pairs.len(), statuses: HashMap::new(), next_command: 1 };

    let empty = RedisCounters::of(&redis)?;
    friends.testbed.fill(1, sizes.cluster_sessions)?;
    friends.testbed.hold(Duration::from_secs(2))?;
    let memory = RedisCounters::of(&redis)?.since(&empty).memory_bytes / sessions;
    let public_keys = run.cores.on_server(RedisServer::start)?;
    let memory_of_public_keys = memory_of_public_keys(&public_keys, sizes.cluster_sessions)?;
    stage.at(1);

    let (settle, length) = sizes.cluster_idle;
    friends.testbed.hold(settle)?;
    let (before, watch) = (RedisCounters::of(&redis)?, Stopwatch::start());
    friends.testbed.hold(length)?;
    let idle =
        RedisCounters::of(&redis)?.since(&before).over(sessions * watch.elapsed().as_secs_f64() / 60.0);
    stage.at(2);

    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for round in 0..sizes.rounds as usize {
        let before = RedisCounters::of(&redis)?;
        let taken = friends.change_all(STATUSES[round % 2])?;
        costs.push(RedisCounters::of(&redis)?.since(&before).over(pairs.len() as f64));
        rates.push(pairs.len() as f64 / taken.as_secs_f64());
        stage.at(round as u64 + 3);
    }
    let notified = friends.change_singly(sizes.changes)?;
    let (raw_rates, raw_notified) = replayed(&mut friends, &redis, sizes.rounds)?;
    let rate = median(rates.iter().copied());
    stage.end(&format!("{rate:.0} changes/s, notified after {:.1} ms", notified.p50_ms));

    let note = format!(
        "half of {sessions} users change at one gateway, each friend at the other is notified; gateways and Redis share \
         one core"
    );
    let figure = Figure::of(rate).over(median(raw_rates.iter().copied())).noting(note);
    run.add("changes per second over two gateways and Redis", figure);
    let note = format!("{} changes, the longest took {:.1} ms", notified.count, notified.max_ms);
    for (what, ours, raw) in
        [("p50", notified.p50_ms, raw_notified.p50_ms), ("p99", notified.p99_ms, raw_notified.p99_ms)]
    {
        let figure = Figure::of(ours).over(raw).noting(note.clone());
        run.add(&format!("change to friend notified at another gateway, {what}"), figure);
    }
    let figure = Figure::of(memory).over(memory_of_public_keys).noting("one device and one friend each");
    run.add("Redis memory per online user", figure);
    RedisCounters::median_of(&costs).add_rows(run, "per change");
    idle.add_rows(run, "per idle session and minute");
    run.detail("changes per second", [rates, raw_rates]);
    run.detail("notified", [notified, raw_notified]);
    Ok(())
}

/// Pairs of friends at two gateways.
struct Friends {
    testbed: Testbed,
    pairs: usize,
    /// The last status of the first of each pair.
    statuses: HashMap<usize, &'static str>,
    next_command: u32,
}

impl Friends {
    /// All users of the first gateway declare this status. Returns the time until every friend is notified.
    fn change_all(&mut self, status: &'static str) -> anyhow::Result<Duration> {
        let since = self.testbed.clients.now();
        for pair in 0..self.pairs {
            self.declare(pair, status)?;
        }
        self.testbed.wait_for_expected(LIMIT)?;
        Ok(self.testbed.clients.now() - since)
    }

    /// Single changes at random times.
    fn change_singly(&mut self, changes: u32) -> anyhow::Result<Percentiles> {
        self.testbed.latencies = Latencies::default();
        let mut random = Rng::with_seed(SEED);
        let mut next = self.testbed.clients.now();
        for pair in shuffled(self.pairs as u32, SEED).into_iter().cycle().take(changes as usize) {
            self.testbed.hold_until(next)?;
            next += random_pause(&mut random, CHANGES_PER_S);
            let is_busy = self.statuses.get(&(pair as usize)) == Some(&STATUSES[0]);
            self.declare(pair as usize, STATUSES[usize::from(is_busy)])?;
        }
        self.testbed.wait_for_expected(LIMIT)?;
        Ok(self.testbed.latencies.percentiles())
    }

    /// The first of a pair changes its status, unless it has it or a notification is pending.
    fn declare(&mut self, pair: usize, status: &'static str) -> anyhow::Result<()> {
        let (one, other) = (ClientId(2 * pair), ClientId(2 * pair + 1));
        if self.statuses.get(&pair) == Some(&status) || self.testbed.is_expecting(other) {
            return Ok(());
        }
        self.next_command += 1;
        self.statuses.insert(pair, status);
        self.testbed.expect(other, &Rc::from(format!(r#""status":"{status}""#)));
        let line = status_command(self.next_command, status, "");
        Ok(self.testbed.clients.send(one, &line)?)
    }
}

/// The same commands replayed: two rounds are recorded and replayed alternately, so that each changes what the other
/// left. Changes per second, and the time of a single one.
fn replayed(
    friends: &mut Friends,
    redis: &RedisServer,
    rounds: u32,
) -> anyhow::Result<(Vec<f64>, Percentiles)> {
    let users = friends.pairs as f64;
    // Makes each of the two recorded rounds a change for all users.
    friends.change_all(STATUSES[1])?;
    let mut recordings: Vec<Recording> = Vec::new();
    for status in STATUSES {
        let recorder = Recorder::start(redis.port())?;
        friends.change_all(status)?;
        // For commands that follow the last notification.
        friends.testbed.hold(Duration::from_millis(300))?;
        recordings.push(recorder.finish()?);
    }
    let mut raw = RawRedis::connect(redis.port())?;
    let mut rates = Vec::new();
    for round in 0..rounds as usize {
        let batches = recordings[round % 2].in_batches();
        let watch = Stopwatch::start();
        raw.send(&batches)?;
        rates.push(users / watch.elapsed().as_secs_f64());
    }
    let mut latencies = Latencies::default();
    let each = (recordings[0].commands() as f64 / users).round().max(1.0) as usize;
    for piece in recordings[rounds as usize % 2].in_pieces_of(each).into_iter().take(SINGLE_REPLAYS_MAX) {
        let watch = Stopwatch::start();
        raw.send(&[piece])?;
        latencies.add(watch.elapsed());
    }
    Ok((rates, latencies.percentiles()))
}

/// Memory of the three public keys of a user, in an otherwise empty Redis.
fn memory_of_public_keys(redis: &RedisServer, users: u32) -> anyhow::Result<f64> {
    let before = RedisCounters::of(redis)?;
    let keys = (1..=users).map(|user| {
        format!(
            "SET presence:{user} online EX 900\nSET connection:{user} gateway-1 EX 900\nSET heartbeat:{user} 1700000000 EX 900\n"
        )
    });
    redis.cli_lines(&keys.collect::<String>());
    Ok(RedisCounters::of(redis)?.since(&before).memory_bytes / f64::from(users))
}
