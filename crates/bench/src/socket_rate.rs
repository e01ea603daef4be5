//! Announces per second: the tracker against a fixed-response server, over HTTP and UDP.
//!
//! The order: start the tracker, let every peer announce once, measure the mean reply size, start a fixed-response
//! server with replies of that size, then alternate rounds. Both receive the same sequence of announces from the same
//! client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use crate::error::BenchError;
use crate::load::http::{HttpClient, HttpShape};
use crate::load::http_requests::HttpRequests;
use crate::load::udp::{UdpClient, UdpShape};
use crate::load::udp_packets::UdpPackets;
use crate::load::{LoadResult, Until, WARNING_SAMPLE};
use crate::population::{Population, Shape};
use crate::process::{Cores, ServerProcess, free_address};
use crate::progress::Stage;
use crate::rounds::{Comparison, Round};
use crate::schedule::Schedule;
use crate::server;

/// A site of medium size.
pub const SHAPE: Shape = Shape { torrents: 10_000, peers: 100_000 };
/// How long replies are sampled for their mean size.
const CALIBRATION: Duration = Duration::from_secs(1);
/// Reply size where a fixed-response server replaces the tracker.
const STAND_IN_REPLY_BYTES: usize = 256;
/// Seeds the order of announces.
const SEED: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    Http,
    Udp,
}

impl Wire {
    pub fn name(self) -> &'static str {
        match self {
            Wire::Http => "HTTP",
            Wire::Udp => "UDP",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Subject {
    Tracker(PathBuf),
    /// A second fixed-response server: the ratio should be one; the difference is the measuring error.
    StandIn,
}

impl Subject {
    /// The tracker's binary, if there is one.
    pub fn binary(&self) -> Option<&Path> {
        match self {
            Subject::Tracker(binary) => Some(binary),
            Subject::StandIn => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct SocketPlan {
    pub subject: Subject,
    pub cores: Cores,
    pub rounds: u32,
    pub round: Duration,
    /// HTTP connections and requests in flight.
    pub http: HttpShape,
    pub udp: UdpShape,
}

#[derive(Clone, Debug, Serialize)]
pub struct SocketResult {
    pub wire: Wire,
    /// Reply size of the fixed-response server: the mean of the tracker's.
    pub reply_bytes: usize,
    /// Share of the tracker's replies with a warning, and so without peers (HTTP only).
    pub warned: f64,
    pub comparison: Comparison,
}

/// Shared by both protocols: peers, requests, and a folder for databases and logs.
pub struct SocketBench {
    plan: SocketPlan,
    population: Population,
    folder: TempDir,
    database_is_filled: bool,
}

/// A server with its client.
struct Side<'a> {
    process: ServerProcess,
    client: Box<dyn Client + 'a>,
    schedule: Schedule,
}

/// Either client, with its requests.
trait Client {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        until: Until,
        tick: &mut dyn FnMut(u64),
    ) -> Result<LoadResult, BenchError>;
}

impl Client for (HttpClient, &HttpRequests) {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        until: Until,
        tick: &mut dyn FnMut(u64),
    ) -> Result<LoadResult, BenchError> {
        self.0.run(self.1, schedule, until, tick)
    }
}

impl Client for (UdpClient, &UdpPackets) {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        until: Until,
        tick: &mut dyn FnMut(u64),
    ) -> Result<LoadResult, BenchError> {
        self.0.run(self.1, schedule, until, tick)
    }
}

/// Every peer's announce, rendered for one protocol.
enum Rendered {
    Http(HttpRequests),
    Udp(UdpPackets),
}

impl Rendered {
    fn client(&self, server: SocketAddr, plan: &SocketPlan) -> Result<Box<dyn Client + '_>, BenchError> {
        Ok(match self {
            Rendered::Http(requests) => Box::new((HttpClient::connect(server, plan.http)?, requests)),
            Rendered::Udp(packets) => Box::new((UdpClient::bind(server, plan.udp)?, packets)),
        })
    }
}

impl SocketBench {
    /// Prepares what both protocols need.
    pub fn new(plan: SocketPlan) -> Result<Self, BenchError> {
        if let Subject::Tracker(binary) = &plan.subject
            && !binary.is_file()
        {
            return Err(BenchError::NoServer(binary.clone()));
        }
        let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
        Ok(SocketBench { plan, population: Population::new(SHAPE), folder, database_is_filled: false })
    }

    pub fn measure(&mut self, wire: Wire) -> Result<SocketResult, BenchError> {
        let (process, address) = self.start_subject(wire)?;
        let rendered = match wire {
            // Both servers receive the same bytes, the host included.
            Wire::Http => Rendered::Http(HttpRequests::new(&self.population, &address.to_string())),
            Wire::Udp => Rendered::Udp(UdpPackets::new(&self.population)),
        };
        let mut subject = Side {
            process,
            client: rendered.client(address, &self.plan)?,
            schedule: Schedule::new(self.population.peers(), SEED),
        };
        let seen = warm_up(wire, &mut subject)?;
        let reply_bytes = seen.reply_bytes_mean().round() as usize;
        let (process, address) = self.start_baseline(wire, reply_bytes, "floor")?;
        let mut baseline = Side {
            process,
            client: rendered.client(address, &self.plan)?,
            schedule: subject.schedule.clone(),
        };
        let comparison = self.alternate(wire, &mut subject, &mut baseline)?;
        let looked_at = seen.replies.div_ceil(WARNING_SAMPLE).max(1);
        let warned = seen.warnings_sampled as f64 / looked_at as f64;
        Ok(SocketResult { wire, reply_bytes, warned, comparison })
    }

