//! What an idle session takes: user-space memory, and the processor time of connecting.

use std::time::Duration;

use serde::Serialize;

use super::ground::{Ground, Side};
use crate::error::LoadError;
use crate::process::Cores;
use crate::progress::Stage;

/// Connected and gone before anything is measured, so that what a server needs once is not counted. Few: what they leave
/// behind, those who are measured would find.
const WARM_UP: u32 = 10;
/// The users of the warm-up, whom nobody knows.
const WARM_UP_FIRST: u64 = 1 << 40;
/// How often memory is looked at while it settles.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlan {
    /// Sessions.
    pub sessions: u32,
    /// How long they are idle before the last look: allocators give pages back after a while.
    pub settle: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SessionMemory {
    /// Sessions.
    pub sessions: u32,
    /// Resident bytes that each of them adds.
    pub bytes_per_session: f64,
    /// What of it the program uses, as its allocator counts; none from the bare server, which does not tell.
    pub allocated_per_session: Option<f64>,
    /// Processor time of the server to connect one.
    pub connect_cpu_ns: f64,
}

/// Connects everybody, waits, and looks. `friends` are pairs among the users from 1 on.
pub fn measure(
    side: &Side,
    cores: Cores,
    plan: MemoryPlan,
    friends: &[(u64, u64)],
) -> Result<SessionMemory, LoadError> {
    let name = match side {
        Side::Bare(_) => "the bare server",
        Side::Gateway { .. } if friends.is_empty() => "the gateway",
        Side::Gateway { .. } => "the gateway, with friends",
    };
    let stage = Stage::begin(format!("{} idle sessions: {name}", plan.sessions), 1);
    let mut ground = Ground::start(side, cores, friends)?;
    ground.fill(WARM_UP_FIRST, WARM_UP)?;
    ground.empty();
    ground.hold(LOOK_EVERY)?;
    let before = least_resident(&mut ground, LOOK_EVERY * 2)?;
    let allocated_before = allocated(side, &ground);
    let connecting = ground.fill(1, plan.sessions)?;
    let after = least_resident(&mut ground, plan.settle)?;
    let per_session = |total: f64| total / f64::from(plan.sessions);
    let memory = SessionMemory {
        sessions: plan.sessions,
        bytes_per_session: per_session(after.saturating_sub(before) as f64),
        allocated_per_session: allocated(side, &ground)
            .zip(allocated_before)
            .map(|(after, before)| per_session(after - before)),
        connect_cpu_ns: per_session(connecting.used().as_nanos() as f64),
    };
    stage.end(&format!(
        "{:.0} bytes and {:.0} us to connect for each",
        memory.bytes_per_session,
        memory.connect_cpu_ns / 1e3
    ));
    Ok(memory)
}

/// What the gateway's allocator has handed out, from its metrics page.
fn allocated(side: &Side, ground: &Ground) -> Option<f64> {
    if side.is_bare() {
        return None;
    }
    let page = testkit::http::get(ground.address, "/metrics").body;
    let page = String::from_utf8_lossy(&page);
    page.lines()
        .find_map(|line| line.strip_prefix("rollcall_allocator_allocated_bytes "))
        .and_then(|bytes| bytes.parse().ok())
}

/// The least that was resident during this time, in which everybody is idle.
fn least_resident(ground: &mut Ground, length: Duration) -> Result<u64, LoadError> {
    let until = ground.crowd.now() + length;
    let mut least = ground.process.resident_bytes()?;
    while ground.crowd.now() < until {
        ground.hold(LOOK_EVERY)?;
        least = least.min(ground.process.resident_bytes()?);
    }
    Ok(least)
}
