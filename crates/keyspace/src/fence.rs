//! Fenced writes: of several processes, only the one that last claimed may write.
//!
//! # Guarantees
//!
//! - Once a session has begun, no write of an earlier one is executed, however late it arrives. So what a session has
//!   read stays what is stored, apart from writes by other programs, until its next write fails.
//! - A session ends with the first error. Redis that lost data (`FLUSHALL`, a failover) ends it too.
//! - On a single server a write is executed whole or not at all; on a cluster, the part in each slot.
//!
//! # How
//!
//! A claim writes a token to a key, the fence. On a single server a session has a connection of its own, on which Redis
//! watches the fence: each write is a `MULTI` transaction, which Redis discards if the fence was written or deleted
//! since. The end of the connection ends the session, so a failover does too. On a cluster each slot has a fence,
//! claimed before anything is read from the slot. A write is one script call per slot, which compares the fence with
//! the token and the number of writes so far, and counts up: a master that lost writes has an older number. No script
//! is called on a single server, where each command in a script costs twice as much as in a transaction.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use redis::{Arg, Cmd, Pipeline, Value};

use crate::error::RedisError;
use crate::handle::{DedicatedConnection, Redis, Reply, read_reply};
use crate::hash_slots::{SLOTS, key_of, slot_of};
use crate::scripts;
use crate::settings::Mode;

/// Words of one script call: bounded by Lua's `unpack` and by the time that a script blocks Redis.
const CALL_WORDS_MAX: usize = 4000;

#[derive(Clone, Debug, thiserror::Error)]
pub enum FenceError {
    /// Another process claimed, or Redis lost the fence.
    #[error("another writer has claimed these keys, or Redis lost data")]
    Superseded,
    #[error(transparent)]
    Redis(#[from] RedisError),
}

/// From a claim to the first error.
#[derive(Debug)]
pub struct FencedSession {
    redis: Redis,
    fence: String,
    token: String,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Single(Box<DedicatedConnection>),
    /// Number of writes in each claimed slot.
    Cluster(HashMap<u16, u64>),
}

impl FencedSession {
    /// Claims. `fence` names the fence, and on a cluster the beginning of the fences.
    pub async fn begin(redis: &Redis, fence: &str) -> Result<FencedSession, FenceError> {
        let random = || RandomState::new().hash_one(fence);
        let token = format!("{:016x}{:016x}", random(), random());
        let transport = match redis.mode() {
            Mode::Cluster => Transport::Cluster(HashMap::new()),
            Mode::Single | Mode::Sentinel => {
                let mut connection = redis.dedicated(fence).await?;
                let mut claim = Pipeline::new();
                claim.cmd("SET").arg(fence).arg(&token);
                claim.cmd("WATCH").arg(fence);
                claim.cmd("GET").arg(fence);
                let replies = connection.pipeline(&claim).await?;
                check_watched(&replies, &token)?;
                Transport::Single(Box::new(connection))
            }
        };
        Ok(FencedSession { redis: redis.clone(), fence: fence.to_owned(), token, transport })
    }

    /// Sends commands that read. Each has its own outcome.
    pub async fn read(&mut self, pipeline: &Pipeline) -> Result<Vec<Reply>, FenceError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        match &mut self.transport {
            Transport::Single(connection) => {
                Ok(connection.pipeline(pipeline).await?.into_iter().map(Ok).collect())
            }
            Transport::Cluster(_) => {
                self.claim(pipeline.cmd_iter().filter_map(|command| key_of(command).map(slot_of))).await?;
                Ok(self.redis.pipeline(pipeline).await)
            }
        }
    }

