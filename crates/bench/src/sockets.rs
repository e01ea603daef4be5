//! Announces per second: the tracker against a fixed-response server, over HTTP and UDP.
//!
//! The order: start the tracker, let every peer announce once, measure the mean reply size, start a fixed-response
//! server with replies of that size, then alternate rounds. Both receive the same sequence of announces from the same
//! client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use simulate::load::{
    HttpClient, HttpRequests, HttpShape, LoadClient, LoadResult, Peers, Schedule, UdpClient, UdpPackets,
    UdpShape, Until, WARNING_SAMPLE,
};

use crate::measure::{Comparison, Round, RoundWatch, is_saturated, median};
use crate::process::{ServerProcess, free_address};
use crate::progress::Stage;
use crate::run::{Figure, Run, new_folder};
use crate::server::{Server, ServerPlan, fill_database};

/// How long replies are sampled for their mean size.
const CALIBRATION: Duration = Duration::from_secs(1);
/// Reply size where a fixed-response server replaces the tracker.
const STAND_IN_REPLY_BYTES: usize = 256;
/// What fits into a receive buffer of the default size.
const UDP_BATCHES_IN_FLIGHT: usize = 4;
/// Seeds the order of announces.
const SEED: u64 = 20;

pub fn http(run: &mut Run<'_>) -> anyhow::Result<()> {
    measure(run, "HTTP")
}

pub fn udp(run: &mut Run<'_>) -> anyhow::Result<()> {
    measure(run, "UDP")
}

/// A server with its client.
struct Side {
    process: ServerProcess,
    client: Box<dyn LoadClient>,
    schedule: Schedule,
}

/// Every peer's announce, rendered for one protocol.
enum Rendered {
    Http(Arc<HttpRequests>),
    Udp(Arc<UdpPackets>),
}

fn measure(run: &mut Run<'_>, protocol: &str) -> anyhow::Result<()> {
    let folder = new_folder()?;
    let peers = Peers::new(run.sizes.socket_shape);
    let (process, address) = match run.binary() {
        None => start_baseline(run, folder.path(), protocol, STAND_IN_REPLY_BYTES)?,
        Some(binary) => {
            let stage = Stage::begin(format!("{protocol}: starting the tracker"), 1);
            fill_database(&peers, folder.path())?;
            let (data, settings) = (folder.path(), String::new());
            let plan = ServerPlan { binary, data, cores: run.cores, roles: None, settings };
            let server = Server::start_without_limits(&plan)?;
            stage.end(&format!("on {} and core {}", server.tracker, run.cores.server));
            (server.process, server.tracker)
        }
    };
    let rendered = match protocol {
        // Both servers receive the same bytes, the host included.
        "HTTP" => Rendered::Http(Arc::new(HttpRequests::new(&peers, &address.to_string()))),
        _ => Rendered::Udp(Arc::new(UdpPackets::new(&peers))),
    };
    let schedule = Schedule::new(peers.count(), SEED);
    let mut ours = Side { process, client: rendered.client(run, address)?, schedule };
    let seen = ours.warm_up(protocol)?;
    let reply_bytes = seen.reply_bytes_mean().round() as usize;
    let (process, address) = start_baseline(run, folder.path(), protocol, reply_bytes)?;
    let schedule = ours.schedule.clone();
    let mut baseline = Side { process, client: rendered.client(run, address)?, schedule };
    let comparison = alternate(run, protocol, &mut ours, &mut baseline)?;
    add_rows(run, protocol, &comparison, &seen);
    Ok(())
}

impl Rendered {
    fn client(&self, run: &Run<'_>, server: SocketAddr) -> anyhow::Result<Box<dyn LoadClient>> {
        let (connections, pipeline) = (run.options.connections, run.options.pipeline);
        let waiting = run.waiting();
        Ok(match self {
            Rendered::Http(requests) => {
                let shape = HttpShape { connections, pipeline, waiting };
                Box::new(HttpClient::connect(server, Arc::clone(requests), shape)?)
            }
            Rendered::Udp(packets) => {
                let shape = UdpShape { batches_in_flight: UDP_BATCHES_IN_FLIGHT, waiting };
                Box::new(UdpClient::bind(server, Arc::clone(packets), shape)?)
            }
        })
    }
}

fn start_baseline(
    run: &Run<'_>,
    folder: &Path,
    protocol: &str,
    reply_bytes: usize,
) -> anyhow::Result<(ServerProcess, SocketAddr)> {
    let address = free_address()?;
    let command = format!("baseline-{}", protocol.to_lowercase());
    let args = [&command, "--reply-bytes", &reply_bytes.to_string(), "--listen", &address.to_string()]
        .map(str::to_owned);
    let log = folder.join("baseline.log");
    let mut process = ServerProcess::start(run.cores.server, &run.options.this_program, &args, &log)?;
    match protocol {
        "HTTP" => process.wait_for_tcp(address)?,
        _ => process.wait_for_udp(address)?,
    }
    Ok((process, address))
}

