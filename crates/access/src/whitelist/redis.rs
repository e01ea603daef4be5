//! The whitelist as a set in Redis (`pt:passkeys`), where the site and other programs find it.
//!
//! # How
//!
//! A refresh fills a set of its own beside the whitelist, and one script renames both. That set expires when its builder
//! has been silent for ten minutes. Should it have expired, been evicted or lost a part in a failover meanwhile, it has
//! fewer members than were put in, and the script refuses it: a set with a hole is never made the whitelist.
//!
//! The script also leaves a note of what it did, so that a call whose answer got lost can be made again.
//!
//! Redis has no empty sets, so a set that is missing may be empty, lost, or between the two `RENAME`s of a refresh by
//! hand. [`Whitelist::check`] believes that it is empty where it was never seen, or is missing for an hour.
//!
//! # Deliberately absent
//!
//! Lower case where the site wrote upper case: the set is asked for passkeys as W1 has them.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Pipeline, cmd};
use async_trait::async_trait;
use domain::Passkey;
use keyspace::{KeyNames, Redis, RedisError, read_reply, scripts};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Refresh, Replaced, Whitelist};
use crate::error::AccessError;

/// A set whose builder was silent for this long expires.
const SILENT_MAX: Duration = Duration::from_secs(600);
/// Members in one command. Redis does nothing else meanwhile.
const MEMBERS_PER_COMMAND: usize = 1000;
/// Members sent together.
const MEMBERS_PER_TRIP: usize = 10_000;
/// A set that is missing for this long is empty.
const MISSING_MAX: Duration = Duration::from_secs(3600);
/// How often a script is called again after Redis went away without saying whether it was run.
const SWITCH_TRIES: u32 = 3;

/// The whitelist in Redis, single, sentinel or cluster.
#[derive(Clone, Debug)]
pub struct RedisWhitelist {
    redis: Redis,
    names: KeyNames,
    silent_max: Duration,
    /// Shared by clones.
    sightings: Arc<Mutex<Sightings>>,
}

impl RedisWhitelist {
    /// The whitelist in this Redis.
    pub fn new(redis: Redis, names: KeyNames) -> Self {
        RedisWhitelist { redis, names, silent_max: SILENT_MAX, sightings: Arc::default() }
    }

    /// Lets sets expire whose builders were silent for this long, instead of ten minutes.
    pub fn silent_max(mut self, silence: Duration) -> Self {
        self.silent_max = silence;
        self
    }

    /// Sends passkeys with a command that answers with how many it concerned.
    async fn change(&self, command: &str, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        let mut changed = 0;
        for trip in passkeys.chunks(MEMBERS_PER_TRIP) {
            let mut pipeline = Pipeline::new();
            for members in trip.chunks(MEMBERS_PER_COMMAND) {
                pipeline.add_command(with_members(command, self.names.whitelist(), members));
            }
            for reply in self.redis.pipeline(&pipeline).await {
                changed += read_reply::<u64>(reply)?;
            }
        }
        Ok(changed)
    }
}

#[async_trait]
impl Whitelist for RedisWhitelist {
    async fn add(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        self.change("SADD", passkeys).await
    }

    async fn remove(&self, passkeys: &[Passkey]) -> Result<u64, AccessError> {
        self.change("SREM", passkeys).await
    }

    async fn contains(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        let mut answers = Vec::with_capacity(passkeys.len());
        for asked in passkeys.chunks(MEMBERS_PER_COMMAND) {
            let command = with_members("SMISMEMBER", self.names.whitelist(), asked);
            answers.extend(complete(self.redis.query(&command).await?, asked)?);
        }
        Ok(answers)
    }

    async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        let mut answers = Vec::with_capacity(passkeys.len());
        for asked in passkeys.chunks(MEMBERS_PER_COMMAND) {
            let begun = self.sightings.lock().changes;
            let mut both = Pipeline::new();
            both.add_command(with_members("SMISMEMBER", self.names.whitelist(), asked));
            both.cmd("EXISTS").arg(self.names.whitelist());
            // In one transaction, so that both are about the same set.
            let mut replies = self.redis.transaction(&both).await?.into_iter();
            let unanswered = || unexpected("a transaction did not answer for every command");
            let found = read_reply(replies.next().ok_or_else(unanswered)?)?;
            let exists = read_reply(replies.next().ok_or_else(unanswered)?)?;
            if self.sightings.lock().is_unsettled(exists, begun, Instant::now()) {
                return Err(AccessError::WhitelistMissing);
            }
            answers.extend(complete(found, asked)?);
        }
        Ok(answers)
    }

    fn believe_missing(&self) {
        let mut sightings = self.sightings.lock();
        *sightings = Sightings { last_seen: None, changes: sightings.changes + 1 };
    }

    async fn count(&self) -> Result<u64, AccessError> {
        Ok(self.redis.query(cmd("SCARD").arg(self.names.whitelist())).await?)
    }

    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError> {
        let token = random_token()?;
        let key = self.names.whitelist_new(&token);
        Ok(Box::new(RedisRefresh { whitelist: self.clone(), token, key, members: 0, is_whole: true }))
    }

    async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        let token = random_token()?;
        // Where the two sets change places, one of them needs a third name for a moment.
        let aside = self.names.whitelist_new(&token);
        let names = &self.names;
        let keys = [names.whitelist(), names.whitelist_old(), &aside, names.whitelist_last_change()];
        let mut call = scripts::WHITELIST_UNDO.call(&keys);
        call.arg(&token);
        Ok(replaced(self.run_surely(&call).await?))
    }

    async fn tidy(&self) -> Result<bool, AccessError> {
        // Redis clears away by itself.
        Ok(false)
    }
}

