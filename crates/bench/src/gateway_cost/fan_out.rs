//! Fan-out: a user with many friends changes the status text repeatedly, each time after all friends have received the
//! last change. Compared with broadcasts of the same size on the bare server.

use std::time::Duration;

use serde::Serialize;

use super::testbed::{Sides, Testbed, client_at, fail_if_disconnected, note_disconnect};
use crate::baseline::websocket::TO_ALL;
use crate::error::BenchError;
use crate::load::LoadResult;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rounds::{Comparison, Round};
use crate::websocket_clients::Event;

/// Timeout until all watchers have received a change.
const NOTIFY_LIMIT: Duration = Duration::from_secs(20);
/// Message size where a bare server replaces the gateway.
const STAND_IN_BYTES: usize = 256;
/// The watched user.
const WATCHED_USER: u64 = 1;

#[derive(Clone, Copy, Debug)]
pub struct FanOutPlan {
    /// Friends that watch.
    pub watchers: u32,
    pub rounds: u32,
    pub round: Duration,
}

#[derive(Clone, Debug, Serialize)]
pub struct FanOut {
    /// Friends that watch.
    pub watchers: u32,
    /// Size of a message to each of them.
    pub message_bytes: usize,
    /// Rounds; the unit is deliveries.
    pub comparison: Comparison,
}

/// Measures both, in alternating rounds.
pub fn measure(sides: &Sides, cores: Cores, plan: FanOutPlan) -> Result<FanOut, BenchError> {
    let steps = u64::from(plan.rounds) * 2;
    let mut stage = Stage::begin(format!("one user changes, {} are notified", plan.watchers), steps);
    let friends: Vec<(u64, u64)> =
        (0..u64::from(plan.watchers)).map(|watcher| (WATCHED_USER, WATCHED_USER + 1 + watcher)).collect();
    let mut ours = Audience::gather(Testbed::start(&sides.gateway, cores, &friends)?, plan)?;
    ours.bare_bytes = sides.gateway.is_bare().then_some(STAND_IN_BYTES);
    let first = ours.round(plan.round / 4)?;
    let message_bytes = first.reply_bytes_mean().round() as usize;
    let mut bare = Audience::gather(Testbed::start(&sides.bare, cores, &[])?, plan)?;
    bare.bare_bytes = Some(message_bytes);
    bare.round(plan.round / 4)?;
    let mut comparison = Comparison::default();
    for round in 0..u64::from(plan.rounds) {
        comparison.tracker.push(ours.measured_round(plan.round)?);
        stage.at(2 * round + 1);
        comparison.baseline.push(bare.measured_round(plan.round)?);
    }
    stage.end(&format!("{:.3} of the bare server's processor time", comparison.cpu_ratio()));
    Ok(FanOut { watchers: plan.watchers, message_bytes, comparison })
}

struct Audience {
    testbed: Testbed,
    watchers: u32,
    changes: u64,
    /// On the bare server: the message size, header included.
    bare_bytes: Option<usize>,
}

impl Audience {
    fn gather(mut testbed: Testbed, plan: FanOutPlan) -> Result<Audience, BenchError> {
        testbed.fill(WATCHED_USER, 1)?;
        testbed.fill(WATCHED_USER + 1, plan.watchers)?;
        testbed.hold(Duration::from_secs(1))?;
        Ok(Audience { testbed, watchers: plan.watchers, changes: 0, bare_bytes: None })
    }

    fn measured_round(&mut self, length: Duration) -> Result<Round, BenchError> {
        let before = self.testbed.process.cpu_time()?;
        let tally = self.round(length)?;
        Ok(Round::new(&tally, self.testbed.process.cpu_time()?.since(before)))
    }

    fn round(&mut self, length: Duration) -> Result<LoadResult, BenchError> {
        let (began, before) = (self.testbed.clients.now(), self.testbed.clients.counts());
        let mut deliveries = 0;
        while self.testbed.clients.now() - began < length {
            deliveries += self.change()?;
        }
        let elapsed = self.testbed.clients.now() - began;
        let now = self.testbed.clients.counts();
        let messages = (now.messages - before.messages).max(1);
        let reply_bytes = (now.bytes - before.bytes) * deliveries / messages;
        Ok(LoadResult { replies: deliveries, reply_bytes, elapsed, ..LoadResult::default() })
    }

    /// Makes a change and waits until every watcher has received it.
    fn change(&mut self) -> Result<u64, BenchError> {
        self.changes += 1;
        let mark = format!("change {:012}", self.changes);
        let (line, own) = match self.bare_bytes {
            // The header of a frame of this size has four bytes.
            Some(bytes) => (format!("{TO_ALL}{mark}{:x<width$}", "", width = bytes.saturating_sub(24)), 1),
            None => (status_command(self.changes, &mark), 0),
        };
        self.testbed.clients.send(client_at(0), &line)?;
        let wanted = u64::from(self.watchers) + own;
        let (notified, mut disconnect) = (std::cell::Cell::new(0), None);
        let all_told = self.testbed.clients.poll_until(
            NOTIFY_LIMIT,
            |_| notified.get() >= wanted,
            &mut |member, event| {
                note_disconnect(event, &mut disconnect);
                if let Event::Message(line) = event
                    && (own == 1 || member != client_at(0))
                    && memchr::memmem::find(line, mark.as_bytes()).is_some()
                {
                    notified.set(notified.get() + 1);
                }
            },
        )?;
        fail_if_disconnected(disconnect)?;
        if !all_told {
            let in_flight = (wanted - notified.get()) as usize;
            return Err(BenchError::Timeout { waited_s: NOTIFY_LIMIT.as_secs(), in_flight });
        }
        Ok(wanted)
    }
}

fn status_command(id: u64, text: &str) -> String {
    let data = format!(r#"{{"status":"online","text":"{text}"}}"#);
    format!(r#"{{"id":{},"rpc":{{"method":"status.set","data":{data}}}}}"#, id + 1)
}
