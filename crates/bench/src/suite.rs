//! Runs all measurements in order, and builds the rows of the report.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::error::BenchError;
use crate::gateway_cost::{self, GatewayCost};
use crate::instructions::{self, InstructionCount};
use crate::journal_and_views::{self, Sizes};
use crate::load::Waiting;
use crate::load::http::HttpShape;
use crate::load::udp::UdpShape;
use crate::nodes::{self, NodesCost};
use crate::population::{Population, Shape};
use crate::presence_redis::{self, PresenceRedis};
use crate::process::Cores;
use crate::progress::Stage;
use crate::report::{Budget, Machine, Report, Row};
use crate::rounds::{Round, median};
use crate::socket_rate::{SocketBench, SocketPlan, SocketResult, Subject, Wire};
use crate::swarm_cost::{self, CostPlan, SwarmCost};

/// Ratio to a fixed-response epoll server.
const HTTP_BUDGET: Budget = Budget::RatioAtLeast(0.80);
/// Ratio to a batched echo server with replies of equal size.
const UDP_BUDGET: Budget = Budget::RatioAtLeast(0.75);
/// Bytes per peer, all in.
const MEMORY_BUDGET: Budget = Budget::FigureAtMost(96.0);
/// Cost of an announce among many peers, relative to ten thousand.
const FLAT: Budget = Budget::RatioAtMost(1.5);
/// What fits into a receive buffer of the default size.
const UDP_BATCHES_IN_FLIGHT: usize = 4;

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The tracker, or a stand-in.
    pub subject: Subject,
    /// Short run, as a smoke test.
    pub quick: bool,
    /// Whether to measure swarms of ten million peers too.
    pub peers_10m: bool,
    /// How long a round over a socket lasts.
    pub round: Duration,
    pub rounds: u32,
    pub connections: usize,
    /// HTTP requests in flight on each connection.
    pub pipeline: usize,
    /// Runs only measurements whose name contains this.
    pub only: Option<String>,
    /// File with instruction counts.
    pub instructions: Option<PathBuf>,
}

