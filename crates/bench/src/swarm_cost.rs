//! Bytes per peer and time per announce, in process: the swarms alone, without sockets and accounts.
//!
//! Announces are prepared in small batches outside of the timer.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use domain::clock::Stopwatch;
use domain::{Announce, Families, RateCeiling, Seconds, UnixTime};
use serde::Serialize;
use swarm::{PeerLists, Rules, SlotLimits, Swarms, Terms};

use crate::allocator::allocated_bytes;
use crate::error::BenchError;
use crate::population::Population;
use crate::rounds::median;
use crate::schedule::{Schedule, ScheduledAnnounce};

/// Announces per batch: few enough to stay in the second-level cache.
pub(crate) const BATCH: usize = 512;
/// `numwant`, as most clients send it.
const WANTED: usize = 50;
/// Start time for the swarms; the value does not matter.
pub(crate) const START: UnixTime = UnixTime(1_800_000_000);
/// Dependent random reads per measurement of memory latency.
const LATENCY_READS: u32 = 2_000_000;

pub(crate) const RULES: Rules = Rules {
    silence_max: Seconds(2_400),
    min_interval: Seconds(0),
    clients_per_user_max: 5,
    ceiling: RateCeiling::DEFAULT,
    peer_ids_per_hour_max: 30,
    credit_upload_without_leechers: true,
};

/// Cost of swarms with a given number of peers.
#[derive(Clone, Debug, Serialize)]
pub struct SwarmCost {
    pub peers: u32,
    pub torrents: u32,
    /// Allocated memory divided by the peers.
    pub bytes_per_peer: f64,
    /// Time for one announce in each round.
    pub announce_ns_rounds: Vec<f64>,
    /// One random read in memory of the swarms' size: the cost of a cache miss.
    pub memory_latency_ns: f64,
}

impl SwarmCost {
    /// The median over the rounds.
    pub fn announce_ns(&self) -> f64 {
        median(self.announce_ns_rounds.iter().copied())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CostPlan {
    pub rounds: u32,
    pub announces_per_round: u32,
}

/// Fills swarms with this population, then measures. `tick` is called with the announces so far.
pub fn measure(
    population: Population,
    plan: CostPlan,
    mut tick: impl FnMut(u64),
) -> Result<SwarmCost, BenchError> {
    let (peers, torrents) = (population.peers(), population.torrents());
    let mut bench = Bench {
        population,
        schedule: Schedule::new(peers, 1),
        batch: Vec::with_capacity(BATCH),
        lists: PeerLists { v4: Vec::with_capacity(6 * WANTED), v6: Vec::with_capacity(18 * WANTED) },
        announces: 0,
    };
    let before = allocated_bytes()?;
    let swarms = Swarms::new(START, 1, domain::RunId(1));
    bench.run(&swarms, peers, START, &mut tick);
    let bytes = allocated_bytes()?.saturating_sub(before);
    assert_eq!(swarms.totals().peers, peers as usize, "every peer has announced once");
    let mut announce_ns_rounds = Vec::new();
    for round in 1..=plan.rounds {
        let now = START + Seconds(round);
        announce_ns_rounds.push(bench.run(&swarms, plan.announces_per_round, now, &mut tick));
    }
    drop(swarms);
    Ok(SwarmCost {
        peers,
        torrents,
        bytes_per_peer: bytes as f64 / f64::from(peers),
        announce_ns_rounds,
        memory_latency_ns: memory_latency_ns(bytes),
    })
}

struct Bench {
    population: Population,
    schedule: Schedule,
    batch: Vec<(Announce, Terms)>,
    lists: PeerLists,
    announces: u64,
}

impl Bench {
    /// Makes `count` announces. Returns the time per announce.
    fn run(&mut self, swarms: &Swarms, count: u32, now: UnixTime, tick: &mut impl FnMut(u64)) -> f64 {
        let mut elapsed_ns = 0;
        let mut left = count as usize;
        while left > 0 {
            let size = left.min(BATCH);
            self.batch.clear();
            self.batch
                .extend((0..size).map(|_| announce_of(&self.population, self.schedule.next_announce(), now)));
            let watch = Stopwatch::start();
            for (announce, terms) in &self.batch {
                // Not optimised away.
                let _ = black_box(swarms.announce(black_box(announce), terms, &mut self.lists));
            }
            elapsed_ns += watch.elapsed().as_nanos();
            left -= size;
            self.announces += size as u64;
            tick(self.announces);
        }
        elapsed_ns as f64 / f64::from(count.max(1))
    }
}

/// A scheduled announce, and what it is granted.
pub fn announce_of(
    population: &Population,
    scheduled: ScheduledAnnounce,
    now: UnixTime,
) -> (Announce, Terms) {
    let peer = population.peer(scheduled.peer);
    let announce = Announce {
        passkey: Some(peer.passkey),
        info_hash: peer.info_hash,
        peer_id: peer.peer_id,
        key: peer.key,
        ip: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | scheduled.peer)),
        port: peer.port,
        uploaded: scheduled.uploaded,
        downloaded: 0,
        left: Some(peer.left),
        event: scheduled.event,
        numwant: None,
        families: Families::Both,
        now,
    };
    let terms = Terms { user: peer.user, wanted: WANTED, slots: SlotLimits::default(), rules: RULES };
    (announce, terms)
}

/// Follows a random cycle through `bytes` of memory, one cache line at a time.
fn memory_latency_ns(bytes: usize) -> f64 {
    const LINE_WORDS: usize = 16;
    let lines = (bytes / 64).clamp(64, 1 << 26) as u32;
    let mut order: Vec<u32> = (0..lines).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut order);
    let mut next = vec![0_u32; lines as usize * LINE_WORDS];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Shape;

    #[test]
    fn announces_of_the_population_are_taken_and_given_peers() {
        let population = Population::new(Shape { torrents: 10, peers: 1_000 });
        let mut schedule = Schedule::new(1_000, 1);
        let swarms = Swarms::new(START, 1, domain::RunId(1));
        let mut lists = PeerLists::default();
        for _ in 0..1_000 {
            let (announce, terms) = announce_of(&population, schedule.next_announce(), START);
            swarms.announce(&announce, &terms, &mut lists).unwrap();
        }
        assert_eq!(swarms.totals().peers, 1_000);
        let peers_given: usize = (0..1_000)
            .map(|_| {
                let next = schedule.next_announce();
                let (announce, terms) = announce_of(&population, next, START + Seconds(1));
                swarms.announce(&announce, &terms, &mut lists).unwrap();
                lists.v4.len() / 6
            })
            .sum();
        assert!(peers_given > 10_000, "{peers_given} peers given to 1,000 announces");
    }
}
