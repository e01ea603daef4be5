//! The two socket benchmarks: the tracker against a do-nothing server, over HTTP and over UDP.
//!
//! The order of things: start the tracker, let every peer announce once, look how long its replies are, start a
//! do-nothing server with replies of that length, then rounds in turn. Both are given the same sequence of announces
//! by the same client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use crate::error::LoadError;
use crate::load::http::{HttpClient, HttpShape};
use crate::load::http_requests::HttpRequests;
use crate::load::udp::{UdpClient, UdpShape};
use crate::load::udp_packets::UdpPackets;
use crate::load::{Tally, Until, WARNING_SAMPLE};
use crate::population::{Population, Shape};
use crate::process::{Cores, ServerProcess, free_address};
use crate::progress::Stage;
use crate::rounds::{Comparison, Round};
use crate::schedule::Schedule;
use crate::server;

/// Ten thousand torrents and a hundred thousand peers: a site of middling size.
pub const SHAPE: Shape = Shape { torrents: 10_000, peers: 100_000 };
/// How long replies are looked at to learn their mean size.
const CALIBRATION: Duration = Duration::from_secs(1);
/// The size of replies where a do-nothing server stands in for the tracker.
const STAND_IN_REPLY_BYTES: usize = 256;
/// Seeds the order of announces.
const SEED: u64 = 20;

/// Which wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Announces over HTTP, keep-alive.
    Http,
    /// Announces over UDP, batched.
    Udp,
}

impl Wire {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Http => "HTTP",
            Wire::Udp => "UDP",
        }
    }
}

/// What stands on the tracker's side.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The tracker's binary.
    Tracker(PathBuf),
    /// A second do-nothing server: the ratio should be one, and how far it is off is the error of measuring.
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

/// How to measure.
#[derive(Clone, Debug)]
pub struct SocketPlan {
    /// What to measure.
    pub subject: Subject,
    /// Which core does what.
    pub cores: Cores,
    /// Rounds against each server.
    pub rounds: u32,
    /// How long each lasts.
    pub round: Duration,
    /// HTTP connections and requests in flight.
    pub http: HttpShape,
    /// UDP announces in flight.
    pub udp: UdpShape,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct SocketResult {
    /// Over which wire.
    pub wire: Wire,
    /// The size of every reply of the do-nothing server: the mean of the tracker's.
    pub reply_bytes: usize,
    /// The share of the tracker's replies that carried a warning, and so no peers (HTTP only).
    pub warned: f64,
    /// The rounds.
    pub comparison: Comparison,
}

/// What both sides share: the peers, their requests, and a folder for databases and logs.
pub struct SocketBench {
    plan: SocketPlan,
    population: Population,
    folder: TempDir,
    database_is_filled: bool,
}

/// A server with a client that talks to it.
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
    ) -> Result<Tally, LoadError>;
}

impl Client for (HttpClient, &HttpRequests) {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        until: Until,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Tally, LoadError> {
        self.0.run(self.1, schedule, until, tick)
    }
}

impl Client for (UdpClient, &UdpPackets) {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        until: Until,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Tally, LoadError> {
        self.0.run(self.1, schedule, until, tick)
    }
}

/// Every peer's announce, rendered for one wire.
enum Rendered {
    Http(HttpRequests),
    Udp(UdpPackets),
}

impl Rendered {
    fn client(&self, server: SocketAddr, plan: &SocketPlan) -> Result<Box<dyn Client + '_>, LoadError> {
        Ok(match self {
            Rendered::Http(requests) => Box::new((HttpClient::connect(server, plan.http)?, requests)),
            Rendered::Udp(packets) => Box::new((UdpClient::bind(server, plan.udp)?, packets)),
        })
    }
}

impl SocketBench {
    /// Prepares what both wires need.
    pub fn new(plan: SocketPlan) -> Result<Self, LoadError> {
        if let Subject::Tracker(binary) = &plan.subject
            && !binary.is_file()
        {
            return Err(LoadError::NoServer(binary.clone()));
        }
        let folder = TempDir::with_prefix("loadgen-").map_err(LoadError::io("making a folder"))?;
        Ok(SocketBench { plan, population: Population::new(SHAPE), folder, database_is_filled: false })
    }

