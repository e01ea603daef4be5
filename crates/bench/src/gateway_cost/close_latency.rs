//! Latency from a closed connection to the notification of a friend, among many idle sessions.
//!
//! Each user has one friend. Some users close their connection once, at random times: repeated closes would be damped.
//! Half of them send a close frame, half just close the socket. Compared with the round trip of a message over the bare
//! server, among as many idle connections.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use serde::Serialize;

use super::testbed::{Side, Sides, Testbed, client_at, fail_if_disconnected, note_disconnect};
use crate::error::BenchError;
use crate::latencies::{Latencies, Percentiles};
use crate::process::Cores;
use crate::progress::Stage;
use crate::websocket_clients::{ClientId, Event};

/// Timeout of the last notifications.
const NOTIFY_LIMIT: Duration = Duration::from_secs(10);
/// Seeds order and times.
const SEED: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub struct CloseLatencyPlan {
    /// Every second session is the friend of the one before.
    pub sessions: u32,
    /// At most half of the sessions.
    pub closes: u32,
    pub closes_per_s: u32,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CloseLatency {
    pub sessions: u32,
    /// From closing a connection to the friend's notification.
    pub notified: Percentiles,
    /// Round trip of a message over the bare server.
    pub bare: Percentiles,
}

pub fn measure(sides: &Sides, cores: Cores, plan: CloseLatencyPlan) -> Result<CloseLatency, BenchError> {
    let stage = Stage::begin(format!("closed among {} sessions", plan.sessions), 1);
    let notified = run(&sides.gateway, cores, plan)?.percentiles();
    let bare = run(&sides.bare, cores, plan)?.percentiles();
    stage.end(&format!("notified after {:.2} ms, p99 {:.2} ms", notified.p50_ms, notified.p99_ms));
    Ok(CloseLatency { sessions: plan.sessions, notified, bare })
}

/// Pending notifications: receiver and start time.
type Awaited = HashMap<ClientId, Duration>;

fn run(side: &Side, cores: Cores, plan: CloseLatencyPlan) -> Result<Latencies, BenchError> {
    let is_bare = side.is_bare();
    let pairs: Vec<(u64, u64)> =
        (0..u64::from(plan.sessions / 2)).map(|pair| (2 * pair + 1, 2 * pair + 2)).collect();
    let mut testbed = Testbed::start(side, cores, &pairs)?;
    testbed.fill(1, plan.sessions)?;
    // Until all initial notifications have arrived.
    testbed.hold(Duration::from_secs(1))?;
    let mut random = Rng::with_seed(SEED);
    let mut order: Vec<u32> = (0..plan.sessions / 2).collect();
    random.shuffle(&mut order);
    let (mut awaited, mut latencies) = (Awaited::new(), Latencies::default());
    let mut next = testbed.clients.now();
    for pair in order.into_iter().take(plan.closes as usize) {
        listen(&mut testbed, next, is_bare, &mut awaited, &mut latencies)?;
        next += Duration::from_secs_f64(-random.f64().max(1e-9).ln() / f64::from(plan.closes_per_s));
        let (one, other) = (client_at(2 * pair), client_at(2 * pair + 1));
        awaited.insert(other, testbed.clients.now());
        if is_bare {
            testbed.clients.send(other, r#"{"rpc":"about as long as a command"}"#)?;
        } else {
            testbed.clients.close(one, random.bool());
        }
    }
    let until = testbed.clients.now() + NOTIFY_LIMIT;
    while !awaited.is_empty() && testbed.clients.now() < until {
        let soon = testbed.clients.now() + Duration::from_millis(5);
        listen(&mut testbed, soon, is_bare, &mut awaited, &mut latencies)?;
    }
    match awaited.len() {
        0 => Ok(latencies),
        in_flight => Err(BenchError::Timeout { waited_s: NOTIFY_LIMIT.as_secs(), in_flight }),
    }
}

/// Polls until `until`, recording latencies.
fn listen(
    testbed: &mut Testbed,
    until: Duration,
    is_bare: bool,
    awaited: &mut Awaited,
    latencies: &mut Latencies,
) -> Result<(), BenchError> {
    let mut disconnect = None;
    while let Some(wait) = until.checked_sub(testbed.clients.now()) {
        let mut received = Vec::new();
        testbed.clients.poll(wait, &mut |member, event| {
            note_disconnect(event, &mut disconnect);
            if let Event::Message(line) = event
                && awaited.contains_key(&member)
                && (is_bare || memchr::memmem::find(line, br#""offline""#).is_some())
            {
                received.push(member);
            }
        })?;
        let now = testbed.clients.now();
        for since in received.iter().filter_map(|member| awaited.remove(member)) {
            latencies.add(now - since);
        }
    }
    fail_if_disconnected(disconnect)
}
