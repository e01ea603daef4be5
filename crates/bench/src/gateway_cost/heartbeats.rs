//! Cost of a heartbeat: a ping of the server and its answer, in processor time. Compared with an echoed message at the
//! same rate over as many connections of the bare server.

use std::time::Duration;

use serde::Serialize;

use super::testbed::{Side, Sides, Testbed, client_at, fail_if_disconnected, note_disconnect};
use crate::error::BenchError;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rounds::median;

/// The bare server's messages are spread evenly, in steps of this.
const STEP: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug)]
pub struct HeartbeatPlan {
    /// Each is pinged once a second.
    pub sessions: u32,
    pub rounds: u32,
    pub round: Duration,
}

/// Nanoseconds of the server's processor time, one value per round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Heartbeats {
    pub sessions: u32,
    /// Per ping and answer.
    pub gateway_ns: Vec<f64>,
    /// Per message and echo.
    pub bare_ns: Vec<f64>,
}

impl Heartbeats {
    /// Heartbeats per second and core.
    pub fn per_s(&self) -> f64 {
        1e9 / median(self.gateway_ns.iter().copied()).max(1.0)
    }

    /// Echoes per second and core of the bare server.
    pub fn bare_per_s(&self) -> f64 {
        1e9 / median(self.bare_ns.iter().copied()).max(1.0)
    }
}

/// Measures both, one after the other: a server that pings would disturb the other's rounds.
pub fn measure(sides: &Sides, cores: Cores, plan: HeartbeatPlan) -> Result<Heartbeats, BenchError> {
    let stage = Stage::begin(format!("heartbeats of {} sessions", plan.sessions), 1);
    let gateway_ns = rounds(&sides.gateway, cores, plan)?;
    let bare_ns = rounds(&sides.bare, cores, plan)?;
    let heartbeats = Heartbeats { sessions: plan.sessions, gateway_ns, bare_ns };
    stage.end(&format!("{:.0} a second on one core", heartbeats.per_s()));
    Ok(heartbeats)
}

fn rounds(side: &Side, cores: Cores, plan: HeartbeatPlan) -> Result<Vec<f64>, BenchError> {
    let mut testbed = Testbed::start(side, cores, &[])?;
    testbed.fill(1, plan.sessions)?;
    // By then pings are spread over their interval.
    testbed.hold(plan.round)?;
    let mut costs = Vec::new();
    for _ in 0..plan.rounds {
        let (cpu, before) = (testbed.process.cpu_time()?, testbed.clients.counts());
        match side {
            Side::Gateway { .. } => testbed.hold(plan.round)?,
            Side::Bare(_) => echo_for(&mut testbed, plan)?,
        }
        let now = testbed.clients.counts();
        let beats = (now.pings - before.pings) + (now.messages - before.messages);
        let used = testbed.process.cpu_time()?.since(cpu).used();
        costs.push(used.as_nanos() as f64 / beats.max(1) as f64);
    }
    Ok(costs)
}

/// Each client sends one message a second, spread over it.
fn echo_for(testbed: &mut Testbed, plan: HeartbeatPlan) -> Result<(), BenchError> {
    let began = testbed.clients.now();
    let (mut sent, mut disconnect) = (0, None);
    loop {
        let elapsed = testbed.clients.now() - began;
        if elapsed >= plan.round {
            return fail_if_disconnected(disconnect);
        }
        let due = (elapsed.as_secs_f64() * f64::from(plan.sessions)) as u64;
        for message in sent..due {
            testbed.clients.send(client_at((message % u64::from(plan.sessions)) as u32), "{}")?;
        }
        sent = due;
        testbed.clients.poll_for(STEP, &mut |_, event| note_disconnect(event, &mut disconnect))?;
    }
}