fn alternate(
    run: &Run<'_>,
    protocol: &str,
    ours: &mut Side,
    baseline: &mut Side,
) -> anyhow::Result<Comparison> {
    let (rounds, length) = (run.sizes.rounds, run.sizes.round);
    let steps = u64::from(rounds) * 2 * length.as_millis() as u64;
    let mut stage = Stage::begin(format!("{protocol}: {rounds} rounds in turn"), steps);
    let mut comparison = Comparison::default();
    // Warm-up of the fixed-response server, as the tracker had.
    baseline.round(length / 4, &mut stage)?;
    for _ in 0..rounds {
        comparison.add(ours.round(length, &mut stage)?, baseline.round(length, &mut stage)?);
    }
    stage.end(&comparison.summary());
    Ok(comparison)
}

impl Side {
    /// Every peer announces once; then replies are sampled.
    fn warm_up(&mut self, protocol: &str) -> anyhow::Result<LoadResult> {
        let announces = self.schedule.announces_until_all_started();
        let mut stage = Stage::begin(format!("{protocol}: every peer announces once"), announces);
        self.announce(Until::Announces(announces), &mut |done| stage.at(done))?;
        let seen = self.announce(Until::Elapsed(CALIBRATION), &mut |_| {})?;
        stage.end(&format!("{announces} peers; replies of {:.0} bytes on average", seen.reply_bytes_mean()));
        Ok(seen)
    }

    fn round(&mut self, length: Duration, stage: &mut Stage) -> anyhow::Result<Round> {
        let watch = RoundWatch::start(Some(self.process.pid()))?;
        let seen = self.announce(Until::Elapsed(length), &mut |_| {
            stage.at(stage.elapsed().as_millis() as u64);
        })?;
        Ok(Round { lost: seen.lost, ..watch.stop_after(seen.replies, seen.elapsed)? })
    }

    fn announce(&mut self, until: Until, tick: &mut dyn FnMut(u64)) -> anyhow::Result<LoadResult> {
        accepted(self.client.run(&mut self.schedule, until, tick)?)
    }
}

/// A refused announce costs less than an accepted one: a run with refusals is invalid.
pub fn accepted(seen: LoadResult) -> anyhow::Result<LoadResult> {
    match &seen.first_failure {
        None => Ok(seen),
        Some(reason) => {
            bail!("{} of {} announces were refused, for example: {reason}", seen.failures, seen.replies)
        }
    }
}

/// Throughput, and processor time of the server.
fn add_rows(run: &mut Run<'_>, protocol: &str, comparison: &Comparison, seen: &LoadResult) {
    let rate = comparison.rates();
    let [ours, limit] = comparison.busy();
    let rate = if run.cores.are_one() {
        rate.not_judged().noting("one core for server and load: judge by the server's time")
    } else if is_saturated(ours) && is_saturated(limit) {
        rate
    } else {
        let note = format!(
            "{protocol}: the server's core was not saturated (tracker {:.0} %, fixed-response server {:.0} % busy), so \
             the load generator was the bottleneck: judge by the server's time",
            ours * 100.0,
            limit * 100.0
        );
        // A limit that the load generator lowered only improves the ratio: a miss stays a miss.
        if is_saturated(ours) { rate.judged_if_missed().noting(note) } else { rate.not_judged().noting(note) }
    };
    run.detail(protocol, comparison);
    run.add(&format!("{protocol} announces per second"), rate);
    let time = |rounds: &[Round], figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
    let user_ns = |rounds: &[Round]| time(rounds, |round| round.server_user_ns);
    let mut note = format!(
        "{protocol}: ratio = the limit's time / the tracker's; replies of {:.0} bytes on average; in user space {:.0} ns \
         of the tracker's and {:.0} ns of the limit's, the rest is the kernel's",
        seen.reply_bytes_mean(),
        user_ns(&comparison.ours),
        user_ns(&comparison.limit)
    );
    let warned = seen.warnings_sampled as f64 / seen.replies.div_ceil(WARNING_SAMPLE).max(1) as f64;
    if warned > 0.0 {
        note.push_str(&format!("; {:.1} % of the replies carried a warning", warned * 100.0));
    }
    let lost: u64 = comparison.ours.iter().map(|round| round.lost).sum();
    if lost > 0 {
        note.push_str(&format!("; {lost} datagrams were lost"));
    }
    let limit = time(&comparison.limit, |round| round.server_ns);
    let cost = Figure::of(time(&comparison.ours, |round| round.server_ns))
        .against(limit, comparison.ratio(|round| 1.0 / round.server_ns.max(1e-9)));
    run.add(&format!("{protocol} server time per announce"), cost.noting(note));
}
