//! Replication delay: from an announce on one node until another has applied it.
//!
//! One thread announces and polls: entries are replicated in order, so the count of applied entries identifies them.

use std::time::Duration;

use domain::clock::Stopwatch;
use swarm::PeerLists;
use testkit::RedisServer;
use tracker::Tracker;

use super::node::{self, Node};
use crate::error::BenchError;
use crate::latencies::{Latencies, Percentiles};
use crate::population::{Population, Shape};
use crate::process::Cores;
use crate::progress::Stage;

/// Polling interval; the resolution of delays.
const POLL_INTERVAL: Duration = Duration::from_micros(200);
/// Time without progress after which the run fails.
const SILENCE_S_MAX: u64 = 30;
/// Peers that share a torrent.
const PEERS_PER_TORRENT: u32 = 10;

/// How many announces, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct DelayPlan {
    pub announces: u32,
    /// How many in a second.
    pub per_s: u32,
}

/// Measures two nodes on one Redis.
pub(super) fn measure(plan: &DelayPlan, cores: Cores) -> Result<Percentiles, BenchError> {
    let server = cores.on_server(RedisServer::start)?;
    let shape = Shape { torrents: (plan.announces / PEERS_PER_TORRENT).max(1), peers: plan.announces };
    let population = Population::new(shape);
    let gate = node::gate_of(&population);
    let (announcing, announcing_tasks) = Node::open(&server, &gate)?.run();
    let (learning, learning_tasks) = Node::open(&server, &gate)?.run();
    let mut stage = Stage::begin("replication delay", plan.announces.into());
    let pause = Duration::from_secs(1) / plan.per_s.max(1);
    let measured = follow(&announcing, &learning, &population, pause, &mut stage);
    // Tasks end on every path.
    announcing_tasks.end()?;
    learning_tasks.end()?;
    let percentiles = measured?.percentiles();
    stage.end(&format!("p50 {:.1} ms, p99 {:.1} ms", percentiles.p50_ms, percentiles.p99_ms));
    Ok(percentiles)
}

fn follow(
    announcing: &Tracker,
    learning: &Tracker,
    population: &Population,
    pause: Duration,
    stage: &mut Stage,
) -> Result<Latencies, BenchError> {
    let mut lists = PeerLists::default();
    let count = population.peers();
    let mut announced_at = Vec::with_capacity(count as usize);
    let mut delays = Latencies::default();
    let watch = Stopwatch::start();
    let mut last_learnt_at = Duration::ZERO;
    while delays.count() < count as usize {
        let next = announced_at.len() as u32;
        if next < count && pause * next <= watch.elapsed() {
            announced_at.push(watch.elapsed());
            node::announce(announcing, &population.peer(next), &mut lists)?;
        } else {
            std::thread::sleep(POLL_INTERVAL.min(pause));
        }
        let learnt = learning.counters().replication.applied.get() as usize;
        let now = watch.elapsed();
        for announced in announced_at.iter().take(learnt).skip(delays.count()) {
            delays.add(now.saturating_sub(*announced));
            last_learnt_at = now;
        }
        if now > last_learnt_at + Duration::from_secs(SILENCE_S_MAX) {
            let in_flight = announced_at.len() - delays.count();
            return Err(BenchError::Timeout { waited_s: SILENCE_S_MAX, in_flight });
        }
        stage.at(delays.count() as u64);
    }
    Ok(delays)
}
