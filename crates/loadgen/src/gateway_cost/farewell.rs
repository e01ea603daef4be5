//! How long it takes until a friend is told that a connection is closed, among many that are idle.
//!
//! Everybody has one friend. Some close their connection, at random moments and once only: who keeps coming and going
//! would be given a grace. Half of them say goodbye, half just close. What the time is held against is the round trip of
//! a message over the bare server, among as many idle connections.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use serde::Serialize;

use super::ground::{Ground, Side, Sides, member_at, none_lost, note_trouble};
use crate::crowd::{Event, Member};
use crate::error::LoadError;
use crate::latencies::{Latencies, Percentiles};
use crate::process::Cores;
use crate::progress::Stage;

/// How long the last ones may take to be told.
const TOLD_LIMIT: Duration = Duration::from_secs(10);
/// Seeds the order and the moments.
const SEED: u64 = 5;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct FarewellPlan {
    /// Sessions; every second one is the friend of the one before.
    pub sessions: u32,
    /// Connections that are closed; at most half of the sessions.
    pub closes: u32,
    /// Closed in a second.
    pub closes_per_s: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Farewell {
    /// Sessions while it was measured.
    pub sessions: u32,
    /// From closing a connection to what its friend heard.
    pub told: Percentiles,
    /// The round trip of a message over the bare server.
    pub bare: Percentiles,
}

/// Measures both.
pub fn measure(sides: &Sides, cores: Cores, plan: FarewellPlan) -> Result<Farewell, LoadError> {
    let stage = Stage::begin(format!("closed among {} sessions", plan.sessions), 1);
    let told = run(&sides.gateway, cores, plan)?.percentiles();
    let bare = run(&sides.bare, cores, plan)?.percentiles();
    stage.end(&format!("told after {:.2} ms, p99 {:.2} ms", told.p50_ms, told.p99_ms));
    Ok(Farewell { sessions: plan.sessions, told, bare })
}

/// What is awaited: at which member, since when.
type Awaited = HashMap<Member, Duration>;

fn run(side: &Side, cores: Cores, plan: FarewellPlan) -> Result<Latencies, LoadError> {
    let is_bare = side.is_bare();
    let pairs: Vec<(u64, u64)> =
        (0..u64::from(plan.sessions / 2)).map(|pair| (2 * pair + 1, 2 * pair + 2)).collect();
    let mut ground = Ground::start(side, cores, &pairs)?;
    ground.fill(1, plan.sessions)?;
    // Until everybody has heard of everybody.
    ground.hold(Duration::from_secs(1))?;
    let mut random = Rng::with_seed(SEED);
    let mut order: Vec<u32> = (0..plan.sessions / 2).collect();
    random.shuffle(&mut order);
    let (mut awaited, mut latencies) = (Awaited::new(), Latencies::default());
    let mut next = ground.crowd.now();
    for pair in order.into_iter().take(plan.closes as usize) {
        listen(&mut ground, next, is_bare, &mut awaited, &mut latencies)?;
        next += Duration::from_secs_f64(-random.f64().max(1e-9).ln() / f64::from(plan.closes_per_s));
        let (one, other) = (member_at(2 * pair), member_at(2 * pair + 1));
        awaited.insert(other, ground.crowd.now());
        if is_bare {
            ground.crowd.send(other, r#"{"rpc":"about as long as a command"}"#)?;
        } else {
            ground.crowd.close(one, random.bool());
        }
    }
    let until = ground.crowd.now() + TOLD_LIMIT;
    while !awaited.is_empty() && ground.crowd.now() < until {
        let soon = ground.crowd.now() + Duration::from_millis(5);
        listen(&mut ground, soon, is_bare, &mut awaited, &mut latencies)?;
    }
    match awaited.len() {
        0 => Ok(latencies),
        in_flight => Err(LoadError::Silent { silent_s: TOLD_LIMIT.as_secs(), in_flight }),
    }
}

/// Turns until the moment `until`, taking the time of what is awaited.
fn listen(
    ground: &mut Ground,
    until: Duration,
    is_bare: bool,
    awaited: &mut Awaited,
    latencies: &mut Latencies,
) -> Result<(), LoadError> {
    let mut trouble = None;
    while let Some(wait) = until.checked_sub(ground.crowd.now()) {
        let mut heard = Vec::new();
        ground.crowd.turn(wait, &mut |member, event| {
            note_trouble(event, &mut trouble);
            if let Event::Message(line) = event
                && awaited.contains_key(&member)
                && (is_bare || memchr::memmem::find(line, br#""offline""#).is_some())
            {
                heard.push(member);
            }
        })?;
        let now = ground.crowd.now();
        for since in heard.iter().filter_map(|member| awaited.remove(member)) {
            latencies.add(now - since);
        }
    }
    none_lost(trouble)
}
