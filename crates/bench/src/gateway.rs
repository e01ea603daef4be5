//! The gateway: memory per session, notification latency, cost of a heartbeat and of a delivery.
//!
//! All measurements use real sockets and the real binary, and are compared with a bare WebSocket server
//! ([`crate::baseline::websocket`]) in the same run. The limit of open files bounds the sessions (20,000 on many
//! machines), on both ends: DESIGN's hundred thousand need a machine with a higher limit.

use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use serde::Serialize;
use simulate::websocket::ClientId;

use crate::baseline::websocket::TO_ALL;
use crate::friends;
use crate::load::shuffled;
use crate::measure::{Comparison, Percentiles, Round, RoundWatch, median};
use crate::progress::Stage;
use crate::run::{Figure, Run};
use crate::testbed::{Testbed, pairs_of, random_pause, status_command};

/// Friends of each user, where friends are part of the measurement.
const FRIENDS: u32 = 10;
/// Connected and closed before memory is measured, so that one-time allocations are not counted. Few, since the measured
/// sessions reuse what they free.
const WARM_UP: u32 = 10;
/// Users of the warm-up, without friends.
const WARM_UP_FIRST: u64 = 1 << 40;
/// Interval of memory samples.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Timeout of notifications.
const NOTIFY_LIMIT: Duration = Duration::from_secs(20);
const CLOSES_PER_S: f64 = 200.0;
/// Seeds order and times.
const SEED: u64 = 5;
/// The bare server's messages are spread evenly, in steps of this.
const STEP: Duration = Duration::from_millis(2);
/// Message size where a bare server replaces the gateway.
const STAND_IN_BYTES: usize = 256;
/// Messages start with pings spread over their interval of a second.
const SPREAD: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Serialize)]
struct SessionMemory {
    /// Resident bytes.
    bytes: f64,
    /// Bytes that the allocator counts; none for the bare server, which has no metrics.
    allocated: Option<f64>,
    /// Processor time of the server per connect.
    connect_ns: f64,
}

pub fn memory(run: &mut Run<'_>) -> anyhow::Result<()> {
    let ring = friends::ring(run.sizes.sessions, FRIENDS);
    let alone = session_memory(run, "the gateway", Testbed::start_gateway(run, &[], "")?)?;
    let befriended =
        session_memory(run, "the gateway, with friends", Testbed::start_gateway(run, &ring, "")?)?;
    let bare = session_memory(run, "the bare server", Testbed::start_bare(run)?)?;
    for (what, memory) in
        [("memory per idle session", alone), ("memory per idle session, 10 friends here", befriended)]
    {
        let used = memory
            .allocated
            .map_or_else(String::new, |bytes| format!(", of which the program uses {bytes:.0}"));
        let sessions = run.sizes.sessions;
        let note = format!("resident memory of the server that each of {sessions} sessions adds{used}");
        run.add(what, Figure::of(memory.bytes).over(bare.bytes).noting(note));
    }
    let per_core = |memory: SessionMemory| 1e9 / memory.connect_ns.max(1.0);
    let note = format!(
        "by the server's processor time, from the TCP handshake to the snapshot of {FRIENDS} friends"
    );
    let connects = Figure::of(per_core(befriended)).over(per_core(bare));
    run.add("connects per second of a core", connects.noting(note));
    run.detail("session memory", [alone, befriended, bare]);
    Ok(())
}

/// Connects all users, waits, and samples.
fn session_memory(run: &Run<'_>, name: &str, mut testbed: Testbed) -> anyhow::Result<SessionMemory> {
    let sessions = run.sizes.sessions;
    let stage = Stage::begin(format!("{sessions} idle sessions: {name}"), 1);
    testbed.fill(WARM_UP_FIRST, WARM_UP)?;
    testbed.clients.members().for_each(|client| testbed.clients.close(client, true));
    testbed.hold(LOOK_EVERY)?;
    let before = least_resident(&mut testbed, LOOK_EVERY * 2)?;
    let allocated_before = allocated(&testbed);
    let connecting = testbed.fill(1, sessions)?;
    let after = least_resident(&mut testbed, run.sizes.settle)?;
    let per_session = |total: f64| total / f64::from(sessions);
    let memory = SessionMemory {
        bytes: per_session(after.saturating_sub(before) as f64),
        allocated: allocated(&testbed)
            .zip(allocated_before)
            .map(|(after, before)| per_session(after - before)),
        connect_ns: connecting.server_ns,
    };
    stage.end(&format!("{:.0} bytes and {:.0} us to connect", memory.bytes, memory.connect_ns / 1e3));
    Ok(memory)
}

