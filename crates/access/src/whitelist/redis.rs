//! The whitelist as a set in Redis (`pt:passkeys`), where the site and other programs find it.
//!
//! A refresh fills another set, and one script renames both. The new set expires ten minutes after its last batch. If it
//! expired, was evicted or lost members in a failover, it has fewer members than were added, and the script refuses it: an
//! incomplete set never becomes the whitelist. The script stores a note of what it did, so that a call whose reply was lost
//! can be repeated.
//!
//! Redis has no empty sets, so a missing set may be empty, lost, or between the two `RENAME`s of a manual refresh.
//! [`Whitelist::check`] treats it as empty if it was never seen, or has been missing for an hour.
//!
//! Passkeys are looked up in lower case only (W1), also if the site wrote upper case.

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

/// Expiry of a new set after its last batch.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Members per command, which blocks Redis.
const MEMBERS_PER_COMMAND: usize = 1000;
/// Members per pipeline.
const MEMBERS_PER_TRIP: usize = 10_000;
/// A set that is missing for this long counts as empty.
const MISSING_MAX: Duration = Duration::from_secs(3600);
/// Calls of a script whose reply is lost.
const SCRIPT_TRIES: u32 = 3;

/// The whitelist in Redis, single, sentinel or cluster.
#[derive(Clone, Debug)]
pub struct RedisWhitelist {
    redis: Redis,
    names: KeyNames,
    idle_max: Duration,
    /// Shared by clones.
    existence: Arc<Mutex<Existence>>,
}

impl RedisWhitelist {
    pub fn new(redis: Redis, names: KeyNames) -> Self {
        RedisWhitelist { redis, names, idle_max: IDLE_MAX, existence: Arc::default() }
    }

    /// Expiry of a new set after its last batch. Default: ten minutes.
    pub fn idle_max(mut self, idle_max: Duration) -> Self {
        self.idle_max = idle_max;
        self
    }

    /// `command` replies with the number of changed members.
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
        for batch in passkeys.chunks(MEMBERS_PER_COMMAND) {
            let command = with_members("SMISMEMBER", self.names.whitelist(), batch);
            answers.extend(complete(self.redis.query(&command).await?, batch)?);
        }
        Ok(answers)
    }

    async fn check(&self, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
        let mut answers = Vec::with_capacity(passkeys.len());
        for batch in passkeys.chunks(MEMBERS_PER_COMMAND) {
            let changes = self.existence.lock().changes;
            let mut both = Pipeline::new();
            both.add_command(with_members("SMISMEMBER", self.names.whitelist(), batch));
            both.cmd("EXISTS").arg(self.names.whitelist());
            // One transaction, so that both refer to the same set.
            let mut replies = self.redis.transaction(&both).await?.into_iter();
            let unanswered = || unexpected("a transaction has too few replies");
            let found = read_reply(replies.next().ok_or_else(unanswered)?)?;
            let exists = read_reply(replies.next().ok_or_else(unanswered)?)?;
            if self.existence.lock().is_uncertain(exists, changes, Instant::now()) {
                return Err(AccessError::WhitelistMissing);
            }
            answers.extend(complete(found, batch)?);
        }
        Ok(answers)
    }

    fn accept_missing(&self) {
        let mut existence = self.existence.lock();
        *existence = Existence { last_seen: None, changes: existence.changes + 1 };
    }

    async fn count(&self) -> Result<u64, AccessError> {
        Ok(self.redis.query(cmd("SCARD").arg(self.names.whitelist())).await?)
    }

    async fn begin_refresh(&self) -> Result<Box<dyn Refresh>, AccessError> {
        let token = random_token()?;
        let key = self.names.whitelist_new(&token);
        Ok(Box::new(RedisRefresh { whitelist: self.clone(), token, key, members: 0, is_complete: true }))
    }

    async fn undo(&self) -> Result<Option<Replaced>, AccessError> {
        let token = random_token()?;
        // A temporary name for the exchange of the two sets.
        let temporary = self.names.whitelist_new(&token);
        let names = &self.names;
        let keys = [names.whitelist(), names.whitelist_old(), &temporary, names.whitelist_last_change()];
        let mut call = scripts::WHITELIST_UNDO.call(&keys);
        call.arg(&token);
        Ok(replaced(self.run_idempotent(&call).await?))
    }

    async fn tidy(&self) -> Result<bool, AccessError> {
        // Abandoned sets expire.
        Ok(false)
    }
}

