//! The gateway: memory per session, notification latency, cost of a heartbeat and of a delivery.
//!
//! All measurements use real sockets and the real binary, and are compared with a bare WebSocket server
//! ([`crate::baseline::websocket`]) in the same run. The limit of open files bounds the sessions (20,000 on many
//! machines), on both ends: DESIGN's hundred thousand need a machine with a higher limit.
//!
//! # Layout
//!
//! - [`testbed`]: a server with its clients
//! - [`memory`], [`close_latency`], [`heartbeats`], [`fan_out`]: one measurement each

pub mod close_latency;
pub mod fan_out;
pub mod heartbeats;
pub mod memory;
pub mod testbed;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::error::BenchError;
use crate::process::Cores;
use crate::report::{Budget, Row};
use crate::rounds::{Round, median};
use crate::websocket_clients::friends;
use close_latency::{CloseLatency, CloseLatencyPlan};
use fan_out::{FanOut, FanOutPlan};
use heartbeats::{HeartbeatPlan, Heartbeats};
use memory::{MemoryPlan, SessionMemory};
use testbed::{Side, Sides};

/// User-space bytes of an idle session.
const MEMORY_BUDGET: Budget = Budget::FigureAtMost(4096.0);
/// p99 of the notification latency in milliseconds.
const NOTIFY_BUDGET: Budget = Budget::FigureAtMost(100.0);
/// Connects with a snapshot: ratio to upgrades of a bare WebSocket server.
const CONNECT_BUDGET: Budget = Budget::RatioAtLeast(0.5);
/// Heartbeats: ratio to echoes of a bare WebSocket server.
const HEARTBEAT_BUDGET: Budget = Budget::RatioAtLeast(0.7);
/// Friends of each user, where friends are part of the measurement.
const FRIENDS: u32 = 10;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub memory: MemoryPlan,
    pub close_latency: CloseLatencyPlan,
    pub heartbeats: HeartbeatPlan,
    pub fan_out: FanOutPlan,
}

impl Sizes {
    /// Smoke test, about a minute.
    pub const QUICK: Sizes = Sizes {
        memory: MemoryPlan { sessions: 3_000, settle: Duration::from_secs(3) },
        close_latency: CloseLatencyPlan { sessions: 3_000, closes: 500, closes_per_s: 200 },
        heartbeats: HeartbeatPlan { sessions: 3_000, rounds: 3, round: Duration::from_secs(2) },
        fan_out: FanOutPlan { watchers: 1_000, rounds: 3, round: Duration::from_secs(1) },
    };
    /// Full measurement.
    pub const FULL: Sizes = Sizes {
        memory: MemoryPlan { sessions: 15_000, settle: Duration::from_secs(15) },
        close_latency: CloseLatencyPlan { sessions: 15_000, closes: 4_000, closes_per_s: 200 },
        heartbeats: HeartbeatPlan { sessions: 15_000, rounds: 5, round: Duration::from_secs(4) },
        fan_out: FanOutPlan { watchers: 5_000, rounds: 7, round: Duration::from_secs(3) },
    };
}

#[derive(Debug, Default, Serialize)]
pub struct GatewayCost {
    /// An idle session of a user without friends, with friends, and of the bare server.
    pub memory: Option<[SessionMemory; 3]>,
    /// Latency until a friend is notified.
    pub close_latency: Option<CloseLatency>,
    /// Cost of a heartbeat.
    pub heartbeats: Option<Heartbeats>,
    /// Cost of a delivery.
    pub fan_out: Option<FanOut>,
}

/// Measures what `selects` names: gateway-memory, gateway-close, gateway-heartbeats, gateway-fan-out.
///
/// `binary` is the gateway's; without one, a second bare server is measured in its place, and ratios should be one.
pub fn measure(
    binary: Option<&Path>,
    bare: &Path,
    sizes: &Sizes,
    cores: Cores,
    selects: impl Fn(&str) -> bool,
) -> Result<GatewayCost, BenchError> {
    let bare = Side::Bare(bare.to_owned());
    let sides = |presence: &str| {
        let gateway = binary.map_or_else(
            || bare.clone(),
            |binary| Side::Gateway { binary: binary.to_owned(), presence: presence.to_owned() },
        );
        Sides { gateway, bare: bare.clone() }
    };
    let mut found = GatewayCost::default();
    if selects("gateway-memory") {
        let Sides { gateway, bare } = sides("");
        let ring = friends::ring(sizes.memory.sessions, FRIENDS);
        found.memory = Some([
            memory::measure(&gateway, cores, sizes.memory, &[])?,
            memory::measure(&gateway, cores, sizes.memory, &ring)?,
            memory::measure(&bare, cores, sizes.memory, &[])?,
        ]);
    }
    if selects("gateway-close") {
        found.close_latency = Some(close_latency::measure(&sides(""), cores, sizes.close_latency)?);
    }
    if selects("gateway-heartbeats") {
        found.heartbeats = Some(heartbeats::measure(&sides("ping_s = 1"), cores, sizes.heartbeats)?);
    }
    if selects("gateway-fan-out") {
        found.fan_out = Some(fan_out::measure(&sides("batch_ms = 0"), cores, sizes.fan_out)?);
    }
    Ok(found)
}