/// The gateway's allocated bytes, from its metrics.
fn allocated(testbed: &Testbed) -> Option<f64> {
    let page = testkit::http::get(testbed.site?, "/metrics").body;
    let page = String::from_utf8_lossy(&page);
    let line = page.lines().find_map(|line| line.strip_prefix("rollcall_allocator_allocated_bytes "));
    line.and_then(|bytes| bytes.parse().ok())
}

/// The least resident memory during this time, without traffic.
fn least_resident(testbed: &mut Testbed, length: Duration) -> anyhow::Result<u64> {
    let until = testbed.clients.now() + length;
    let mut least = testbed.server().resident_bytes()?;
    while testbed.clients.now() < until {
        testbed.hold(LOOK_EVERY)?;
        least = least.min(testbed.server().resident_bytes()?);
    }
    Ok(least)
}

/// From a closed connection to the notification of a friend, among many idle sessions. Each user has one friend. Some
/// users close their connection once, at random times: repeated closes would be damped. Half of them send a close frame,
/// half just close the socket.
pub fn close_latency(run: &mut Run<'_>) -> anyhow::Result<()> {
    let sessions = run.sizes.sessions;
    let stage = Stage::begin(format!("closed among {sessions} sessions"), 1);
    let ours = closes(run, Testbed::start_gateway(run, &pairs_of(sessions), "")?)?;
    let limit = closes(run, Testbed::start_bare(run)?)?;
    stage.end(&format!("notified after {:.2} ms, p99 {:.2} ms", ours.p50_ms, ours.p99_ms));
    let note = format!(
        "{} connections closed among {sessions}, half of them without a close frame; the longest took {:.1} ms",
        ours.count, ours.max_ms
    );
    for (what, ours, limit) in [("p50", ours.p50_ms, limit.p50_ms), ("p99", ours.p99_ms, limit.p99_ms)] {
        let figure = Figure::of(ours).over(limit).noting(note.clone());
        run.add(&format!("closed connection to friend notified, {what}"), figure);
    }
    run.detail("closed connections", [ours, limit]);
    Ok(())
}

