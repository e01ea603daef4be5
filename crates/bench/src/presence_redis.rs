//! Presence across two gateways on one Redis: changes per second, cost of changes and of idle sessions in Redis,
//! notification latency at the other gateway, and memory per online user.
//!
//! Two real gateways, a real Redis and WebSocket clients. Rates and latencies are compared with Redis itself: the same
//! commands, recorded and replayed over one connection.
//!
//! # Layout
//!
//! - `testbed`: the gateways, their Redis and the clients
//! - `replay`: recording and replaying Redis commands
//! - `redis_counters`: commands, bytes and memory that Redis counts

mod redis_counters;
mod replay;
mod testbed;

use std::path::Path;
use std::time::Duration;

use domain::clock::Stopwatch;
use fastrand::Rng;
use serde::Serialize;

use crate::error::BenchError;
use crate::installed::need_redis;
use crate::latencies::{Latencies, Percentiles};
use crate::process::Cores;
use crate::progress::Stage;
use crate::raw_redis::RawRedis;
use crate::report::{Budget, Row};
use crate::rounds::median;
use redis_counters::RedisCounters;
use replay::{Recorder, Recording};
use testbed::{DeclaredStatus, Testbed};

/// The founding document: p99 of the notification latency at the other gateway, in milliseconds.
const NOTIFY_BUDGET: Budget = Budget::FigureAtMost(100.0);
/// Changes: ratio to the same Redis commands sent raw.
const CHANGE_BUDGET: Budget = Budget::RatioAtLeast(0.7);
/// Seeds the order of changes.
const SEED: u64 = 17;
/// Single changes replayed for the raw latency.
const SINGLE_REPLAYS_MAX: usize = 500;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Half of them at each gateway.
    pub sessions: u32,
    /// Rounds in which all users of one gateway change.
    pub rounds: u32,
    /// Single changes for the latency.
    pub changes: u32,
    pub changes_per_s: u32,
    /// Time before sessions count as idle.
    pub settle: Duration,
    /// Length of the idle measurement.
    pub idle: Duration,
}