impl GatewayCost {
    /// The lines of the table.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        rows.extend(self.memory.iter().flat_map(memory_rows));
        rows.extend(self.close_latency.iter().flat_map(close_latency_rows));
        rows.extend(self.heartbeats.iter().map(heartbeat_row));
        rows.extend(self.fan_out.iter().map(fan_out_row));
        rows
    }
}

fn memory_rows([alone, befriended, bare]: &[SessionMemory; 3]) -> [Row; 3] {
    let row = |what: String, memory: &SessionMemory| {
        let used = memory
            .allocated_per_session
            .map_or_else(String::new, |bytes| format!(", of which the program uses {bytes:.0}"));
        Row::plain(what, memory.bytes_per_session, "bytes")
            .against(bare.bytes_per_session, memory.bytes_per_session / bare.bytes_per_session.max(1.0))
            .judged_by(MEMORY_BUDGET)
            .noting(format!(
                "resident memory of the server that each of {} sessions adds{used}; limit = a connection of a bare \
                 tokio-tungstenite server with buffers of 1 KiB",
                memory.sessions
            ))
    };
    let per_core = |memory: &SessionMemory| 1e9 / memory.connect_cpu_ns.max(1.0);
    let connects = Row::plain("connects per second of a core", per_core(befriended), "/s")
        .against(per_core(bare), per_core(befriended) / per_core(bare))
        .judged_by(CONNECT_BUDGET)
        .noting(format!(
            "by the server's processor time, from the TCP handshake to the snapshot of {FRIENDS} friends; limit = upgrades \
             of the bare server"
        ));
    [
        row("memory per idle session".to_owned(), alone),
        row(format!("memory per idle session, {FRIENDS} friends here"), befriended),
        connects,
    ]
}

fn close_latency_rows(close_latency: &CloseLatency) -> [Row; 2] {
    let note = format!(
        "{} connections closed among {}, half of them without a goodbye; the longest took {:.1} ms; limit = the round trip of \
         a message over the bare server",
        close_latency.notified.count, close_latency.sessions, close_latency.notified.max_ms
    );
    let row = |what: &str, notified: f64, bare: f64| {
        Row::plain(format!("closed connection to friend notified, {what}"), notified, "ms")
            .against(bare, notified / bare.max(1e-6))
            .noting(note.clone())
    };
    [
        row("p50", close_latency.notified.p50_ms, close_latency.bare.p50_ms),
        row("p99", close_latency.notified.p99_ms, close_latency.bare.p99_ms).judged_by(NOTIFY_BUDGET),
    ]
}

fn heartbeat_row(heartbeats: &Heartbeats) -> Row {
    let (ours, bare) = (heartbeats.per_s(), heartbeats.bare_per_s());
    Row::plain("heartbeats per second of a core", ours, "/s").against(bare, ours / bare).judged_by(HEARTBEAT_BUDGET).noting(format!(
        "by the server's processor time for a ping and its answer, {} sessions pinged once a second; limit = messages \
         and their echoes of the bare server at the same rate",
        heartbeats.sessions
    ))
}

fn fan_out_row(fan_out: &FanOut) -> Row {
    let comparison = &fan_out.comparison;
    let per_core = |rounds: &[Round]| 1e9 / median(rounds.iter().map(|round| round.server_cpu_ns)).max(1.0);
    Row::plain("feed deliveries per second of a core", per_core(&comparison.tracker), "/s")
        .against(per_core(&comparison.baseline), comparison.cpu_ratio())
        .noting(format!(
            "by the server's processor time; one user changes, {} friends are notified, {} bytes each, {:.0} a second over the \
             wire; limit = the bare server sends the same to change_all",
            fan_out.watchers,
            fan_out.message_bytes,
            median(comparison.tracker.iter().map(|round| round.announces_per_s))
        ))
}
