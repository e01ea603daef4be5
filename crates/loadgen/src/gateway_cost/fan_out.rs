//! What it costs to tell many of one: a person with many friends changes their text again and again, each time once all
//! friends have been told of the last. Held against messages of the same size that the bare server sends to everybody.

use std::time::Duration;

use serde::Serialize;

use super::ground::{Ground, Sides, member_at, none_lost, note_trouble};
use crate::crowd::Event;
use crate::error::LoadError;
use crate::floor::websocket::TO_ALL;
use crate::load::Tally;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rounds::{Comparison, Round};

/// How long everybody may take to be told.
const TOLD_LIMIT: Duration = Duration::from_secs(20);
/// The size of a message where a bare server stands in for the gateway.
const STAND_IN_BYTES: usize = 256;
/// The one who is watched.
const PERSON: u64 = 1;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct FanOutPlan {
    /// Friends who watch.
    pub watchers: u32,
    /// Rounds against each server.
    pub rounds: u32,
    /// How long one lasts.
    pub round: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct FanOut {
    /// Friends who watch.
    pub watchers: u32,
    /// The size of a message to each of them.
    pub message_bytes: usize,
    /// The rounds; what is counted are deliveries.
    pub comparison: Comparison,
}

/// Measures both, round by round in turn.
pub fn measure(sides: &Sides, cores: Cores, plan: FanOutPlan) -> Result<FanOut, LoadError> {
    let steps = u64::from(plan.rounds) * 2;
    let mut stage = Stage::begin(format!("one person changes, {} are told", plan.watchers), steps);
    let friends: Vec<(u64, u64)> =
        (0..u64::from(plan.watchers)).map(|watcher| (PERSON, PERSON + 1 + watcher)).collect();
    let mut ours = Audience::gather(Ground::start(&sides.gateway, cores, &friends)?, plan)?;
    ours.bare_bytes = sides.gateway.is_bare().then_some(STAND_IN_BYTES);
    let first = ours.round(plan.round / 4)?;
    let message_bytes = first.reply_bytes_mean().round() as usize;
    let mut bare = Audience::gather(Ground::start(&sides.bare, cores, &[])?, plan)?;
    bare.bare_bytes = Some(message_bytes);
    bare.round(plan.round / 4)?;
    let mut comparison = Comparison::default();
    for round in 0..u64::from(plan.rounds) {
        comparison.tracker.push(ours.measured_round(plan.round)?);
        stage.at(2 * round + 1);
        comparison.floor.push(bare.measured_round(plan.round)?);
    }
    stage.end(&format!("{:.3} of the bare server's processor time", comparison.cpu_ratio()));
    Ok(FanOut { watchers: plan.watchers, message_bytes, comparison })
}

struct Audience {
    ground: Ground,
    watchers: u32,
    changes: u64,
    /// On the bare server: how long a message is, its head included.
    bare_bytes: Option<usize>,
}

impl Audience {
    fn gather(mut ground: Ground, plan: FanOutPlan) -> Result<Audience, LoadError> {
        ground.fill(PERSON, 1)?;
        ground.fill(PERSON + 1, plan.watchers)?;
        ground.hold(Duration::from_secs(1))?;
        Ok(Audience { ground, watchers: plan.watchers, changes: 0, bare_bytes: None })
    }

    fn measured_round(&mut self, length: Duration) -> Result<Round, LoadError> {
        let before = self.ground.process.cpu_time()?;
        let tally = self.round(length)?;
        Ok(Round::new(&tally, self.ground.process.cpu_time()?.since(before)))
    }

    fn round(&mut self, length: Duration) -> Result<Tally, LoadError> {
        let (began, heard) = (self.ground.crowd.now(), self.ground.crowd.counts());
        let mut deliveries = 0;
        while self.ground.crowd.now() - began < length {
            deliveries += self.change()?;
        }
        let elapsed = self.ground.crowd.now() - began;
        let now = self.ground.crowd.counts();
        let messages = (now.messages - heard.messages).max(1);
        let reply_bytes = (now.bytes - heard.bytes) * deliveries / messages;
        Ok(Tally { replies: deliveries, reply_bytes, elapsed, ..Tally::default() })
    }

    /// Changes something, and waits until every watcher has been told.
    fn change(&mut self) -> Result<u64, LoadError> {
        self.changes += 1;
        let mark = format!("change {:012}", self.changes);
        let (line, own) = match self.bare_bytes {
            // The head of a frame of such a size takes four bytes.
            Some(bytes) => (format!("{TO_ALL}{mark}{:x<width$}", "", width = bytes.saturating_sub(24)), 1),
            None => (status_command(self.changes, &mark), 0),
        };
        self.ground.crowd.send(member_at(0), &line)?;
        let wanted = u64::from(self.watchers) + own;
        let (told, mut trouble) = (std::cell::Cell::new(0), None);
        let all_told =
            self.ground.crowd.turn_until(TOLD_LIMIT, |_| told.get() >= wanted, &mut |member, event| {
                note_trouble(event, &mut trouble);
                if let Event::Message(line) = event
                    && (own == 1 || member != member_at(0))
                    && memchr::memmem::find(line, mark.as_bytes()).is_some()
                {
                    told.set(told.get() + 1);
                }
            })?;
        none_lost(trouble)?;
        if !all_told {
            let in_flight = (wanted - told.get()) as usize;
            return Err(LoadError::Silent { silent_s: TOLD_LIMIT.as_secs(), in_flight });
        }
        Ok(wanted)
    }
}

fn status_command(id: u64, text: &str) -> String {
    let data = format!(r#"{{"status":"online","text":"{text}"}}"#);
    format!(r#"{{"id":{},"rpc":{{"method":"status.set","data":{data}}}}}"#, id + 1)
}
