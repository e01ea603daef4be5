//! Announces over HTTP with journal and Redis mirror, against the same without the mirror.
//!
//! Two trackers, each with its own Redis, all on the server's core. A round ends when every view has processed its
//! entries, so that all processor time of an announce is counted in its round.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use domain::clock::Stopwatch;
use keyspace::BaseNames;
use serde::Serialize;
use tempfile::TempDir;
use testkit::RedisServer;

use crate::error::BenchError;
use crate::load::http::{HttpClient, HttpShape};
use crate::load::http_requests::HttpRequests;
use crate::load::{Until, Waiting};
use crate::population::Population;
use crate::process::{Cores, CpuTime, free_address};
use crate::progress::Stage;
use crate::report::Row;
use crate::rounds::median;
use crate::schedule::Schedule;
use crate::server::{self, TrackerServer};

/// Seeds the order of announces.
const SEED: u64 = 23;
const CONNECTIONS: usize = 64;
/// Timeout of the views after a round.
const CATCH_UP_S_MAX: u64 = 120;
/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One round of one side.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MirroredRound {
    /// Announces answered per second, while the views run.
    pub announces_per_s: f64,
    /// The tracker's processor time per announce, views included.
    pub tracker_ns: f64,
    /// Redis' processor time per announce.
    pub redis_ns: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Mirrored {
    /// With the mirror.
    pub with: Vec<MirroredRound>,
    /// Without it; same positions.
    pub without: Vec<MirroredRound>,
}

/// A tracker, its Redis and its client.
struct Side {
    redis: RedisServer,
    tracker: TrackerServer,
    shape: HttpShape,
    schedule: Schedule,
    _folder: TempDir,
}

/// Measures rounds of so many announces.
pub(super) fn measure(
    binary: &Path,
    population: &Population,
    cores: Cores,
    rounds: u32,
    announces: u64,
) -> Result<Mirrored, BenchError> {
    if !binary.is_file() {
        return Err(BenchError::NoServer(binary.to_owned()));
    }
    let mut stage = Stage::begin("announces, with and without the mirror", u64::from(rounds) + 1);
    let mut with = Side::start(binary, population, cores, true)?;
    let mut without = Side::start(binary, population, cores, false)?;
    let requests = HttpRequests::new(population, &with.address().to_string());
    for side in [&mut with, &mut without] {
        let change_all = side.schedule.announces_until_all_started();
        side.round(&requests, change_all)?;
    }
    let mut found = Mirrored::default();
    for round in 0..rounds {
        stage.at(u64::from(round) + 1);
        found.with.push(with.round(&requests, announces)?);
        found.without.push(without.round(&requests, announces)?);
    }
    stage.end(&format!("{:.0} and {:.0} announces/s", rate_of(&found.with), rate_of(&found.without)));
    Ok(found)
}

impl Side {
    fn start(
        binary: &Path,
        population: &Population,
        cores: Cores,
        is_mirrored: bool,
    ) -> Result<Side, BenchError> {
        let redis = cores.on_server(RedisServer::start)?;
        let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
        server::fill_database(population, folder.path())?;
        let site = free_address()?;
        let more = format!(
            "[redis]\nurl = \"{}\"\n\n[mirror]\nenabled = {is_mirrored}\n\n[site]\naddr = \"{site}\"\n",
            redis.url()
        );
        let tracker = server::start_with(binary, folder.path(), cores, &more)?;
        let waiting = if cores.server == cores.load { Waiting::Sleep } else { Waiting::Spin };
        let shape = HttpShape { connections: CONNECTIONS, pipeline: 1, waiting };
        let schedule = Schedule::new(population.peers(), SEED);
        Ok(Side { redis, tracker, shape, schedule, _folder: folder })
    }

    fn address(&self) -> SocketAddr {
        self.tracker.address
    }

    fn round(&mut self, requests: &HttpRequests, announces: u64) -> Result<MirroredRound, BenchError> {
        let before = (self.tracker.process.cpu_time()?, CpuTime::of(self.redis.pid())?);
        // New connections: the tracker closes idle ones during the other side's round.
        let mut client = HttpClient::connect(self.address(), self.shape)?;
        let tally = client.run(requests, &mut self.schedule, Until::Announces(announces), |_| {})?;
        if tally.failures > 0 {
            return Err(BenchError::Refused {
                failures: tally.failures,
                replies: tally.replies,
                example: tally.first_failure.unwrap_or_default(),
            });
        }
        self.wait_for_views()?;
        let (tracker, redis) = (self.tracker.process.cpu_time()?, CpuTime::of(self.redis.pid())?);
        let each = |used: Duration| used.as_nanos() as f64 / tally.replies.max(1) as f64;
        Ok(MirroredRound {
            announces_per_s: tally.rate(),
            tracker_ns: each(tracker.since(before.0).used()),
            redis_ns: each(redis.since(before.1).used()),
        })
    }

    /// Until no entry is left in two consecutive polls: at the first one the last entries may not have reached Redis
    /// yet.
    fn wait_for_views(&self) -> Result<(), BenchError> {
        let watch = Stopwatch::start();
        let stream = BaseNames::default().stream;
        let mut was_done = false;
        loop {
            std::thread::sleep(LOOK_EVERY);
            let left = left_to_take(&self.redis.cli(&["XINFO", "GROUPS", &stream]));
            let is_done = left == Some(0);
            if is_done && was_done {
                return Ok(());
            }
            was_done = is_done;
            if watch.elapsed() > Duration::from_secs(CATCH_UP_S_MAX) {
                let in_flight = left.unwrap_or(0) as usize;
                return Err(BenchError::Timeout { waited_s: CATCH_UP_S_MAX, in_flight });
            }
        }
    }
}

/// Entries that groups have not read or not acknowledged; none without groups.
fn left_to_take(groups: &str) -> Option<u64> {
    let lines: Vec<&str> = groups.lines().map(str::trim).collect();
    let numbers = lines.windows(2).filter(|pair| matches!(pair[0], "lag" | "pending"));
    let counts: Option<Vec<u64>> = numbers.map(|pair| pair[1].parse().ok()).collect();
    counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
}

fn rate_of(rounds: &[MirroredRound]) -> f64 {
    median(rounds.iter().map(|round| round.announces_per_s))
}

impl Mirrored {
    /// The lines of the table.
    pub(super) fn rows(&self) -> [Row; 3] {
        let middle =
            |rounds: &[MirroredRound], figure: fn(&MirroredRound) -> f64| median(rounds.iter().map(figure));
        let row = |what: &str, unit: &'static str, figure: fn(&MirroredRound) -> f64| {
            let ratio = median(self.with.iter().zip(&self.without).map(|(with, without)| {
                // Avoids a division by zero.
                figure(with) / figure(without).max(f64::MIN_POSITIVE)
            }));
            Row::plain(what, middle(&self.with, figure), unit).against(middle(&self.without, figure), ratio)
        };
        [
            row("announces with journal and mirror in Redis", "/s", |round| round.announces_per_s).noting(
                "limit = the same with mirror.enabled = false; over HTTP, tracker, views and Redis on one core",
            ),
            row("the tracker's time for it", "ns", |round| round.tracker_ns)
                .noting("until every view has the entry; views included, since they are in the same process"),
            row("time of Redis for it", "ns", |round| round.redis_ns),
        ]
    }
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