    /// Executes commands that write, in order within a slot. Each has its own outcome; after an error of this function
    /// some may have been executed, and the session must be dropped.
    pub async fn write(&mut self, commands: Vec<Cmd>) -> Result<Vec<Reply>, FenceError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        match &mut self.transport {
            Transport::Single(connection) => {
                let (fence, token) = (&self.fence, &self.token);
                let mut pipeline = Pipeline::with_capacity(commands.len() + 4);
                pipeline.cmd("MULTI");
                commands.into_iter().for_each(|command| {
                    pipeline.add_command(command);
                });
                pipeline.cmd("EXEC").cmd("WATCH").arg(fence).cmd("GET").arg(fence);
                let mut replies = connection.pipeline(&pipeline).await?;
                let watched = replies.split_off(replies.len().saturating_sub(2));
                let executed = executed(replies)?;
                check_watched(&watched, token)?;
                Ok(executed)
            }
            Transport::Cluster(_) => {
                self.claim(commands.iter().filter_map(|command| key_of(command).map(slot_of))).await?;
                self.write_by_slot(&commands).await
            }
        }
    }

    fn fence_of(&self, slot: u16) -> String {
        format!("{}:{{{}}}", self.fence, tag_of_slot(slot))
    }

    fn value(&self, writes: u64) -> String {
        format!("{} {writes}", self.token)
    }

    /// Claims the slots that have not been claimed.
    async fn claim(&mut self, slots: impl Iterator<Item = u16>) -> Result<(), FenceError> {
        let Transport::Cluster(claimed) = &mut self.transport else { return Ok(()) };
        let mut new: Vec<u16> = slots.filter(|slot| !claimed.contains_key(slot)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        claimed.extend(new.iter().map(|slot| (*slot, 0)));
        let mut claims = Pipeline::new();
        for slot in new {
            claims.cmd("SET").arg(self.fence_of(slot)).arg(self.value(0));
        }
        for reply in self.redis.pipeline(&claims).await {
            reply?;
        }
        Ok(())
    }

    async fn write_by_slot(&mut self, commands: &[Cmd]) -> Result<Vec<Reply>, FenceError> {
        let mut by_slot: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (position, command) in commands.iter().enumerate() {
            let slot = key_of(command).map_or(0, slot_of);
            by_slot.entry(slot).or_default().push(position);
        }
        let (mut calls, mut positions) = (Pipeline::new(), Vec::new());
        for (slot, all) in by_slot {
            let mut rest = all.as_slice();
            while !rest.is_empty() {
                let (part, after) = rest.split_at(words_fitting(commands, rest));
                rest = after;
                calls.add_command(self.call(slot, part.iter().map(|position| &commands[*position])));
                positions.push(part.to_vec());
            }
        }
        let none = || Err(RedisError::malformed_reply("too few replies of fenced_write.lua"));
        let mut outcomes: Vec<Reply> = commands.iter().map(|_| none()).collect();
        for (positions, reply) in positions.iter().zip(self.redis.pipeline(&calls).await) {
            match reply? {
                Value::Array(replies) => {
                    for (position, reply) in positions.iter().zip(replies) {
                        outcomes[*position] = Ok(reply);
                    }
                }
                _ => return Err(FenceError::Superseded),
            }
        }
        Ok(outcomes)
    }

    fn call<'a>(&mut self, slot: u16, commands: impl Iterator<Item = &'a Cmd>) -> Cmd {
        let mut writes = 0;
        if let Transport::Cluster(claimed) = &mut self.transport {
            let count = claimed.entry(slot).or_default();
            writes = *count;
            *count += 1;
        }
        let mut call = scripts::FENCED_WRITE.call(&[&self.fence_of(slot)]);
        call.arg(self.value(writes)).arg(self.value(writes + 1));
        for command in commands {
            call.arg(words_of(command).count());
            words_of(command).for_each(|word| {
                call.arg(word);
            });
        }
        call
    }
}

fn words_of(command: &Cmd) -> impl Iterator<Item = &[u8]> {
    command.args_iter().filter_map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    })
}

/// How many of these commands fit into one call; at least one.
fn words_fitting(commands: &[Cmd], positions: &[usize]) -> usize {
    let mut words = 0;
    let fitting = positions.iter().take_while(|position| {
        words += words_of(&commands[**position]).count() + 1;
        words <= CALL_WORDS_MAX
    });
    fitting.count().max(1)
}

/// Replies of a transaction, from those of its connection up to `EXEC`.
fn executed(mut replies: Vec<Value>) -> Result<Vec<Reply>, FenceError> {
    let outcome = replies.pop().ok_or_else(|| RedisError::malformed_reply("no reply to EXEC"))?;
    match outcome {
        Value::Array(replies) => Ok(replies.into_iter().map(Ok).collect()),
        Value::Nil => Err(FenceError::Superseded),
        // A command was refused when it was queued: its error says more than that of EXEC.
        error => {
            let refused = replies.into_iter().find(|reply| matches!(reply, Value::ServerError(_)));
            read_reply::<()>(Ok(refused.unwrap_or(error)))?;
            Err(RedisError::malformed_reply("unexpected reply to EXEC").into())
        }
    }
}

/// Replies to `WATCH` and `GET` of the fence.
fn check_watched(replies: &[Value], token: &str) -> Result<(), FenceError> {
    for reply in replies {
        if let Value::ServerError(error) = reply {
            return Err(RedisError::from_reply(error).into());
        }
    }
    let found = replies.last().cloned().unwrap_or(Value::Nil);
    match read_reply::<Option<String>>(Ok(found))? == Some(token.to_owned()) {
        true => Ok(()),
        false => Err(FenceError::Superseded),
    }
}

/// A number whose hash slot is this one.
fn tag_of_slot(slot: u16) -> u32 {
    static TAGS: OnceLock<Vec<u32>> = OnceLock::new();
    let tags = TAGS.get_or_init(|| {
        let mut tags = vec![u32::MAX; usize::from(SLOTS)];
        let mut missing = tags.len();
        for number in 0_u32.. {
            let tag = &mut tags[usize::from(slot_of(number.to_string().as_bytes()))];
            if *tag == u32::MAX {
                *tag = number;
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        tags
    });
    tags[usize::from(slot % SLOTS)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_tag() {
        for slot in 0..SLOTS {
            assert_eq!(slot_of(format!("fence:{{{}}}", tag_of_slot(slot)).as_bytes()), slot);
        }
    }
}