fn closes(run: &Run<'_>, mut testbed: Testbed) -> anyhow::Result<Percentiles> {
    let sessions = run.sizes.sessions;
    testbed.fill(1, sessions)?;
    // Until all initial notifications have arrived.
    testbed.hold(SPREAD)?;
    let mut random = Rng::with_seed(SEED);
    let offline: Rc<str> = if testbed.is_bare() { "" } else { r#""offline""# }.into();
    let mut next = testbed.clients.now();
    for pair in shuffled(sessions / 2, SEED).into_iter().take(run.sizes.closes as usize) {
        testbed.hold_until(next)?;
        next += random_pause(&mut random, CLOSES_PER_S);
        let (one, other) = (ClientId(2 * pair as usize), ClientId(2 * pair as usize + 1));
        testbed.expect(other, &offline);
        if testbed.is_bare() {
            testbed.clients.send(other, r#"{"rpc":"about as long as a command"}"#)?;
        } else {
            testbed.clients.close(one, random.bool());
        }
    }
    testbed.wait_for_expected(NOTIFY_LIMIT)?;
    Ok(testbed.latencies.percentiles())
}

/// A ping of the server and its answer, in processor time, against an echoed message at the same rate over as many
/// connections of the bare server. One after the other: a server that pings would disturb the other's rounds.
pub fn heartbeats(run: &mut Run<'_>) -> anyhow::Result<()> {
    let sessions = run.sizes.sessions;
    let stage = Stage::begin(format!("heartbeats of {sessions} sessions"), 1);
    let ours = heartbeat_rounds(run, Testbed::start_gateway(run, &[], "presence.ping_s = 1")?)?;
    let limit = heartbeat_rounds(run, Testbed::start_bare(run)?)?;
    let comparison = Comparison { ours, limit };
    stage.end(&comparison.summary());
    let note = format!(
        "by the server's processor time for a ping and its answer, {sessions} sessions pinged once a second"
    );
    run.add("heartbeats per second of a core", comparison.per_core().noting(note));
    run.detail("heartbeats", comparison);
    Ok(())
}

fn heartbeat_rounds(run: &Run<'_>, mut testbed: Testbed) -> anyhow::Result<Vec<Round>> {
    let (sessions, length) = (run.sizes.sessions, run.sizes.round.max(SPREAD));
    testbed.fill(1, sessions)?;
    testbed.hold(length)?;
    let mut round = || {
        let watch = RoundWatch::start(Some(testbed.server().pid()))?;
        let before = testbed.clients.counts();
        match testbed.is_bare() {
            true => echo_for(&mut testbed, sessions, length)?,
            false => testbed.hold(length)?,
        }
        let now = testbed.clients.counts();
        watch.stop((now.pings - before.pings) + (now.messages - before.messages))
    };
    (0..run.sizes.rounds).map(|_| round()).collect()
}

/// Each client sends one message a second, spread over it.
fn echo_for(testbed: &mut Testbed, sessions: u32, length: Duration) -> anyhow::Result<()> {
    let began = testbed.clients.now();
    let mut sent = 0;
    loop {
        let elapsed = testbed.clients.now() - began;
        if elapsed >= length {
            return Ok(());
        }
        let due = (elapsed.as_secs_f64() * f64::from(sessions)) as u64;
        for message in sent..due {
            testbed.clients.send(ClientId((message % u64::from(sessions)) as usize), "{}")?;
        }
        sent = due;
        testbed.hold(STEP)?;
    }
}

/// A user with many friends changes the status text repeatedly, each time after all friends have received the last
/// change. Compared with broadcasts of the same size on the bare server.
pub fn fan_out(run: &mut Run<'_>) -> anyhow::Result<()> {
    let (watchers, length) = (run.sizes.watchers, run.sizes.round);
    let steps = u64::from(run.sizes.rounds) * 2;
    let mut stage = Stage::begin(format!("one user changes, {watchers} are notified"), steps);
    let friends: Vec<(u64, u64)> = (0..u64::from(watchers)).map(|watcher| (1, watcher + 2)).collect();
    let gateway = Testbed::start_gateway(run, &friends, "presence.batch_ms = 0")?;
    let mut ours = Audience::gather(gateway, watchers)?;
    ours.message_bytes = STAND_IN_BYTES;
    ours.round(length / 4)?;
    let message_bytes = ours.message_bytes;
    let mut bare = Audience::gather(Testbed::start_bare(run)?, watchers)?;
    bare.message_bytes = message_bytes;
    bare.round(length / 4)?;
    let mut comparison = Comparison::default();
    for round in 0..u64::from(run.sizes.rounds) {
        comparison.add(ours.round(length)?, bare.round(length)?);
        stage.at(2 * round + 2);
    }
    stage.end(&comparison.summary());
    let note = format!(
        "by the server's processor time; one user changes, {watchers} friends are notified, {message_bytes} bytes each, \
         {:.0} a second over the wire",
        median(comparison.ours.iter().map(|round| round.per_s))
    );
    run.add("feed deliveries per second of a core", comparison.per_core().noting(note));
    run.detail("deliveries", comparison);
    Ok(())
}

struct Audience {
    testbed: Testbed,
    watchers: u32,
    changes: u32,
    /// Header included. Of the bare server's messages to send, of the gateway's as they were received.
    message_bytes: usize,
}

impl Audience {
    fn gather(mut testbed: Testbed, watchers: u32) -> anyhow::Result<Audience> {
        // The user that changes is the first client.
        testbed.fill(1, 1 + watchers)?;
        testbed.hold(SPREAD)?;
        Ok(Audience { testbed, watchers, changes: 1, message_bytes: 0 })
    }

    fn round(&mut self, length: Duration) -> anyhow::Result<Round> {
        let watch = RoundWatch::start(Some(self.testbed.server().pid()))?;
        let (began, before) = (self.testbed.clients.now(), self.testbed.clients.counts());
        let mut deliveries = 0;
        while self.testbed.clients.now() - began < length {
            deliveries += self.change()?;
        }
        let now = self.testbed.clients.counts();
        if !self.testbed.is_bare() {
            let messages = (now.messages - before.messages).max(1);
            self.message_bytes = ((now.bytes - before.bytes) / messages) as usize;
        }
        watch.stop(deliveries)
    }

    /// Makes a change and waits until every watcher has received it. The bare server sends it to its sender, too.
    fn change(&mut self) -> anyhow::Result<u64> {
        self.changes += 1;
        let mark: Rc<str> = format!("change {:012}", self.changes).into();
        let line = match self.testbed.is_bare() {
            // The header of a frame of this size has four bytes.
            true => format!("{TO_ALL}{mark}{:x<width$}", "", width = self.message_bytes.saturating_sub(24)),
            false => status_command(self.changes, "online", &mark),
        };
        let first = usize::from(!self.testbed.is_bare());
        let receivers = first..=self.watchers as usize;
        receivers.clone().for_each(|client| self.testbed.expect(ClientId(client), &mark));
        self.testbed.clients.send(ClientId(0), &line)?;
        self.testbed.wait_for_expected(NOTIFY_LIMIT)?;
        Ok(receivers.count() as u64)
    }
}