    fn start_subject(&mut self, wire: Wire) -> Result<(ServerProcess, SocketAddr), BenchError> {
        match self.plan.subject.clone() {
            Subject::StandIn => self.start_baseline(wire, STAND_IN_REPLY_BYTES, "stand-in"),
            Subject::Tracker(binary) => {
                self.fill_database_once()?;
                let stage = Stage::begin(format!("{}: starting the tracker", wire.name()), 1);
                let server = server::start(&binary, self.folder.path(), self.plan.cores)?;
                stage.end(&format!("on {} and core {}", server.address, self.plan.cores.server));
                Ok((server.process, server.address))
            }
        }
    }

    fn fill_database_once(&mut self) -> Result<(), BenchError> {
        if self.database_is_filled {
            return Ok(());
        }
        let stage = Stage::begin("users and torrents into the database", 1);
        server::fill_database(&self.population, self.folder.path())?;
        self.database_is_filled = true;
        let (users, torrents) = (self.population.peers(), self.population.torrents());
        stage.end(&format!("{users} users, {torrents} torrents"));
        Ok(())
    }

    fn start_baseline(
        &self,
        wire: Wire,
        reply_bytes: usize,
        name: &str,
    ) -> Result<(ServerProcess, SocketAddr), BenchError> {
        let address = free_address()?;
        let command = match wire {
            Wire::Http => "baseline-http",
            Wire::Udp => "baseline-udp",
        };
        let args = [command, "--reply-bytes", &reply_bytes.to_string(), "--listen", &address.to_string()]
            .map(str::to_owned);
        let this_program: &Path = &std::env::current_exe().map_err(BenchError::io("finding this program"))?;
        let log = self.folder.path().join(format!("{name}.log"));
        let mut process = ServerProcess::start(self.plan.cores.server, this_program, &args, &log)?;
        match wire {
            Wire::Http => process.wait_for_tcp(address)?,
            Wire::Udp => process.wait_for_udp(address)?,
        }
        Ok((process, address))
    }

    fn alternate(
        &self,
        wire: Wire,
        subject: &mut Side<'_>,
        baseline: &mut Side<'_>,
    ) -> Result<Comparison, BenchError> {
        let length = self.plan.round;
        let steps = u64::from(self.plan.rounds) * 2 * length.as_millis() as u64;
        let mut stage = Stage::begin(format!("{}: {} rounds in turn", wire.name(), self.plan.rounds), steps);
        let mut comparison = Comparison::default();
        // Warm-up of the fixed-response server, as the tracker had.
        baseline.round(Until::Elapsed(length / 4), &mut stage)?;
        for _ in 0..self.plan.rounds {
            comparison.tracker.push(subject.round(Until::Elapsed(length), &mut stage)?);
            comparison.baseline.push(baseline.round(Until::Elapsed(length), &mut stage)?);
        }
        stage.end(&format!(
            "throughput {:.3}, processor time {:.3} of the do-nothing server",
            comparison.throughput_ratio(),
            comparison.cpu_ratio()
        ));
        Ok(comparison)
    }
}

/// Every peer announces once; then replies are sampled.
fn warm_up(wire: Wire, subject: &mut Side<'_>) -> Result<LoadResult, BenchError> {
    let announces = subject.schedule.announces_until_all_started();
    let mut stage = Stage::begin(format!("{}: every peer announces once", wire.name()), announces);
    let first = subject.client.run(&mut subject.schedule, Until::Announces(announces), &mut |done| {
        stage.at(done);
    })?;
    refuse_failures(&first)?;
    let seen = subject.client.run(&mut subject.schedule, Until::Elapsed(CALIBRATION), &mut |_| {})?;
    refuse_failures(&seen)?;
    stage.end(&format!("{announces} peers; replies of {:.0} bytes on average", seen.reply_bytes_mean()));
    Ok(seen)
}

impl Side<'_> {
    fn round(&mut self, until: Until, stage: &mut Stage) -> Result<Round, BenchError> {
        let before = self.process.cpu_time()?;
        let tally = self.client.run(&mut self.schedule, until, &mut |_| {
            stage.at(stage.elapsed().as_millis() as u64);
        })?;
        let cpu = self.process.cpu_time()?.since(before);
        refuse_failures(&tally)?;
        Ok(Round::new(&tally, cpu))
    }
}

/// A refused announce costs less than an accepted one: a run with refusals is invalid.
fn refuse_failures(tally: &LoadResult) -> Result<(), BenchError> {
    if tally.failures == 0 {
        return Ok(());
    }
    Err(BenchError::Refused {
        failures: tally.failures,
        replies: tally.replies,
        example: tally.first_failure.clone().unwrap_or_default(),
    })
}
