//! Bytes per peer and time per announce, in process: the swarms alone, without sockets and accounts; and instruction
//! counts of the announce path (`benches/instructions.rs`).
//!
//! Announces are prepared in small batches outside of the timer.

use std::hint::black_box;

use anyhow::Context as _;
use domain::clock::Stopwatch;
use domain::{Announce, RunId, Seconds, UnixTime};
use serde::Serialize;
use serde_json::Value;
use simulate::load::{Peers, Schedule, Shape};
use swarm::{PeerLists, Swarms, Terms};
use tikv_jemalloc_ctl::{epoch, stats};

use crate::load::{START, announce_of, shuffled};
use crate::measure::median;
use crate::progress::Stage;
use crate::run::{Figure, Run};

/// Announces per batch: few enough to stay in the second-level cache.
pub const BATCH: usize = 512;
/// Dependent random reads per measurement of memory latency.
const LATENCY_READS: u32 = 2_000_000;
/// Ten thousand peers; larger populations are copies.
const SHAPES: [Shape; 2] = [Shape { torrents: 1_000, peers: 10_000 }, Shape { torrents: 100, peers: 10_000 }];
/// Memory is reported from so many peers on.
const MANY_PEERS: u32 = 1_000_000;

/// Cost of swarms with a given number of peers.
#[derive(Clone, Debug, Serialize)]
struct SwarmCost {
    peers: u32,
    bytes_per_peer: f64,
    announce_ns: f64,
    /// One random read in memory of the swarms' size: the cost of a cache miss.
    memory_latency_ns: f64,
}

pub fn measure(run: &mut Run<'_>) -> anyhow::Result<()> {
    let mut costs = Vec::new();
    for (number, shape) in SHAPES.into_iter().enumerate() {
        for copies in run.sizes.swarm_copies {
            // Ten million peers: once is enough.
            if *copies < 1_000 || number == 0 {
                costs.push((shape, measure_one(run, Peers::repeated(shape, *copies))?));
            }
        }
    }
    let name = |shape: &Shape, cost: &SwarmCost| {
        format!("{} peers, {} a torrent", count_text(cost.peers), shape.peers / shape.torrents)
    };
    for (shape, cost) in costs.iter().filter(|(_, cost)| cost.peers >= MANY_PEERS) {
        run.add("memory per peer, {}", Figure::of(cost.bytes_per_peer).with(name(shape, cost)));
    }
    for (shape, cost) in &costs {
        let figure = Figure::of(cost.announce_ns).with(name(shape, cost));
        // Larger swarms return more peers: only equal swarm sizes are comparable.
        let least = costs.iter().find(|(other, least)| other == shape && least.peers < cost.peers);
        let figure = match least {
            Some((_, least)) => {
                let growth_ns = cost.announce_ns - least.announce_ns;
                figure.over(least.announce_ns).noting(format!(
                    "{}: {growth_ns:+.0} ns is the time of {:.1} random reads of memory of the swarms' size, {:.0} ns \
                     each",
                    name(shape, cost),
                    growth_ns / cost.memory_latency_ns,
                    cost.memory_latency_ns
                ))
            }
            None => figure,
        };
        run.add("announce in process, {}", figure);
    }
    run.detail("swarms", costs.into_iter().map(|(_, cost)| cost).collect::<Vec<_>>());
    Ok(())
}

/// A count of thousands or millions.
pub fn count_text(count: u32) -> String {
    match count {
        many if many >= 1_000_000 => format!("{} million", many / 1_000_000),
        few => format!("{} thousand", few / 1_000),
    }
}

/// Allocated and not freed, rounded up to size classes. Only programs with jemalloc get a meaningful number.
pub fn allocated_bytes() -> anyhow::Result<usize> {
    epoch::advance().ok().zip(stats::allocated::read().ok()).map(|(_, bytes)| bytes).context("no statistics")
}

struct Bench {
    peers: Peers,
    schedule: Schedule,
    batch: Vec<(Announce, Terms)>,
    lists: PeerLists,
    announces: u64,
    stage: Stage,
}

fn measure_one(run: &Run<'_>, peers: Peers) -> anyhow::Result<SwarmCost> {
    let (count, rounds) = (peers.count(), run.sizes.rounds);
    let steps = u64::from(count) + u64::from(rounds) * u64::from(run.sizes.announces);
    let mut bench = Bench {
        schedule: Schedule::new(count, 1),
        batch: Vec::with_capacity(BATCH),
        lists: PeerLists { v4: Vec::with_capacity(300), v6: Vec::with_capacity(900) },
        announces: 0,
        stage: Stage::begin(format!("swarms: {count} peers"), steps),
        peers,
    };
    let before = allocated_bytes()?;
    let swarms = Swarms::new(START, 1, RunId(1));
    bench.run(&swarms, count, START);
    let bytes = allocated_bytes()?.saturating_sub(before);
    assert_eq!(swarms.totals().peers, count as usize, "every peer has announced once");
    let announces = run.sizes.announces;
    let announce_ns = median((1..=rounds).map(|round| bench.run(&swarms, announces, START + Seconds(round))));
    drop(swarms);
    let bytes_per_peer = bytes as f64 / f64::from(count);
    bench.stage.end(&format!("{bytes_per_peer:.1} bytes per peer, {announce_ns:.0} ns per announce"));
    Ok(SwarmCost { peers: count, bytes_per_peer, announce_ns, memory_latency_ns: memory_latency_ns(bytes) })
}

