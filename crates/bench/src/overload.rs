//! Twice the sustainable rate: every client is answered, nothing that was accepted is lost, replies stay quick, and the
//! server recovers by itself.
//!
//! The sustainable rate is measured first, as announces all in. Then heartbeats come at twice that rate, in an open loop,
//! whatever the server does. Afterwards the accounts must have exactly what the accepted announces claimed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::clock::Stopwatch;
use simulate::announce::PasskeyIn;
use simulate::load::{
    FIRST_UPLOADED, HttpClient, HttpRequests, HttpShape, LoadClient as _, PacedResult, Peers, Schedule,
    UPLOADED_PER_ANNOUNCE, Until,
};
use testkit::Api;

use crate::all_in::wait_for_views;
use crate::measure::Latencies;
use crate::progress::Stage;
use crate::run::{Figure, Run, new_folder};
use crate::server::{Server, ServerPlan, fill_database};

/// Fewer than there are peers, so that a peer has one announce in flight.
const CONNECTIONS: usize = 1_000;
/// Seeds the order of announces.
const SEED: u64 = 24;
const FACTOR: f64 = 2.0;
/// So that every account can be read.
const SETTINGS: &str = "site.requests_per_key_per_s = 0\n";

pub fn measure(run: &mut Run<'_>) -> anyhow::Result<()> {
    let Some(binary) = run.binary().map(Path::to_owned) else { return Ok(()) };
    let (folder, peers) = (new_folder()?, Peers::new(run.sizes.overload_shape));
    let (data, cores, settings) = (folder.path(), run.cores, SETTINGS.to_owned());
    fill_database(&peers, &format!("sqlite:{}", data.join("rollcall.db").display()))?;
    let server =
        Server::start_without_limits(&ServerPlan { binary: &binary, data, cores, roles: None, settings })?;
    let stage = Stage::begin("twice the sustainable rate", 1);
    let requests = HttpRequests::new(&peers, &server.tracker.to_string(), PasskeyIn::Path);
    let connections = CONNECTIONS.min(peers.count() as usize / 2);
    let shape = HttpShape { connections, pipeline: 1, waiting: run.waiting(), keep_alive: true };
    let mut client = HttpClient::connect(server.tracker, Arc::new(requests), shape)?;
    let mut schedule = Schedule::new(peers.count(), SEED).without_stops();

    let joined = client.run(&mut schedule, Until::Announces(peers.count().into()))?;
    ensure!(joined.failures == 0, "a first announce was refused: {:?}", joined.first_failure);
    wait_for_views(server.site, joined.replies)?;
    let before = Stopwatch::start();
    let sustained = client.run(&mut schedule, Until::Announces(run.sizes.overload_announces))?;
    ensure!(sustained.failures == 0, "an announce was refused: {:?}", sustained.first_failure);
    let mut accepted = joined.replies + sustained.replies;
    wait_for_views(server.site, accepted)?;
    let sustainable = sustained.replies as f64 / before.elapsed().as_secs_f64();

    let per_s = FACTOR * sustainable;
    let overload = client.run_paced(&mut schedule, per_s, run.sizes.overload)?;
    let recovering = Stopwatch::start();
    accepted += overload.accepted.len() as u64;
    wait_for_views(server.site, accepted)?;
    let recovered = recovering.elapsed();

    let rounds = run.sizes.overload_announces / u64::from(peers.count());
    let totals = Totals::of(&peers, 1 + rounds, &overload);
    let credited = credited(&server, data, &peers)?;
    stage.end(&format!("{per_s:.0}/s offered, {} answered of {}", overload.seen.replies, overload.sent));
    add_rows(run, &overload, (sustainable, recovered), totals.share(&credited));
    Ok(())
}

/// What the accepted announces of each peer claim beyond its first.
struct Totals(Vec<u64>);

impl Totals {
    /// Each peer has announced so often before.
    fn of(peers: &Peers, announces: u64, overload: &PacedResult) -> Totals {
        let mut totals = vec![(announces - 1) * UPLOADED_PER_ANNOUNCE; peers.count() as usize];
        for accepted in &overload.accepted {
            let beyond_first = accepted.uploaded - FIRST_UPLOADED - UPLOADED_PER_ANNOUNCE;
            let total = &mut totals[accepted.peer as usize];
            *total = beyond_first.max(*total);
        }
        Totals(totals)
    }

    /// The share of peers whose account has exactly this, in percent.
    fn share(&self, credited: &[u64]) -> f64 {
        let exact = self.0.iter().zip(credited).filter(|(claimed, credited)| claimed == credited).count();
        100.0 * exact as f64 / self.0.len().max(1) as f64
    }
}

/// The account of each peer's user.
fn credited(server: &Server, data: &Path, peers: &Peers) -> anyhow::Result<Vec<u64>> {
    let key = std::fs::read_to_string(data.join("first-admin-key")).context("reading the first key")?;
    let api = Api::new(server.site).with_key(key.trim());
    let account = |number| {
        let user = api.get(&format!("/api/v1/users/{}", peers.get(number).user.get())).ok();
        let uploaded = user["figures"]["uploaded"].as_str().context("a user without figures")?;
        uploaded.parse().with_context(|| uploaded.to_owned())
    };
    (0..peers.count()).map(account).collect()
}

fn add_rows(
    run: &mut Run<'_>,
    overload: &PacedResult,
    (sustainable, recovered): (f64, Duration),
    exact: f64,
) {
    let PacedResult { seen, sent, .. } = overload;
    let note = format!(
        "heartbeats at {:.0} a second for {:.0} s, twice the {sustainable:.0} that are sustained; {} accepted, {} told to \
         retry, {} refused otherwise",
        FACTOR * sustainable,
        run.sizes.overload.as_secs_f64(),
        seen.accepted(),
        seen.told_to_retry,
        seen.failures - seen.told_to_retry
    );
    let answered = seen.replies - (seen.failures - seen.told_to_retry);
    let share = 100.0 * answered as f64 / (*sent).max(1) as f64;
    run.add("overload, clients answered", Figure::of(share).noting(note));
    run.add("overload, accounts exact to the byte", Figure::of(exact));
    let mut latencies = Latencies::default();
    overload.latencies.iter().for_each(|latency| latencies.add(*latency));
    let latencies = latencies.percentiles();
    let note = format!(
        "from the moment that an announce is due; the median {:.1} ms, the longest {:.0} ms",
        latencies.p50_ms, latencies.max_ms
    );
    run.add("overload, reply, p99", Figure::of(latencies.p99_ms).noting(note));
    run.add("overload, views up to date again", Figure::of(recovered.as_secs_f64()));
    run.detail("overload", latencies);
}

#[cfg(test)]
mod tests {
    use domain::AnnounceEvent;
    use simulate::load::{ScheduledAnnounce, Shape};

    use super::*;

    #[test]
    fn the_last_accepted_announce_of_each_peer_counts() {
        let peers = Peers::new(Shape { torrents: 1, peers: 2 });
        let announce = |peer, announces: u64| {
            let uploaded = FIRST_UPLOADED + announces * UPLOADED_PER_ANNOUNCE;
            ScheduledAnnounce { peer, uploaded, event: AnnounceEvent::None }
        };
        let accepted = vec![announce(0, 3), announce(0, 5)];
        let totals = Totals::of(&peers, 2, &PacedResult { accepted, ..PacedResult::default() });
        assert_eq!(totals.0, [4 * UPLOADED_PER_ANNOUNCE, UPLOADED_PER_ANNOUNCE]);
        assert_eq!(totals.share(&[4 * UPLOADED_PER_ANNOUNCE, 0]), 50.0);
    }
}
