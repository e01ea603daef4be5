//! Presence over two gateways that share a Redis: how fast changes go through it, what they and idle sessions cost there,
//! how soon a friend at the other gateway is told, and what an online person takes of its memory.
//!
//! Two real gateways, a real Redis and a crowd on WebSockets. What a rate or a latency is held against is Redis itself:
//! the very commands that the gateways sent, recorded and sent again over one connection with nothing around them.
//!
//! # Layout
//!
//! - `ground`: the gateways, their Redis and the crowd
//! - `replay`: recording what Redis is told, and telling it again
//! - `tally`: what Redis counts: commands, bytes, memory

mod ground;
mod replay;
mod tally;

use std::path::Path;
use std::time::Duration;

use domain::clock::Stopwatch;
use fastrand::Rng;
use serde::Serialize;

use crate::error::LoadError;
use crate::installed::need_redis;
use crate::latencies::{Latencies, Percentiles};
use crate::process::Cores;
use crate::progress::Stage;
use crate::raw_redis::RawRedis;
use crate::report::{Budget, Row};
use crate::rounds::median;
use ground::{Ground, Mood};
use replay::{Recorder, Recording};
use tally::Tally;

/// The document: told within this many milliseconds at the other gateway, in 99 of 100 cases.
const TOLD_BUDGET: Budget = Budget::FigureAtMost(100.0);
/// Seeds who changes when.
const SEED: u64 = 17;
/// Single changes by which the raw latency is taken.
const SINGLE_REPLAYS_MAX: usize = 500;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Sessions, half of them at each gateway.
    pub sessions: u32,
    /// Rounds in which everybody at one gateway changes.
    pub rounds: u32,
    /// Single changes whose latency is taken.
    pub changes: u32,
    /// Of them in a second.
    pub changes_per_s: u32,
    /// How long sessions are left alone before they count as idle.
    pub settle: Duration,
    /// How long they are watched then.
    pub idle: Duration,
}