impl BenchPlan {
    fn selects(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}

/// Runs the measurements that the plan selects.
pub fn run(plan: &BenchPlan) -> Result<Report, BenchError> {
    let counts = plan.instructions.as_deref().map(instructions::read).transpose()?.unwrap_or_default();
    // Read before pinning, which leaves this process one core.
    let machine = Machine::this();
    let cores = Cores::of_this_machine()?;
    cores.pin_load()?;
    let sockets = measure_sockets(plan, cores)?;
    let costs = if plan.selects("swarm") { measure_swarms(plan)? } else { Vec::new() };
    let sizes = if plan.quick { Sizes::QUICK } else { Sizes::FULL };
    let journal_and_views = journal_and_views::measure(&sizes, cores, |name| plan.selects(name))?;
    let nodes = measure_nodes(plan, cores)?;
    let gateway = measure_gateway(plan, cores)?;
    let presence_redis = measure_presence_redis(plan, cores)?;
    let mut rows = Vec::new();
    for result in &sockets {
        rows.extend(socket_rows(result, cores));
    }
    rows.extend(journal_and_views.rows().iter().cloned());
    rows.extend(nodes.rows().iter().cloned());
    rows.extend(gateway.rows());
    rows.extend(presence_redis.iter().flat_map(PresenceRedis::rows));
    rows.extend(swarm_rows(&costs));
    rows.extend(counts.iter().map(instruction_row));
    let details = json!({
        "sockets": sockets, "one_log": journal_and_views, "nodes": nodes, "gateway": gateway,
        "presence_redis": presence_redis, "swarms": costs, "instructions": counts
    });
    Ok(Report { machine, rows, details })
}

fn measure_sockets(plan: &BenchPlan, cores: Cores) -> Result<Vec<SocketResult>, BenchError> {
    let waiting = if cores.server == cores.load { Waiting::Sleep } else { Waiting::Spin };
    let socket_plan = SocketPlan {
        subject: plan.subject.clone(),
        cores,
        rounds: plan.rounds,
        round: plan.round,
        http: HttpShape { connections: plan.connections, pipeline: plan.pipeline, waiting },
        udp: UdpShape { batches_in_flight: UDP_BATCHES_IN_FLIGHT, waiting },
    };
    let wires = [(Wire::Http, "http"), (Wire::Udp, "udp")];
    let wanted: Vec<Wire> =
        wires.into_iter().filter(|(_, name)| plan.selects(name)).map(|(wire, _)| wire).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut bench = SocketBench::new(socket_plan)?;
    wanted.into_iter().map(|wire| bench.measure(wire)).collect()
}

fn measure_nodes(plan: &BenchPlan, cores: Cores) -> Result<NodesCost, BenchError> {
    let sizes = if plan.quick { nodes::Sizes::QUICK } else { nodes::Sizes::FULL };
    nodes::measure(&sizes, cores, plan.subject.binary(), |name| plan.selects(name))
}

fn measure_gateway(plan: &BenchPlan, cores: Cores) -> Result<GatewayCost, BenchError> {
    let sizes = if plan.quick { gateway_cost::Sizes::QUICK } else { gateway_cost::Sizes::FULL };
    let this_program = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
    gateway_cost::measure(plan.subject.binary(), &this_program, &sizes, cores, |name| plan.selects(name))
}

/// Needs gateways that share a Redis, which a stand-in does not.
fn measure_presence_redis(plan: &BenchPlan, cores: Cores) -> Result<Option<PresenceRedis>, BenchError> {
    let Some(binary) = plan.subject.binary().filter(|_| plan.selects("presence-redis")) else {
        return Ok(None);
    };
    let sizes = if plan.quick { presence_redis::Sizes::QUICK } else { presence_redis::Sizes::FULL };
    presence_redis::measure(binary, &sizes, cores).map(Some)
}

/// Ten thousand peers, then copies of them.
fn measure_swarms(plan: &BenchPlan) -> Result<Vec<SwarmCost>, BenchError> {
    let tens = Shape { torrents: 1_000, peers: 10_000 };
    let hundreds = Shape { torrents: 100, peers: 10_000 };
    let mut populations = vec![(tens, 1), (tens, 100), (hundreds, 1), (hundreds, 100)];
    if plan.peers_10m {
        populations.push((tens, 1_000));
    }
    let cost_plan = if plan.quick {
        CostPlan { rounds: 3, announces_per_round: 200_000 }
    } else {
        CostPlan { rounds: 7, announces_per_round: 1_000_000 }
    };
    populations.into_iter().map(|(shape, times)| measure_swarm(shape, times, cost_plan)).collect()
}

fn measure_swarm(shape: Shape, times: u32, plan: CostPlan) -> Result<SwarmCost, BenchError> {
    let population = Population::repeated(shape, times);
    let (peers, torrents) = (population.peers(), population.torrents());
    let steps = u64::from(peers) + u64::from(plan.rounds) * u64::from(plan.announces_per_round);
    let mut stage = Stage::begin(format!("swarms: {peers} peers, {torrents} torrents"), steps);
    let cost = swarm_cost::measure(population, plan, |done| stage.at(done))?;
    stage.end(&format!(
        "{:.1} bytes per peer, {:.0} ns per announce",
        cost.bytes_per_peer,
        cost.announce_ns()
    ));
    Ok(cost)
}

/// Two rows for each protocol: throughput, and processor time of the server.
fn socket_rows(result: &SocketResult, cores: Cores) -> [Row; 2] {
    let comparison = &result.comparison;
    let middle = |rounds: &[Round], figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
    let rate = |round: &Round| round.announces_per_s;
    let cpu = |round: &Round| round.server_cpu_ns;
    let name = result.wire.name();
    let budget = match result.wire {
        Wire::Http => HTTP_BUDGET,
        Wire::Udp => UDP_BUDGET,
    };
    let throughput =
        Row::plain(format!("{name} announces per second"), middle(&comparison.tracker, rate), "/s")
            .against(middle(&comparison.baseline, rate), comparison.throughput_ratio())
            .judged_by(budget);
    // A fixed-response server that was limited by the client only improves the ratio: a miss stays a miss.
    let is_surely_missed = throughput.is_missed() && comparison.tracker_is_saturated();
    let throughput = match idle_note(result, cores) {
        Some(note) if is_surely_missed => throughput.noting(note),
        Some(note) => throughput.not_judged().noting(note),
        None => throughput,
    };
    let cost = Row::plain(format!("{name} server time per announce"), middle(&comparison.tracker, cpu), "ns")
        .against(middle(&comparison.baseline, cpu), comparison.cpu_ratio())
        .judged_by(budget);
    [throughput, cost.noting(size_note(result))]
}

/// A note for throughputs that were limited by the client.
fn idle_note(result: &SocketResult, cores: Cores) -> Option<String> {
    let comparison = &result.comparison;
    if cores.server == cores.load {
        return Some(
            "one core for server and load: throughput is meaningless, see the server's time".to_owned(),
        );
    }
    (!comparison.saturated()).then(|| {
        format!(
            "{}: the server's core was not saturated (tracker {:.0} %, do-nothing server {:.0} % busy), so the load \
             generator was the bottleneck: judge by the server's time",
            result.wire.name(),
            comparison.tracker_busy() * 100.0,
            comparison.baseline_busy() * 100.0
        )
    })
}

fn size_note(result: &SocketResult) -> String {
    let lost: u64 = result.comparison.tracker.iter().map(|round| round.lost).sum();
    let mut note = format!(
        "{}: ratio = the do-nothing server's time / the tracker's; replies of {} bytes on average",
        result.wire.name(),
        result.reply_bytes
    );
    let user_ns = |rounds: &[Round]| median(rounds.iter().map(|round| round.server_user_ns));
    note.push_str(&format!(
        "; in user space {:.0} ns of the tracker's and {:.0} ns of the do-nothing server's, the rest is the kernel's",
        user_ns(&result.comparison.tracker),
        user_ns(&result.comparison.baseline)
    ));
    if result.warned > 0.0 {
        note.push_str(&format!("; {:.1} % of the replies carried a warning", result.warned * 100.0));
    }
    if lost > 0 {
        note.push_str(&format!("; {lost} datagrams were lost"));
    }
    note
}

fn swarm_rows(costs: &[SwarmCost]) -> Vec<Row> {
    let mut rows: Vec<Row> = costs
        .iter()
        .filter(|cost| cost.peers >= 1_000_000)
        .map(|cost| {
            Row::plain(format!("memory per peer, {}", cost.name()), cost.bytes_per_peer, "bytes")
                .judged_by(MEMORY_BUDGET)
        })
        .collect();
    for cost in costs {
        let row = Row::plain(format!("announce in process, {}", cost.name()), cost.announce_ns(), "ns");
        // Larger swarms return more peers: only equal swarm sizes are comparable.
        let base = costs.iter().find(|base| base.peers_per_torrent() == cost.peers_per_torrent());
        rows.push(match base {
            Some(base) if base.peers < cost.peers => growth_row(row, cost, base.announce_ns()),
            _ => row,
        });
    }
    rows
}

/// The cost of an announce relative to the smallest population, with the memory latency as explanation.
fn growth_row(row: Row, cost: &SwarmCost, base_ns: f64) -> Row {
    let growth_ns = cost.announce_ns() - base_ns;
    row.against(base_ns, cost.announce_ns() / base_ns).judged_by(FLAT).noting(format!(
        "{}: limit = the cost among the fewest peers; {growth_ns:+.0} ns is the time of {:.1} random reads of memory of \
         the swarms' size, {:.0} ns each",
        cost.name(),
        growth_ns / cost.memory_latency_ns,
        cost.memory_latency_ns
    ))
}

fn instruction_row(count: &InstructionCount) -> Row {
    Row::plain(format!("instructions, {}", count.name), count.instructions as f64, "")
}

impl SwarmCost {
    /// Peers, and peers per torrent.
    fn name(&self) -> String {
        let peers = match self.peers {
            many if many >= 1_000_000 => format!("{} million", many / 1_000_000),
            few => format!("{} thousand", few / 1_000),
        };
        format!("{peers} peers, {} a torrent", self.peers_per_torrent())
    }

    fn peers_per_torrent(&self) -> u32 {
        self.peers / self.torrents.max(1)
    }
}