impl Bench {
    /// Makes `count` announces. Returns the time per announce.
    fn run(&mut self, swarms: &Swarms, count: u32, now: UnixTime) -> f64 {
        let mut elapsed_ns = 0;
        let mut left = count as usize;
        while left > 0 {
            let size = left.min(BATCH);
            self.batch.clear();
            self.batch
                .extend((0..size).map(|_| announce_of(&self.peers, self.schedule.next_announce(), now)));
            let watch = Stopwatch::start();
            for (announce, terms) in &self.batch {
                // Not optimised away.
                let _ = black_box(swarms.announce(black_box(announce), terms, &mut self.lists));
            }
            elapsed_ns += watch.elapsed().as_nanos();
            left -= size;
            self.announces += size as u64;
            self.stage.at(self.announces);
        }
        elapsed_ns as f64 / f64::from(count.max(1))
    }
}

/// Follows a random cycle through `bytes` of memory, one cache line at a time.
fn memory_latency_ns(bytes: usize) -> f64 {
    const LINE_WORDS: usize = 16;
    let order = shuffled((bytes / 64).clamp(64, 1 << 26) as u32, 1);
    let mut next = vec![0_u32; order.len() * LINE_WORDS];
    for (position, line) in order.iter().enumerate() {
        let behind = order[(position + 1) % order.len()];
        next[*line as usize * LINE_WORDS] = behind * LINE_WORDS as u32;
    }
    let watch = Stopwatch::start();
    let mut at = 0;
    for _ in 0..LATENCY_READS {
        at = next[at as usize];
    }
    black_box(at);
    watch.elapsed().as_nanos() as f64 / f64::from(LATENCY_READS)
}

/// Reads the output of gungraun with `--output-format=json`: one object per line.
pub fn instructions(run: &mut Run<'_>) -> anyhow::Result<()> {
    let Some(path) = &run.options.instructions else { return Ok(()) };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, count) = count_of(&serde_json::from_str(line)?).context("a line without a count")?;
        run.add("instructions, {}", Figure::of(count).with(name));
    }
    Ok(())
}

fn count_of(summary: &Value) -> Option<(String, f64)> {
    let name = format!("{} {}", summary["function_name"].as_str()?, summary["id"].as_str()?);
    let callgrind = summary["profiles"].as_array()?.iter().find(|profile| profile["tool"] == "Callgrind")?;
    let values = &callgrind["data"]["total"]["metrics"]["Ir"]["values"];
    // With an earlier run, its count is given too, as `old`.
    Some((name.replace('_', " "), values.get("new")?.as_u64()? as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announces_of_the_peers_are_taken_and_given_peers() {
        let peers = Peers::new(Shape { torrents: 10, peers: 1_000 });
        let mut schedule = Schedule::new(1_000, 1);
        let swarms = Swarms::new(START, 1, RunId(1));
        let mut lists = PeerLists::default();
        let mut announce = |now| {
            let (announce, terms) = announce_of(&peers, schedule.next_announce(), now);
            swarms.announce(&announce, &terms, &mut lists).unwrap();
            lists.v4.len() / 6
        };
        assert!((0..1_000).all(|_| announce(START) <= 50));
        assert_eq!(swarms.totals().peers, 1_000);
        let peers_given: usize = (0..1_000).map(|_| announce(START + Seconds(1))).sum();
        assert!(peers_given > 10_000, "{peers_given} peers given to 1,000 announces");
    }

    #[test]
    fn the_count_of_the_newest_run_is_taken() {
        let summary = |values: Value| {
            let metrics = serde_json::json!({ "Ir": { "values": values } });
            let data = serde_json::json!({ "total": { "metrics": metrics } });
            let profiles = serde_json::json!([{ "tool": "Callgrind", "data": data }]);
            serde_json::json!({ "function_name": "swarm_heartbeat", "id": "among_10_peers", "profiles": profiles })
        };
        let expected = Some(("swarm heartbeat among 10 peers".to_owned(), 5049.0));
        assert_eq!(count_of(&summary(serde_json::json!({ "new": 5049, "old": 6000 }))), expected);
        assert_eq!(count_of(&summary(serde_json::json!({ "old": 6000 }))), None);
    }
}