impl Sizes {
    /// Smoke test.
    pub const QUICK: Sizes = Sizes {
        sessions: 1_000,
        rounds: 4,
        changes: 500,
        changes_per_s: 200,
        settle: Duration::from_secs(2),
        idle: Duration::from_secs(15),
    };
    /// Full measurement.
    pub const FULL: Sizes = Sizes {
        sessions: 8_000,
        rounds: 8,
        changes: 4_000,
        changes_per_s: 200,
        settle: Duration::from_secs(75),
        idle: Duration::from_secs(60),
    };
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PresenceRedis {
    pub sessions: u32,
    /// Changes per second, from the first command to the last notification, one value per round.
    pub transitions_per_s: Vec<f64>,
    /// The same commands over one connection, in changes per second.
    pub raw_transitions_per_s: Vec<f64>,
    /// Work of Redis per change.
    pub per_transition: RedisCounters,
    /// Work of Redis per session and idle minute.
    pub per_idle_minute: RedisCounters,
    /// From a command at one gateway to the friend's notification at the other.
    pub notified: Percentiles,
    /// The commands of one change, sequentially, over one connection.
    pub raw_notified: Percentiles,
    /// Bytes in Redis per online user.
    pub memory_per_user: f64,
    /// Bytes in Redis for the three public keys alone.
    pub memory_of_public_keys: f64,
}

/// Measures with gateways of this binary.
pub fn measure(binary: &Path, sizes: &Sizes, cores: Cores) -> Result<PresenceRedis, BenchError> {
    need_redis()?;
    if !binary.is_file() {
        return Err(BenchError::NoServer(binary.to_owned()));
    }
    let mut stage = Stage::begin("presence over two gateways and Redis", u64::from(sizes.rounds) + 4);
    let mut found = PresenceRedis { sessions: sizes.sessions, ..PresenceRedis::default() };
    let mut testbed = Testbed::start(binary, cores, sizes.sessions)?;
    let empty = RedisCounters::of(testbed.redis())?;
    testbed.fill()?;
    testbed.hold(Duration::from_secs(2))?;
    let full = RedisCounters::of(testbed.redis())?;
    found.memory_per_user = full.since(&empty).memory_bytes / f64::from(sizes.sessions);
    found.memory_of_public_keys = testbed.memory_of_public_keys(cores)?;
    stage.at(1);
    found.per_idle_minute = idle(&mut testbed, sizes)?;
    stage.at(2);
    transitions(&mut testbed, sizes, &mut found, &mut stage)?;
    found.notified = notified(&mut testbed, sizes)?.percentiles();
    stage.at(u64::from(sizes.rounds) + 3);
    raw(&mut testbed, sizes, &mut found)?;
    stage.end(&format!(
        "{:.0} changes/s, notified after {:.1} ms",
        median_of(&found.transitions_per_s),
        found.notified.p50_ms
    ));
    Ok(found)
}

fn median_of(figures: &[f64]) -> f64 {
    median(figures.iter().copied())
}

fn idle(testbed: &mut Testbed, sizes: &Sizes) -> Result<RedisCounters, BenchError> {
    testbed.hold(sizes.settle)?;
    let before = RedisCounters::of(testbed.redis())?;
    let watch = Stopwatch::start();
    testbed.hold(sizes.idle)?;
    let spent = RedisCounters::of(testbed.redis())?.since(&before);
    let minutes = watch.elapsed().as_secs_f64() / 60.0;
    Ok(spent.over(f64::from(sizes.sessions) * minutes))
}

/// All users of the first gateway change; a round ends when every friend at the other is notified.
fn transitions(
    testbed: &mut Testbed,
    sizes: &Sizes,
    found: &mut PresenceRedis,
    stage: &mut Stage,
) -> Result<(), BenchError> {
    let users = sizes.sessions / 2;
    let mut spent = Vec::new();
    for round in 0..sizes.rounds {
        let before = RedisCounters::of(testbed.redis())?;
        let taken = testbed.change_all(DeclaredStatus::of_round(round))?;
        spent.push(RedisCounters::of(testbed.redis())?.since(&before).over(f64::from(users)));
        found.transitions_per_s.push(f64::from(users) / taken.as_secs_f64());
        stage.at(u64::from(round) + 3);
    }
    found.per_transition = RedisCounters::median_of(&spent);
    Ok(())
}

/// Single changes at random times.
fn notified(testbed: &mut Testbed, sizes: &Sizes) -> Result<Latencies, BenchError> {
    let mut random = Rng::with_seed(SEED);
    let mut order: Vec<u32> = (0..sizes.sessions / 2).collect();
    random.shuffle(&mut order);
    let mut latencies = Latencies::default();
    let mut next = testbed.now();
    for pair in order.into_iter().cycle().take(sizes.changes as usize) {
        testbed.listen_until(next, &mut latencies)?;
        next += Duration::from_secs_f64(-random.f64().max(1e-9).ln() / f64::from(sizes.changes_per_s));
        testbed.change(pair)?;
    }
    testbed.listen_until_all(&mut latencies)?;
    Ok(latencies)
}

/// The same commands replayed: two rounds are recorded and replayed alternately, so that each changes what the other
/// left.
fn raw(testbed: &mut Testbed, sizes: &Sizes, found: &mut PresenceRedis) -> Result<(), BenchError> {
    let users = f64::from(sizes.sessions / 2);
    let mut recordings: Vec<Recording> = Vec::new();
    // Makes each of the two recorded rounds a change for all users.
    testbed.change_all(DeclaredStatus::of_round(1))?;
    for round in 0..2 {
        let recorder = Recorder::start(testbed.redis().port())?;
        testbed.change_all(DeclaredStatus::of_round(round))?;
        // For commands that follow the last notification.
        testbed.hold(Duration::from_millis(300))?;
        recordings.push(recorder.finish()?);
    }
    let mut redis = RawRedis::connect(testbed.redis().port())?;
    for round in 0..sizes.rounds {
        let recording = &recordings[round as usize % 2];
        let watch = Stopwatch::start();
        redis.send(&recording.in_batches())?;
        found.raw_transitions_per_s.push(users / watch.elapsed().as_secs_f64());
    }
    let mut latencies = Latencies::default();
    let each = (recordings[0].commands() as f64 / users).round().max(1.0) as usize;
    for piece in recordings[sizes.rounds as usize % 2].in_pieces_of(each).into_iter().take(SINGLE_REPLAYS_MAX)
    {
        let watch = Stopwatch::start();
        redis.send(&[piece])?;
        latencies.add(watch.elapsed());
    }
    found.raw_notified = latencies.percentiles();
    Ok(())
}

impl PresenceRedis {
    /// The lines of the table.
    pub fn rows(&self) -> Vec<Row> {
        let (ours, raw) = (median_of(&self.transitions_per_s), median_of(&self.raw_transitions_per_s));
        let rate = Row::plain("changes per second over two gateways and Redis", ours, "/s")
            .against(raw, ours / raw.max(1e-6))
            .judged_by(CHANGE_BUDGET)
            .noting(format!(
                "half of {} users change at one gateway, each friend at the other is notified; gateways and Redis share one \
                 core; limit = the commands that Redis got for it, sent again over one connection with nothing around them",
                self.sessions
            ));
        let notified = |what: &str, ours: f64, raw: f64| {
            Row::plain(format!("change to friend notified at another gateway, {what}"), ours, "ms")
                .against(raw, ours / raw.max(1e-6))
                .noting(format!(
                    "{} changes, the longest took {:.1} ms; limit = the commands of one change, sent to Redis by themselves",
                    self.notified.count, self.notified.max_ms
                ))
        };
        let memory = Row::plain("Redis memory per online user", self.memory_per_user, "bytes")
            .against(self.memory_of_public_keys, self.memory_per_user / self.memory_of_public_keys.max(1.0))
            .noting("one device and one friend each; limit = the three public keys of P3 alone");
        let mut rows = vec![
            rate,
            notified("p50", self.notified.p50_ms, self.raw_notified.p50_ms),
            notified("p99", self.notified.p99_ms, self.raw_notified.p99_ms).judged_by(NOTIFY_BUDGET),
            memory,
        ];
        rows.extend(self.per_transition.rows("per change"));
        rows.extend(self.per_idle_minute.rows("per idle session and minute"));
        rows
    }
}
