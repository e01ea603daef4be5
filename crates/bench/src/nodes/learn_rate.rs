//! Applying replicated announces, against direct announces, in process.
//!
//! Both sides receive the same peers in the same order: first all of them join, then all announce again. Inputs are
//! prepared in small batches outside of the timer.

use std::hint::black_box;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{Announce, AnnounceEvent, Cause, RunId, Seconds, UnixTime};
use serde::Serialize;
use swarm::{PeerLists, RemoteAnnounce, RemoteTotals, Swarms, Terms};

use crate::population::{Population, Shape};
use crate::progress::Stage;
use crate::report::Row;
use crate::rounds::median;
use crate::schedule::ScheduledAnnounce;
use crate::swarm_cost::{BATCH, RULES, START, announce_of};

/// Seeds the order of announces.
const SEED: u64 = 22;
const FIRST_UPLOADED: u64 = 1_000_000_000;
/// How much a peer uploads between two announces.
const UPLOADED: u64 = 16_384;
/// Between a peer's two announces.
const BETWEEN: Seconds = Seconds(1_800);

/// Rates of one kind of announce, one value per round.
#[derive(Clone, Debug, Serialize)]
pub struct LearnRate {
    pub name: &'static str,
    pub peers: u32,
    /// Replicated announces per second.
    pub learnt: Vec<f64>,
    /// Direct announces per second; same positions.
    pub announced: Vec<f64>,
}

impl LearnRate {
    /// The line of the table.
    pub(super) fn row(&self) -> Row {
        let middle = |rates: &[f64]| median(rates.iter().copied());
        let ratio =
            median(self.learnt.iter().zip(&self.announced).map(|(learnt, announced)| learnt / announced));
        Row::plain(format!("swarms learn, {}", self.name), middle(&self.learnt), "/s")
            .against(middle(&self.announced), ratio)
            .noting(format!(
                "limit = the same by Swarms::announce, which also hands out peers; {} peers",
                self.peers
            ))
    }
}

/// Measures both in alternating rounds, each with its own swarms.
pub(super) fn measure(shape: Shape, rounds: u32) -> Vec<LearnRate> {
    let population = Population::new(shape);
    let mut order: Vec<u32> = (0..population.peers()).collect();
    fastrand::Rng::with_seed(SEED).shuffle(&mut order);
    let rate_of = |name| LearnRate { name, peers: population.peers(), learnt: vec![], announced: vec![] };
    let mut rates = vec![rate_of("peers that join"), rate_of("heartbeats")];
    let mut stage = Stage::begin("swarms learn", u64::from(rounds));
    let per_s = |elapsed: Duration| f64::from(population.peers()) / elapsed.as_secs_f64().max(1e-9);
    for round in 0..rounds {
        let swarms = Swarms::new(START, 1, RunId(1));
        for (lap, rate) in (0..).zip(&mut rates) {
            rate.learnt.push(per_s(learn_lap(&swarms, &population, &order, lap)));
        }
        drop(swarms);
        let swarms = Swarms::new(START, 1, RunId(1));
        for (lap, rate) in (0..).zip(&mut rates) {
            rate.announced.push(per_s(announce_lap(&swarms, &population, &order, lap)));
        }
        stage.at(round.into());
    }
    let middle = |rates: &[f64]| median(rates.iter().copied());
    let summary = rates.iter().map(|rate| format!("{} {:.0}/s", rate.name, middle(&rate.learnt)));
    stage.end(&summary.collect::<Vec<_>>().join(", "));
    rates
}

fn learn_lap(swarms: &Swarms, population: &Population, order: &[u32], lap: u32) -> Duration {
    let mut elapsed = Duration::ZERO;
    for numbers in order.chunks(BATCH) {
        let batch: Vec<RemoteAnnounce> =
            numbers.iter().map(|number| heard_of(population, *number, lap)).collect();
        let watch = Stopwatch::start();
        for announce in &batch {
            black_box(swarms.apply_remote(black_box(announce), announce.at, &RULES));
        }
        elapsed += watch.elapsed();
    }
    elapsed
}

fn announce_lap(swarms: &Swarms, population: &Population, order: &[u32], lap: u32) -> Duration {
    let mut lists = PeerLists::default();
    let mut elapsed = Duration::ZERO;
    for numbers in order.chunks(BATCH) {
        let announces = numbers.iter().map(|number| announce_in(population, *number, lap));
        let batch: Vec<(Announce, Terms)> = announces.collect();
        let watch = Stopwatch::start();
        for (announce, terms) in &batch {
            // Not optimised away.
            let _ = black_box(swarms.announce(black_box(announce), terms, &mut lists));
        }
        elapsed += watch.elapsed();
    }
    elapsed
}

fn announce_in(population: &Population, number: u32, lap: u32) -> (Announce, Terms) {
    let event = if lap == 0 { AnnounceEvent::Started } else { AnnounceEvent::None };
    let uploaded = FIRST_UPLOADED + u64::from(lap) * UPLOADED;
    announce_of(population, ScheduledAnnounce { peer: number, uploaded, event }, moment(lap))
}

/// The same announce as a replicated one.
fn heard_of(population: &Population, number: u32, lap: u32) -> RemoteAnnounce {
    let (announce, terms) = announce_in(population, number, lap);
    RemoteAnnounce {
        silence_max: Seconds(0),
        info_hash: announce.info_hash,
        user: terms.user,
        peer_id: announce.peer_id,
        key: announce.key,
        ip: announce.ip,
        port: announce.port,
        left: announce.left,
        event: announce.event,
        cause: Cause::Announce,
        at: announce.now,
        since_last: Some(if lap == 0 { Seconds(0) } else { BETWEEN }),
        totals: Some(RemoteTotals { run: RunId(7), uploaded: announce.uploaded, downloaded: 0 }),
    }
}

fn moment(lap: u32) -> UnixTime {
    START + Seconds(lap * BETWEEN.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_end_with_the_same_swarms() {
        let population = Population::new(Shape { torrents: 10, peers: 1_000 });
        let order: Vec<u32> = (0..1_000).collect();
        let (learning, hearing) = (Swarms::new(START, 1, RunId(1)), Swarms::new(START, 1, RunId(1)));
        for lap in 0..2 {
            learn_lap(&learning, &population, &order, lap);
            announce_lap(&hearing, &population, &order, lap);
            assert_eq!(learning.totals(), hearing.totals());
        }
        assert_eq!(learning.totals().peers, 1_000);
    }
}
