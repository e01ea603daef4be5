//! Applying replicated announces, against direct announces, in process.
//!
//! Both sides receive the same peers in the same order: first all of them join, then all announce again. Inputs are
//! prepared in small batches outside of the timer.

use std::hint::black_box;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{Announce, AnnounceEvent, Cause, RunId, Seconds};
use simulate::load::{FIRST_UPLOADED, Peers, ScheduledAnnounce, UPLOADED_PER_ANNOUNCE};
use swarm::{PeerLists, RemoteAnnounce, RemoteTotals, Swarms, Terms};

use crate::load::{RULES, START, announce_of, shuffled};
use crate::measure::{Comparison, Round};
use crate::progress::Stage;
use crate::run::Run;
use crate::swarms::BATCH;

/// Seeds the order of announces.
const SEED: u64 = 22;
/// Between a peer's two announces.
const BETWEEN: Seconds = Seconds(1_800);
const LAPS: [&str; 2] = ["swarms learn, peers that join", "swarms learn, heartbeats"];

/// Measures both in alternating rounds, each with its own swarms.
pub fn learn(run: &mut Run<'_>) -> anyhow::Result<()> {
    let peers = Peers::new(run.sizes.node_shape);
    let order = shuffled(peers.count(), SEED);
    let mut comparisons = [Comparison::default(), Comparison::default()];
    let mut stage = Stage::begin("swarms learn", u64::from(run.sizes.rounds));
    for round in 0..run.sizes.rounds {
        let learning = both_laps(&peers, &order, learn_lap);
        let announcing = both_laps(&peers, &order, announce_lap);
        for ((comparison, ours), limit) in comparisons.iter_mut().zip(learning).zip(announcing) {
            comparison.add(ours, limit);
        }
        stage.at(round.into());
    }
    stage.end(&format!("{}; {}", comparisons[0].summary(), comparisons[1].summary()));
    for (name, comparison) in LAPS.into_iter().zip(&comparisons) {
        run.add_rates(name, comparison, &format!("{} peers", peers.count()));
    }
    Ok(())
}

fn both_laps(peers: &Peers, order: &[u32], lap: fn(&Swarms, &Peers, &[u32], u32) -> Duration) -> [Round; 2] {
    let swarms = Swarms::new(START, 1, RunId(1));
    [0, 1].map(|number| {
        let elapsed = lap(&swarms, peers, order, number);
        Round { per_s: order.len() as f64 / elapsed.as_secs_f64().max(1e-9), ..Round::default() }
    })
}

fn learn_lap(swarms: &Swarms, peers: &Peers, order: &[u32], lap: u32) -> Duration {
    let mut elapsed = Duration::ZERO;
    for numbers in order.chunks(BATCH) {
        let batch: Vec<RemoteAnnounce> = numbers.iter().map(|number| remote(peers, *number, lap)).collect();
        let watch = Stopwatch::start();
        for announce in &batch {
            black_box(swarms.apply_remote(black_box(announce), announce.at, &RULES));
        }
        elapsed += watch.elapsed();
    }
    elapsed
}

fn announce_lap(swarms: &Swarms, peers: &Peers, order: &[u32], lap: u32) -> Duration {
    let mut lists = PeerLists::default();
    let mut elapsed = Duration::ZERO;
    for numbers in order.chunks(BATCH) {
        let batch: Vec<(Announce, Terms)> =
            numbers.iter().map(|number| direct(peers, *number, lap)).collect();
        let watch = Stopwatch::start();
        for (announce, terms) in &batch {
            // Not optimised away.
            let _ = black_box(swarms.announce(black_box(announce), terms, &mut lists));
        }
        elapsed += watch.elapsed();
    }
    elapsed
}

fn direct(peers: &Peers, peer: u32, lap: u32) -> (Announce, Terms) {
    let event = if lap == 0 { AnnounceEvent::Started } else { AnnounceEvent::None };
    let uploaded = FIRST_UPLOADED + u64::from(lap) * UPLOADED_PER_ANNOUNCE;
    announce_of(peers, ScheduledAnnounce { peer, uploaded, event }, START + Seconds(lap * BETWEEN.0))
}

/// The same announce as a replicated one.
fn remote(peers: &Peers, number: u32, lap: u32) -> RemoteAnnounce {
    let (announce, terms) = direct(peers, number, lap);
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

#[cfg(test)]
mod tests {
    use simulate::load::Shape;

    use super::*;

    #[test]
    fn both_sides_end_with_the_same_swarms() {
        let peers = Peers::new(Shape { torrents: 10, peers: 1_000 });
        let order: Vec<u32> = (0..1_000).collect();
        let (learning, announcing) = (Swarms::new(START, 1, RunId(1)), Swarms::new(START, 1, RunId(1)));
        for lap in 0..2 {
            learn_lap(&learning, &peers, &order, lap);
            announce_lap(&announcing, &peers, &order, lap);
            assert_eq!(learning.totals(), announcing.totals());
        }
        assert_eq!(learning.totals().peers, 1_000);
    }
}
