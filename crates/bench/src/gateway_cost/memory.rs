//! Memory of an idle session, and processor time of connecting.

use std::time::Duration;

use serde::Serialize;

use super::testbed::{Side, Testbed};
use crate::error::BenchError;
use crate::process::Cores;
use crate::progress::Stage;

/// Connected and closed before the measurement, so that one-time allocations are not counted. Few, since the measured
/// sessions reuse what they free.
const WARM_UP: u32 = 10;
/// Users of the warm-up, without friends.
const WARM_UP_FIRST: u64 = 1 << 40;
/// Interval of memory samples.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
pub struct MemoryPlan {
    pub sessions: u32,
    /// Idle time before the last sample: allocators return pages with a delay.
    pub settle: Duration,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct SessionMemory {
    pub sessions: u32,
    /// Resident bytes per session.
    pub bytes_per_session: f64,
    /// Bytes that the allocator counts; none for the bare server, which has no metrics.
    pub allocated_per_session: Option<f64>,
    /// Processor time of the server per connect.
    pub connect_cpu_ns: f64,
}

/// Connects all users, waits, and samples. `friends` are pairs among the users from 1 on.
pub fn measure(
    side: &Side,
    cores: Cores,
    plan: MemoryPlan,
    friends: &[(u64, u64)],
) -> Result<SessionMemory, BenchError> {
    let name = match side {
        Side::Bare(_) => "the bare server",
        Side::Gateway { .. } if friends.is_empty() => "the gateway",
        Side::Gateway { .. } => "the gateway, with friends",
    };
    let stage = Stage::begin(format!("{} idle sessions: {name}", plan.sessions), 1);
    let mut testbed = Testbed::start(side, cores, friends)?;
    testbed.fill(WARM_UP_FIRST, WARM_UP)?;
    testbed.empty();
    testbed.hold(LOOK_EVERY)?;
    let before = least_resident(&mut testbed, LOOK_EVERY * 2)?;
    let allocated_before = allocated(side, &testbed);
    let connecting = testbed.fill(1, plan.sessions)?;
    let after = least_resident(&mut testbed, plan.settle)?;
    let per_session = |total: f64| total / f64::from(plan.sessions);
    let memory = SessionMemory {
        sessions: plan.sessions,
        bytes_per_session: per_session(after.saturating_sub(before) as f64),
        allocated_per_session: allocated(side, &testbed)
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

/// The gateway's allocated bytes, from its metrics.
fn allocated(side: &Side, testbed: &Testbed) -> Option<f64> {
    if side.is_bare() {
        return None;
    }
    let page = testkit::http::get(testbed.address, "/metrics").body;
    let page = String::from_utf8_lossy(&page);
    page.lines()
        .find_map(|line| line.strip_prefix("rollcall_allocator_allocated_bytes "))
        .and_then(|bytes| bytes.parse().ok())
}

/// The least resident memory during this time, without traffic.
fn least_resident(testbed: &mut Testbed, length: Duration) -> Result<u64, BenchError> {
    let until = testbed.clients.now() + length;
    let mut least = testbed.process.resident_bytes()?;
    while testbed.clients.now() < until {
        testbed.hold(LOOK_EVERY)?;
        least = least.min(testbed.process.resident_bytes()?);
    }
    Ok(least)
}