impl RedisWhitelist {
    /// Calls a script that knows by its token that it was run already.
    async fn run_surely(&self, call: &Cmd) -> Result<Option<(u64, u64)>, RedisError> {
        let mut tries = 1;
        loop {
            match self.redis.query(call).await {
                Err(RedisError::Unanswered { .. }) if tries < SWITCH_TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }
}

/// A set that is being built.
struct RedisRefresh {
    whitelist: RedisWhitelist,
    token: String,
    key: String,
    /// How many members the set must have.
    members: u64,
    /// False once a batch has failed.
    is_whole: bool,
}

impl RedisRefresh {
    /// All or nothing, so that there is never a set that does not expire.
    async fn send(&mut self, passkeys: &[Passkey]) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for members in passkeys.chunks(MEMBERS_PER_COMMAND) {
            pipeline.add_command(with_members("SADD", &self.key, members));
        }
        let silent_ms = u64::try_from(self.whitelist.silent_max.as_millis()).unwrap_or(u64::MAX);
        pipeline.cmd("PEXPIRE").arg(&self.key).arg(silent_ms);
        let replies = self.whitelist.redis.transaction(&pipeline).await?;
        let sets = replies.len().saturating_sub(1);
        for reply in replies.into_iter().take(sets) {
            self.members += read_reply::<u64>(reply)?;
        }
        Ok(())
    }
}

#[async_trait]
impl Refresh for RedisRefresh {
    async fn add(&mut self, passkeys: &[Passkey]) -> Result<(), AccessError> {
        for trip in passkeys.chunks(MEMBERS_PER_TRIP) {
            let outcome = self.send(trip).await;
            self.is_whole &= outcome.is_ok();
            outcome?;
        }
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError> {
        if !self.is_whole {
            return Err(AccessError::RefreshLost);
        }
        let names = &self.whitelist.names;
        let keys = [names.whitelist(), names.whitelist_old(), &self.key, names.whitelist_last_change()];
        let mut call = scripts::WHITELIST_SWITCH.call(&keys);
        call.arg(&self.token).arg(self.members);
        let done = self.whitelist.run_surely(&call).await?;
        replaced(done).ok_or(AccessError::RefreshLost)
    }

    async fn abandon(self: Box<Self>) -> Result<(), AccessError> {
        Ok(self.whitelist.redis.query(cmd("UNLINK").arg(&self.key)).await?)
    }
}

fn with_members(command: &str, key: &str, passkeys: &[Passkey]) -> Cmd {
    let mut command = cmd(command);
    command.arg(key);
    for passkey in passkeys {
        command.arg(passkey.to_string());
    }
    command
}

/// When the set was there, as far as this process looked.
#[derive(Debug, Default)]
struct Sightings {
    last_seen: Option<Instant>,
    /// Changes through us. A look that began before the latest one says nothing about the set as it is now.
    changes: u64,
}

impl Sightings {
    /// Whether the set is missing at this moment, and was there lately. The look began after so many `changes`.
    fn is_unsettled(&mut self, exists: bool, changes: u64, now: Instant) -> bool {
        if exists && changes == self.changes {
            self.last_seen = Some(now);
        }
        !exists && self.last_seen.is_some_and(|seen| now.saturating_duration_since(seen) < MISSING_MAX)
    }
}

/// The answers, if there is one for every passkey.
fn complete(found: Vec<bool>, asked: &[Passkey]) -> Result<Vec<bool>, AccessError> {
    match found.len() == asked.len() {
        true => Ok(found),
        false => Err(unexpected("SMISMEMBER did not answer for every passkey").into()),
    }
}

fn unexpected(reason: &str) -> RedisError {
    RedisError::Other { code: "a reply nobody expected".to_owned(), reason: reason.to_owned() }
}

fn replaced(done: Option<(u64, u64)>) -> Option<Replaced> {
    done.map(|(before, after)| Replaced { before, after })
}

/// Tells one builder's set from another's.
fn random_token() -> Result<String, AccessError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn w2_a_set_that_is_missing_is_empty_if_it_was_never_there_or_not_for_an_hour() {
        let (mut sightings, start) = (Sightings::default(), Instant::now());
        let mut is_unsettled_after =
            |seconds, exists| sightings.is_unsettled(exists, 0, start + Duration::from_secs(seconds));
        assert!(!is_unsettled_after(0, false), "never there");
        assert!(!is_unsettled_after(10, true));
        assert!(is_unsettled_after(11, false));
        assert!(is_unsettled_after(10 + 3599, false));
        assert!(!is_unsettled_after(10 + 3600, false));
        // A look that began before a change through us, and ended after it.
        sightings = Sightings { last_seen: None, changes: 1 };
        assert!(!sightings.is_unsettled(true, 0, start));
        assert!(!sightings.is_unsettled(false, 1, start));
    }
}
