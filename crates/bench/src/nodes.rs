//! Several trackers with the same swarms: replication delay, warm start, and the rate of applying replicated
//! announces.

mod learn;
mod node;
mod warm_start;

use std::time::Duration;

use anyhow::bail;
use domain::clock::Stopwatch;
use simulate::load::{Peers, Shape};
use swarm::PeerLists;
use testkit::RedisServer;
use tracker::Tracker;

use crate::measure::Latencies;
use crate::progress::Stage;
use crate::run::{Figure, Run};
use crate::store::StoreKind;
use node::Node;

pub use learn::learn;
pub use warm_start::warm_start;

/// Announces per second whose replication is measured.
const ANNOUNCES_PER_S: u32 = 1_000;
/// Polling interval; the resolution of delays.
const POLL_INTERVAL: Duration = Duration::from_micros(200);
/// Time without progress after which the run fails.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Peers that share a torrent.
const PEERS_PER_TORRENT: u32 = 10;

/// From an announce on one node until another has applied it. One thread announces and polls: entries are replicated in
/// order, so the count of applied entries identifies them.
pub fn delay(run: &mut Run<'_>) -> anyhow::Result<()> {
    StoreKind::Redis.need()?;
    let server = run.cores.on_server(RedisServer::start)?;
    let count = run.sizes.replicated;
    let peers = Peers::new(Shape { torrents: (count / PEERS_PER_TORRENT).max(1), peers: count });
    let gate = node::gate_of(&peers);
    let (announcing, announcing_tasks) = Node::open(&server, &gate)?.run();
    let (learning, learning_tasks) = Node::open(&server, &gate)?.run();
    let stage = Stage::begin("replication delay", count.into());
    let measured = follow(&announcing, &learning, &peers);
    // Tasks end on every path.
    announcing_tasks.end()?;
    learning_tasks.end()?;
    let delay = measured?.percentiles();
    stage.end(&format!("p50 {:.1} ms, p99 {:.1} ms", delay.p50_ms, delay.p99_ms));
    let note = format!(
        "{} announces at {ANNOUNCES_PER_S}/s through one node's queue and Redis, until they are in the swarms of the \
         other; the reader sleeps 25 ms at least once it has read everything; the longest {:.1} ms; both nodes on one core, Redis \
         on another",
        delay.count, delay.max_ms
    );
    run.add("replication delay, p50", Figure::of(delay.p50_ms));
    run.add("replication delay, p99", Figure::of(delay.p99_ms).noting(note));
    run.detail("replication delay", delay);
    Ok(())
}

fn follow(announcing: &Tracker, learning: &Tracker, peers: &Peers) -> anyhow::Result<Latencies> {
    let mut lists = PeerLists::default();
    let count = peers.count();
    let pause = Duration::from_secs(1) / ANNOUNCES_PER_S;
    let mut announced_at = Vec::with_capacity(count as usize);
    let mut delays = Latencies::default();
    let watch = Stopwatch::start();
    let mut last_learnt_at = Duration::ZERO;
    while delays.count() < count as usize {
        let next = announced_at.len() as u32;
        if next < count && pause * next <= watch.elapsed() {
            announced_at.push(watch.elapsed());
            node::announce(announcing, &peers.get(next), &mut lists)?;
        } else {
            std::thread::sleep(POLL_INTERVAL);
        }
        let learnt = learning.counters().replication.applied.get() as usize;
        let now = watch.elapsed();
        for announced in announced_at.iter().take(learnt).skip(delays.count()) {
            delays.add(now.saturating_sub(*announced));
            last_learnt_at = now;
        }
        if now > last_learnt_at + SILENCE_MAX {
            bail!("{} announces were not replicated in time", announced_at.len() - delays.count());
        }
    }
    Ok(delays)
}