impl RedisWhitelist {
    /// Repeats a script whose reply is lost; it recognises by its token that it has run.
    async fn run_idempotent(&self, call: &Cmd) -> Result<Option<(u64, u64)>, RedisError> {
        let mut tries = 1;
        loop {
            match self.redis.query(call).await {
                Err(RedisError::Unanswered { .. }) if tries < SCRIPT_TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }
}

struct RedisRefresh {
    whitelist: RedisWhitelist,
    token: String,
    key: String,
    /// Members that the set must have.
    members: u64,
    /// False after a failed batch.
    is_complete: bool,
}

impl RedisRefresh {
    /// In a transaction, so that a set never exists without expiry.
    async fn send(&mut self, passkeys: &[Passkey]) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for members in passkeys.chunks(MEMBERS_PER_COMMAND) {
            pipeline.add_command(with_members("SADD", &self.key, members));
        }
        let idle_ms = u64::try_from(self.whitelist.idle_max.as_millis()).unwrap_or(u64::MAX);
        pipeline.cmd("PEXPIRE").arg(&self.key).arg(idle_ms);
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
            self.is_complete &= outcome.is_ok();
            outcome?;
        }
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<Replaced, AccessError> {
        if !self.is_complete {
            return Err(AccessError::RefreshLost);
        }
        let names = &self.whitelist.names;
        let keys = [names.whitelist(), names.whitelist_old(), &self.key, names.whitelist_last_change()];
        let mut call = scripts::WHITELIST_SWITCH.call(&keys);
        call.arg(&self.token).arg(self.members);
        let done = self.whitelist.run_idempotent(&call).await?;
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

/// Whether the set exists, as far as this process has seen.
#[derive(Debug, Default)]
struct Existence {
    last_seen: Option<Instant>,
    /// Number of changes through Rollcall. A lookup that began before the latest one does not count.
    changes: u64,
}

impl Existence {
    /// Whether the set is missing, but existed within [`MISSING_MAX`]. `changes` is the number at the begin of the lookup.
    fn is_uncertain(&mut self, exists: bool, changes: u64, now: Instant) -> bool {
        if exists && changes == self.changes {
            self.last_seen = Some(now);
        }
        !exists && self.last_seen.is_some_and(|seen| now.saturating_duration_since(seen) < MISSING_MAX)
    }
}

/// Checks the number of replies.
fn complete(found: Vec<bool>, passkeys: &[Passkey]) -> Result<Vec<bool>, AccessError> {
    match found.len() == passkeys.len() {
        true => Ok(found),
        false => Err(unexpected("SMISMEMBER has too few replies").into()),
    }
}

fn unexpected(reason: &str) -> RedisError {
    RedisError::Other { code: "unexpected reply".to_owned(), reason: reason.to_owned() }
}

fn replaced(done: Option<(u64, u64)>) -> Option<Replaced> {
    done.map(|(before, after)| Replaced { before, after })
}

/// Distinguishes concurrent refreshes.
fn random_token() -> Result<String, AccessError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(AccessError::Random)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn w2_a_missing_set_is_empty_if_it_was_never_seen_or_not_for_an_hour() {
        let (mut existence, start) = (Existence::default(), Instant::now());
        let mut is_uncertain_after =
            |seconds, exists| existence.is_uncertain(exists, 0, start + Duration::from_secs(seconds));
        assert!(!is_uncertain_after(0, false), "never seen");
        assert!(!is_uncertain_after(10, true));
        assert!(is_uncertain_after(11, false));
        assert!(is_uncertain_after(10 + 3599, false));
        assert!(!is_uncertain_after(10 + 3600, false));
        // A lookup that began before a change through Rollcall.
        existence = Existence { last_seen: None, changes: 1 };
        assert!(!existence.is_uncertain(true, 0, start));
        assert!(!existence.is_uncertain(false, 1, start));
    }
}
