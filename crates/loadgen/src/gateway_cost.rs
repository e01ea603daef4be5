//! The gateway: what a session takes, how soon a friend is told, what a heartbeat and a delivery cost.
//!
//! Everything is measured over real sockets against the real binary, and held against a bare WebSocket server
//! ([`crate::floor::websocket`]) of the same run. What one process may open bounds the sessions (20,000 files on many
//! machines), on both ends: DESIGN's hundred thousand need a machine that allows as many.
//!
//! # Layout
//!
//! - [`ground`]: a server with a crowd before it
//! - [`memory`], [`farewell`], [`heartbeats`], [`fan_out`]: one measurement each

pub mod fan_out;
pub mod farewell;
pub mod ground;
pub mod heartbeats;
pub mod memory;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::crowd::friends;
use crate::error::LoadError;
use crate::process::Cores;
use crate::report::{Budget, Row};
use crate::rounds::{Round, median};
use fan_out::{FanOut, FanOutPlan};
use farewell::{Farewell, FarewellPlan};
use ground::{Side, Sides};
use heartbeats::{HeartbeatPlan, Heartbeats};
use memory::{MemoryPlan, SessionMemory};

/// DESIGN: at most this much user-space memory for an idle session.
const MEMORY_BUDGET: Budget = Budget::FigureAtMost(4096.0);
/// DESIGN: a friend is told within this many milliseconds, in 99 of 100 cases.
const TOLD_BUDGET: Budget = Budget::FigureAtMost(100.0);
/// Friends of each person where friends are part of the picture.
const FRIENDS: u32 = 10;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Idle sessions.
    pub memory: MemoryPlan,
    /// Closed connections.
    pub farewell: FarewellPlan,
    /// Pings.
    pub heartbeats: HeartbeatPlan,
    /// Changes.
    pub fan_out: FanOutPlan,
}

impl Sizes {
    /// To see that it works, in about a minute.
    pub const QUICK: Sizes = Sizes {
        memory: MemoryPlan { sessions: 3_000, settle: Duration::from_secs(3) },
        farewell: FarewellPlan { sessions: 3_000, closes: 500, closes_per_s: 200 },
        heartbeats: HeartbeatPlan { sessions: 3_000, rounds: 3, round: Duration::from_secs(2) },
        fan_out: FanOutPlan { watchers: 1_000, rounds: 3, round: Duration::from_secs(1) },
    };
    /// To be believed.
    pub const FULL: Sizes = Sizes {
        memory: MemoryPlan { sessions: 15_000, settle: Duration::from_secs(15) },
        farewell: FarewellPlan { sessions: 15_000, closes: 4_000, closes_per_s: 200 },
        heartbeats: HeartbeatPlan { sessions: 15_000, rounds: 5, round: Duration::from_secs(4) },
        fan_out: FanOutPlan { watchers: 5_000, rounds: 7, round: Duration::from_secs(3) },
    };
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct GatewayCost {
    /// An idle session of somebody without friends, with friends, and of the bare server.
    pub memory: Option<[SessionMemory; 3]>,
    /// How soon a friend is told.
    pub farewell: Option<Farewell>,
    /// What a heartbeat costs.
    pub heartbeats: Option<Heartbeats>,
    /// What a delivery costs.
    pub fan_out: Option<FanOut>,
}

/// Measures what `wants` names: gateway-memory, gateway-close, gateway-heartbeats, gateway-fan-out.
///
/// `binary` is the gateway's; without one, a second bare server stands in for it, and ratios should be one.
pub fn measure(
    binary: Option<&Path>,
    bare: &Path,
    sizes: &Sizes,
    cores: Cores,
    wants: impl Fn(&str) -> bool,
) -> Result<GatewayCost, LoadError> {
    let bare = Side::Bare(bare.to_owned());
    let sides = |presence: &str| {
        let gateway = binary.map_or_else(
            || bare.clone(),
            |binary| Side::Gateway { binary: binary.to_owned(), presence: presence.to_owned() },
        );
        Sides { gateway, bare: bare.clone() }
    };
    let mut found = GatewayCost::default();
    if wants("gateway-memory") {
        let Sides { gateway, bare } = sides("");
        let ring = friends::ring(sizes.memory.sessions, FRIENDS);
        found.memory = Some([
            memory::measure(&gateway, cores, sizes.memory, &[])?,
            memory::measure(&gateway, cores, sizes.memory, &ring)?,
            memory::measure(&bare, cores, sizes.memory, &[])?,
        ]);
    }
    if wants("gateway-close") {
        found.farewell = Some(farewell::measure(&sides(""), cores, sizes.farewell)?);
    }
    if wants("gateway-heartbeats") {
        found.heartbeats = Some(heartbeats::measure(&sides("ping_s = 1"), cores, sizes.heartbeats)?);
    }
    if wants("gateway-fan-out") {
        found.fan_out = Some(fan_out::measure(&sides("batch_ms = 0"), cores, sizes.fan_out)?);
    }
    Ok(found)
}

impl GatewayCost {
    /// The lines of the table.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        rows.extend(self.memory.iter().flat_map(memory_rows));
        rows.extend(self.farewell.iter().flat_map(farewell_rows));
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

fn farewell_rows(farewell: &Farewell) -> [Row; 2] {
    let note = format!(
        "{} connections closed among {}, half of them without a goodbye; the longest took {:.1} ms; limit = the round trip of \
         a message over the bare server",
        farewell.told.count, farewell.sessions, farewell.told.max_ms
    );
    let row = |what: &str, told: f64, bare: f64| {
        Row::plain(format!("closed connection to friend told, {what}"), told, "ms")
            .against(bare, told / bare.max(1e-6))
            .noting(note.clone())
    };
    [
        row("p50", farewell.told.p50_ms, farewell.bare.p50_ms),
        row("p99", farewell.told.p99_ms, farewell.bare.p99_ms).judged_by(TOLD_BUDGET),
    ]
}

fn heartbeat_row(heartbeats: &Heartbeats) -> Row {
    let (ours, bare) = (heartbeats.per_s(), heartbeats.bare_per_s());
    Row::plain("heartbeats per second of a core", ours, "/s").against(bare, ours / bare).noting(format!(
        "by the server's processor time for a ping and its answer, {} sessions pinged once a second; limit = messages \
         and their echoes of the bare server at the same rate",
        heartbeats.sessions
    ))
}

fn fan_out_row(fan_out: &FanOut) -> Row {
    let comparison = &fan_out.comparison;
    let per_core = |rounds: &[Round]| 1e9 / median(rounds.iter().map(|round| round.server_cpu_ns)).max(1.0);
    Row::plain("feed deliveries per second of a core", per_core(&comparison.tracker), "/s")
        .against(per_core(&comparison.floor), comparison.cpu_ratio())
        .noting(format!(
            "by the server's processor time; one person changes, {} friends are told, {} bytes each, {:.0} a second over the \
             wire; limit = the bare server sends the same to everybody",
            fan_out.watchers,
            fan_out.message_bytes,
            median(comparison.tracker.iter().map(|round| round.announces_per_s))
        ))
}