    /// Measures one wire.
    pub fn measure(&mut self, wire: Wire) -> Result<SocketResult, LoadError> {
        let (process, address) = self.start_subject(wire)?;
        let rendered = match wire {
            // Both servers are sent the same bytes, the host included.
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
        let (process, address) = self.start_floor(wire, reply_bytes, "floor")?;
        let mut floor = Side {
            process,
            client: rendered.client(address, &self.plan)?,
            schedule: subject.schedule.clone(),
        };
        let comparison = self.alternate(wire, &mut subject, &mut floor)?;
        let looked_at = seen.replies.div_ceil(WARNING_SAMPLE).max(1);
        let warned = seen.warnings_sampled as f64 / looked_at as f64;
        Ok(SocketResult { wire, reply_bytes, warned, comparison })
    }

    fn start_subject(&mut self, wire: Wire) -> Result<(ServerProcess, SocketAddr), LoadError> {
        match self.plan.subject.clone() {
            Subject::StandIn => self.start_floor(wire, STAND_IN_REPLY_BYTES, "stand-in"),
            Subject::Tracker(binary) => {
                self.fill_database_once()?;
                let stage = Stage::begin(format!("{}: starting the tracker", wire.name()), 1);
                let server = server::start(&binary, self.folder.path(), self.plan.cores)?;
                stage.end(&format!("on {} and core {}", server.address, self.plan.cores.server));
                Ok((server.process, server.address))
            }
        }
    }

    fn fill_database_once(&mut self) -> Result<(), LoadError> {
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

    fn start_floor(
        &self,
        wire: Wire,
        reply_bytes: usize,
        name: &str,
    ) -> Result<(ServerProcess, SocketAddr), LoadError> {
        let address = free_address()?;
        let command = match wire {
            Wire::Http => "floor-http",
            Wire::Udp => "floor-udp",
        };
        let args = [command, "--reply-bytes", &reply_bytes.to_string(), "--listen", &address.to_string()]
            .map(str::to_owned);
        let this_program: &Path = &std::env::current_exe().map_err(LoadError::io("finding this program"))?;
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
        floor: &mut Side<'_>,
    ) -> Result<Comparison, LoadError> {
        let length = self.plan.round;
        let steps = u64::from(self.plan.rounds) * 2 * length.as_millis() as u64;
        let mut stage = Stage::begin(format!("{}: {} rounds in turn", wire.name(), self.plan.rounds), steps);
        let mut comparison = Comparison::default();
        // Not measured: the do-nothing server's first round finds cold caches, as the tracker's warm-up did.
        floor.round(Until::Elapsed(length / 4), &mut stage)?;
        for _ in 0..self.plan.rounds {
            comparison.tracker.push(subject.round(Until::Elapsed(length), &mut stage)?);
            comparison.floor.push(floor.round(Until::Elapsed(length), &mut stage)?);
        }
        stage.end(&format!(
            "throughput {:.3}, processor time {:.3} of the do-nothing server",
            comparison.throughput_ratio(),
            comparison.cpu_ratio()
        ));
        Ok(comparison)
    }
}

/// Every peer announces once; then replies are looked at for a second.
fn warm_up(wire: Wire, subject: &mut Side<'_>) -> Result<Tally, LoadError> {
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
    fn round(&mut self, until: Until, stage: &mut Stage) -> Result<Round, LoadError> {
        let before = self.process.cpu_time()?;
        let tally = self.client.run(&mut self.schedule, until, &mut |_| {
            stage.at(stage.elapsed().as_millis() as u64);
        })?;
        let cpu = self.process.cpu_time()?.since(before);
        refuse_failures(&tally)?;
        Ok(Round::new(&tally, cpu))
    }
}

/// A refused announce costs the tracker less than an accepted one: a run with refusals measures nothing.
fn refuse_failures(tally: &Tally) -> Result<(), LoadError> {
    if tally.failures == 0 {
        return Ok(());
    }
    Err(LoadError::Refused {
        failures: tally.failures,
        replies: tally.replies,
        example: tally.first_failure.clone().unwrap_or_default(),
    })
}
