//! Announces over HTTP with journal and Redis mirror, against the same without the mirror.
//!
//! Two trackers, each with its own Redis, all on the server's core. A round ends when every view has processed its
//! entries, so that all processor time of an announce is counted in its round.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use domain::clock::Stopwatch;
use keyspace::BaseNames;
use simulate::load::{HttpClient, HttpRequests, HttpShape, LoadClient as _, Peers, Schedule, Until};
use tempfile::TempDir;
use testkit::RedisServer;

use crate::measure::{Comparison, Round, RoundWatch};
use crate::process::need_redis;
use crate::progress::Stage;
use crate::run::{Run, new_folder};
use crate::server::{Server, ServerPlan, fill_database};
use crate::sockets::accepted;

/// Seeds the order of announces.
const SEED: u64 = 23;
const CONNECTIONS: usize = 64;
/// Timeout of the views after a round.
const CATCH_UP_MAX: Duration = Duration::from_secs(120);
/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A tracker, its Redis and its client.
struct Side {
    redis: RedisServer,
    server: Server,
    shape: HttpShape,
    requests: Arc<HttpRequests>,
    schedule: Schedule,
    _folder: TempDir,
}

/// Rounds in which every peer announces twice.
pub fn mirrored(run: &mut Run<'_>) -> anyhow::Result<()> {
    let Some(binary) = run.binary().map(Path::to_owned) else { return Ok(()) };
    need_redis()?;
    let peers = Peers::new(run.sizes.mirrored_shape);
    let rounds = run.sizes.rounds;
    let mut stage = Stage::begin("announces, with and without the mirror", u64::from(rounds) + 1);
    let mut with = Side::start(run, &binary, &peers, true)?;
    let mut without = Side::start(run, &binary, &peers, false)?;
    let announces = with.schedule.announces_until_all_started();
    with.round(announces)?;
    without.round(announces)?;
    // The time of Redis, in place of the tracker's.
    let (mut comparison, mut redis) = (Comparison::default(), Comparison::default());
    for round in 0..rounds {
        stage.at(u64::from(round) + 1);
        let (ours, limit) = (with.round(2 * announces)?, without.round(2 * announces)?);
        comparison.add(ours[0], limit[0]);
        redis.add(ours[1], limit[1]);
    }
    stage.end(&comparison.summary());
    let time = |round: &Round| round.server_ns;
    run.add("announces with journal and mirror in Redis", comparison.rates());
    let note = "until every view has the entry; views included, since they are in the same process";
    run.add("the tracker's time for it", comparison.figure(time).noting(note));
    run.add("time of Redis for it", redis.figure(time));
    run.detail("with and without the mirror", [comparison, redis]);
    Ok(())
}

impl Side {
    fn start(run: &Run<'_>, binary: &Path, peers: &Peers, is_mirrored: bool) -> anyhow::Result<Side> {
        let redis = run.cores.on_server(RedisServer::start)?;
        let folder = new_folder()?;
        fill_database(peers, folder.path())?;
        let settings = format!("redis.url = \"{}\"\nmirror.enabled = {is_mirrored}\n", redis.url());
        let (data, cores) = (folder.path(), run.cores);
        let plan = ServerPlan { binary, data, cores, roles: None, settings };
        let server = Server::start_without_limits(&plan)?;
        Ok(Side {
            redis,
            shape: HttpShape { connections: CONNECTIONS, pipeline: 1, waiting: run.waiting() },
            requests: Arc::new(HttpRequests::new(peers, &server.tracker.to_string())),
            server,
            schedule: Schedule::new(peers.count(), SEED),
            _folder: folder,
        })
    }

    /// With the processor time of the tracker, and with that of Redis.
    fn round(&mut self, announces: u64) -> anyhow::Result<[Round; 2]> {
        let tracker = RoundWatch::start(Some(self.server.process.pid()))?;
        let redis = RoundWatch::start(Some(self.redis.pid()))?;
        // New connections: the tracker closes idle ones during the other side's round.
        let mut client = HttpClient::connect(self.server.tracker, Arc::clone(&self.requests), self.shape)?;
        let seen = accepted(client.run(&mut self.schedule, Until::Announces(announces), &mut |_| {})?)?;
        self.wait_for_views()?;
        Ok([tracker.stop_after(seen.replies, seen.elapsed)?, redis.stop_after(seen.replies, seen.elapsed)?])
    }

    /// Until no entry is left in two consecutive polls: at the first one the last entries may not have reached Redis
    /// yet.
    fn wait_for_views(&self) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        let stream = BaseNames::default().stream;
        let mut was_done = false;
        while watch.elapsed() < CATCH_UP_MAX {
            std::thread::sleep(LOOK_EVERY);
            let is_done = left_to_take(&self.redis.cli(&["XINFO", "GROUPS", &stream])) == Some(0);
            if is_done && was_done {
                return Ok(());
            }
            was_done = is_done;
        }
        bail!("the views did not catch up within {CATCH_UP_MAX:?}")
    }
}

/// Entries that groups have not read or not acknowledged; none without groups.
fn left_to_take(groups: &str) -> Option<u64> {
    let lines: Vec<&str> = groups.lines().map(str::trim).collect();
    let numbers = lines.windows(2).filter(|pair| matches!(pair[0], "lag" | "pending"));
    let counts: Option<Vec<u64>> = numbers.map(|pair| pair[1].parse().ok()).collect();
    counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_summed_over_groups() {
        let groups = "name\nledger\nconsumers\n1\npending\n3\nlag\n4\nname\nmirror\npending\n0\nlag\n5\n";
        assert_eq!(left_to_take(groups), Some(12));
        assert_eq!(left_to_take(""), None);
        assert_eq!(left_to_take("lag\n\npending\n0\n"), None);
    }
}