impl Sizes {
    /// To see that it works.
    pub const QUICK: Sizes = Sizes {
        sessions: 1_000,
        rounds: 4,
        changes: 500,
        changes_per_s: 200,
        settle: Duration::from_secs(2),
        idle: Duration::from_secs(15),
    };
    /// To be believed.
    pub const FULL: Sizes = Sizes {
        sessions: 8_000,
        rounds: 8,
        changes: 4_000,
        changes_per_s: 200,
        settle: Duration::from_secs(75),
        idle: Duration::from_secs(60),
    };
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PresenceRedis {
    /// Sessions meanwhile.
    pub sessions: u32,
    /// Changes a second, from the first command to the last friend told, round by round.
    pub transitions_per_s: Vec<f64>,
    /// The same commands a second, over one connection, counted in changes.
    pub raw_transitions_per_s: Vec<f64>,
    /// What Redis did for one change.
    pub per_transition: Tally,
    /// What Redis did for a session in a minute in which nothing happened.
    pub per_idle_minute: Tally,
    /// From a command at one gateway to what a friend at the other hears.
    pub told: Percentiles,
    /// The commands of one change, one after the other, over one connection.
    pub raw_told: Percentiles,
    /// Bytes in Redis for an online person.
    pub memory_per_person: f64,
    /// Bytes in Redis for the three public keys alone.
    pub memory_of_public_keys: f64,
}

/// Measures everything, with gateways of this binary.
pub fn measure(binary: &Path, sizes: &Sizes, cores: Cores) -> Result<PresenceRedis, LoadError> {
    need_redis()?;
    if !binary.is_file() {
        return Err(LoadError::NoServer(binary.to_owned()));
    }
    let mut stage = Stage::begin("presence over two gateways and Redis", u64::from(sizes.rounds) + 4);
    let mut found = PresenceRedis { sessions: sizes.sessions, ..PresenceRedis::default() };
    let mut ground = Ground::start(binary, cores, sizes.sessions)?;
    let empty = Tally::of(ground.redis())?;
    ground.fill()?;
    ground.hold(Duration::from_secs(2))?;
    let full = Tally::of(ground.redis())?;
    found.memory_per_person = full.since(&empty).memory_bytes / f64::from(sizes.sessions);
    found.memory_of_public_keys = ground.memory_of_public_keys(cores)?;
    stage.at(1);
    found.per_idle_minute = idle(&mut ground, sizes)?;
    stage.at(2);
    transitions(&mut ground, sizes, &mut found, &mut stage)?;
    found.told = told(&mut ground, sizes)?.percentiles();
    stage.at(u64::from(sizes.rounds) + 3);
    raw(&mut ground, sizes, &mut found)?;
    stage.end(&format!(
        "{:.0} changes/s, told after {:.1} ms",
        median_of(&found.transitions_per_s),
        found.told.p50_ms
    ));
    Ok(found)
}

fn median_of(figures: &[f64]) -> f64 {
    median(figures.iter().copied())
}

fn idle(ground: &mut Ground, sizes: &Sizes) -> Result<Tally, LoadError> {
    ground.hold(sizes.settle)?;
    let before = Tally::of(ground.redis())?;
    let watch = Stopwatch::start();
    ground.hold(sizes.idle)?;
    let spent = Tally::of(ground.redis())?.since(&before);
    let minutes = watch.elapsed().as_secs_f64() / 60.0;
    Ok(spent.over(f64::from(sizes.sessions) * minutes))
}

/// Everybody at the first gateway changes; a round is over when every friend at the other was told.
fn transitions(
    ground: &mut Ground,
    sizes: &Sizes,
    found: &mut PresenceRedis,
    stage: &mut Stage,
) -> Result<(), LoadError> {
    let people = sizes.sessions / 2;
    let mut spent = Vec::new();
    for round in 0..sizes.rounds {
        let before = Tally::of(ground.redis())?;
        let taken = ground.everybody(Mood::of_round(round))?;
        spent.push(Tally::of(ground.redis())?.since(&before).over(f64::from(people)));
        found.transitions_per_s.push(f64::from(people) / taken.as_secs_f64());
        stage.at(u64::from(round) + 3);
    }
    found.per_transition = Tally::median_of(&spent);
    Ok(())
}

/// Single changes at random moments.
fn told(ground: &mut Ground, sizes: &Sizes) -> Result<Latencies, LoadError> {
    let mut random = Rng::with_seed(SEED);
    let mut order: Vec<u32> = (0..sizes.sessions / 2).collect();
    random.shuffle(&mut order);
    let mut latencies = Latencies::default();
    let mut next = ground.now();
    for pair in order.into_iter().cycle().take(sizes.changes as usize) {
        ground.listen_until(next, &mut latencies)?;
        next += Duration::from_secs_f64(-random.f64().max(1e-9).ln() / f64::from(sizes.changes_per_s));
        ground.change(pair)?;
    }
    ground.listen_for_the_rest(&mut latencies)?;
    Ok(latencies)
}

/// The same commands, with nothing around them: two rounds are recorded, and told to Redis again in turn, so that each
/// changes what the other left.
fn raw(ground: &mut Ground, sizes: &Sizes, found: &mut PresenceRedis) -> Result<(), LoadError> {
    let people = f64::from(sizes.sessions / 2);
    let mut recordings: Vec<Recording> = Vec::new();
    // Whatever they said last, each of the two rounds is a change for everybody.
    ground.everybody(Mood::of_round(1))?;
    for round in 0..2 {
        let recorder = Recorder::start(ground.redis().port())?;
        ground.everybody(Mood::of_round(round))?;
        // Whatever follows the last word, such as taking note of it.
        ground.hold(Duration::from_millis(300))?;
        recordings.push(recorder.finish()?);
    }
    let mut redis = RawRedis::connect(ground.redis().port())?;
    for round in 0..sizes.rounds {
        let recording = &recordings[round as usize % 2];
        let watch = Stopwatch::start();
        redis.send(&recording.in_batches())?;
        found.raw_transitions_per_s.push(people / watch.elapsed().as_secs_f64());
    }
    let mut latencies = Latencies::default();
    let each = (recordings[0].commands() as f64 / people).round().max(1.0) as usize;
    for piece in recordings[sizes.rounds as usize % 2].in_pieces_of(each).into_iter().take(SINGLE_REPLAYS_MAX)
    {
        let watch = Stopwatch::start();
        redis.send(&[piece])?;
        latencies.add(watch.elapsed());
    }
    found.raw_told = latencies.percentiles();
    Ok(())
}

impl PresenceRedis {
    /// The lines of the table.
    pub fn rows(&self) -> Vec<Row> {
        let (ours, raw) = (median_of(&self.transitions_per_s), median_of(&self.raw_transitions_per_s));
        let rate = Row::plain("changes per second over two gateways and Redis", ours, "/s")
            .against(raw, ours / raw.max(1e-6))
            .noting(format!(
                "half of {} people change at one gateway, each friend at the other is told; gateways and Redis share one \
                 core; limit = the commands that Redis got for it, sent again over one connection with nothing around them",
                self.sessions
            ));
        let told = |what: &str, ours: f64, raw: f64| {
            Row::plain(format!("change to friend told at another gateway, {what}"), ours, "ms")
                .against(raw, ours / raw.max(1e-6))
                .noting(format!(
                    "{} changes, the longest took {:.1} ms; limit = the commands of one change, sent to Redis by themselves",
                    self.told.count, self.told.max_ms
                ))
        };
        let memory = Row::plain("Redis memory per online person", self.memory_per_person, "bytes")
            .against(self.memory_of_public_keys, self.memory_per_person / self.memory_of_public_keys.max(1.0))
            .noting("one device and one friend each; limit = the three public keys of P3 alone");
        let mut rows = vec![
            rate,
            told("p50", self.told.p50_ms, self.raw_told.p50_ms),
            told("p99", self.told.p99_ms, self.raw_told.p99_ms).judged_by(TOLD_BUDGET),
            memory,
        ];
        rows.extend(self.per_transition.rows("per change"));
        rows.extend(self.per_idle_minute.rows("per idle session and minute"));
        rows
    }
}
