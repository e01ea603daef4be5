//! What a heartbeat costs: a ping of the server and the answer to it, in processor time. Held against a message and its
//! echo at the same rate over as many connections of the bare server.

use std::time::Duration;

use serde::Serialize;

use super::ground::{Ground, Side, Sides, member_at, none_lost, note_trouble};
use crate::error::LoadError;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rounds::median;

/// The bare server's messages are spread evenly, in steps of this.
const STEP: Duration = Duration::from_millis(2);

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatPlan {
    /// Sessions; each is pinged once a second.
    pub sessions: u32,
    /// Rounds.
    pub rounds: u32,
    /// How long one lasts.
    pub round: Duration,
}

/// What came of it, in nanoseconds of the server's processor time, one number a round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Heartbeats {
    /// Sessions.
    pub sessions: u32,
    /// For a ping and its answer.
    pub gateway_ns: Vec<f64>,
    /// For a message and its echo.
    pub bare_ns: Vec<f64>,
}

impl Heartbeats {
    /// Heartbeats that one core can do in a second.
    pub fn per_s(&self) -> f64 {
        1e9 / median(self.gateway_ns.iter().copied()).max(1.0)
    }

    /// Echoes that one core of the bare server can do in a second.
    pub fn bare_per_s(&self) -> f64 {
        1e9 / median(self.bare_ns.iter().copied()).max(1.0)
    }
}

/// Measures both, one after the other: a server that pings by itself would disturb the other's rounds.
pub fn measure(sides: &Sides, cores: Cores, plan: HeartbeatPlan) -> Result<Heartbeats, LoadError> {
    let stage = Stage::begin(format!("heartbeats of {} sessions", plan.sessions), 1);
    let gateway_ns = rounds(&sides.gateway, cores, plan)?;
    let bare_ns = rounds(&sides.bare, cores, plan)?;
    let heartbeats = Heartbeats { sessions: plan.sessions, gateway_ns, bare_ns };
    stage.end(&format!("{:.0} a second on one core", heartbeats.per_s()));
    Ok(heartbeats)
}

fn rounds(side: &Side, cores: Cores, plan: HeartbeatPlan) -> Result<Vec<f64>, LoadError> {
    let mut ground = Ground::start(side, cores, &[])?;
    ground.fill(1, plan.sessions)?;
    // Pings are spread over their interval by then.
    ground.hold(plan.round)?;
    let mut costs = Vec::new();
    for _ in 0..plan.rounds {
        let (cpu, heard) = (ground.process.cpu_time()?, ground.crowd.counts());
        match side {
            Side::Gateway { .. } => ground.hold(plan.round)?,
            Side::Bare(_) => echo_for(&mut ground, plan)?,
        }
        let now = ground.crowd.counts();
        let beats = (now.pings - heard.pings) + (now.messages - heard.messages);
        let used = ground.process.cpu_time()?.since(cpu).used();
        costs.push(used.as_nanos() as f64 / beats.max(1) as f64);
    }
    Ok(costs)
}

/// Everybody sends one message a second, spread over it.
fn echo_for(ground: &mut Ground, plan: HeartbeatPlan) -> Result<(), LoadError> {
    let began = ground.crowd.now();
    let (mut sent, mut trouble) = (0, None);
    loop {
        let elapsed = ground.crowd.now() - began;
        if elapsed >= plan.round {
            return none_lost(trouble);
        }
        let due = (elapsed.as_secs_f64() * f64::from(plan.sessions)) as u64;
        for message in sent..due {
            ground.crowd.send(member_at((message % u64::from(plan.sessions)) as u32), "{}")?;
        }
        sent = due;
        ground.crowd.turn_for(STEP, &mut |_, event| note_trouble(event, &mut trouble))?;
    }
}
