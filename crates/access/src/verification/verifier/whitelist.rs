//! Applies changes of the whitelist to cached answers, and writes to the whitelist.

use std::sync::Arc;
use std::time::Duration;

use domain::Passkey;

use super::{TaskResult, Verifier, within};
use crate::error::AccessError;
use crate::verification::answers::{AnswerCache, CachedAnswer, Source};
use crate::verification::whitelist_writes::WhitelistWrite;
use crate::whitelist::feed::{PasskeyChange, PasskeyFeed};

/// Time limit of one lookup of a recheck.
const RECHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Passkeys per lookup of a recheck.
const RECHECK_BATCH_MAX: usize = 1000;
/// Time limit of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Passkeys with the answers that were cached when their lookup began.
pub(super) type RecheckBatch = Vec<(Passkey, CachedAnswer)>;

/// Compares all cached answers with a replaced whitelist, in batches.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    remaining: Vec<Passkey>,
    is_running: bool,
    /// The whitelist was replaced again: the result of the running batch is discarded.
    is_outdated: bool,
}

impl Recheck {
    /// Starts, or starts over.
    fn begin(&mut self, answers: &AnswerCache) {
        self.remaining = answers.passkeys();
        self.is_outdated = self.is_running;
    }

    /// The next batch, unless one is running.
    fn next(&mut self, answers: &AnswerCache) -> Option<RecheckBatch> {
        if self.is_running || self.remaining.is_empty() {
            return None;
        }
        let from = self.remaining.len().saturating_sub(RECHECK_BATCH_MAX);
        let batch: RecheckBatch = self
            .remaining
            .drain(from..)
            .filter_map(|passkey| answers.get(&passkey).map(|answer| (passkey, answer)))
            .collect();
        self.is_running = !batch.is_empty();
        self.is_running.then_some(batch)
    }

    /// Ends the running batch. Returns whether its result counts.
    fn end(&mut self) -> bool {
        self.is_running = false;
        !std::mem::take(&mut self.is_outdated)
    }
}

/// Changes of the whitelist.
impl Verifier {
    /// Reads the change feed, if that is due and no read is in progress.
    pub(super) fn read_feed(&mut self, now: Duration) {
        if now < self.feed_due {
            return;
        }
        let Some(mut feed) = self.feed.take() else { return };
        self.feed_read_begun = now;
        self.feed_due = now + self.settings.feed_every;
        self.tasks.spawn(async move {
            let changes = feed.next_changes().await;
            TaskResult::Feed(Box::new(feed), changes)
        });
    }

    pub(super) fn on_feed(&mut self, feed: PasskeyFeed, changes: Result<Vec<PasskeyChange>, AccessError>) {
        self.feed = Some(feed);
        match changes {
            Ok(changes) => {
                changes.into_iter().for_each(|change| self.on_change(change));
                self.writes.on_feed_read(self.feed_read_begun);
            }
            Err(error) => self.warn_of_whitelist(&error),
        }
    }

    fn on_change(&mut self, change: PasskeyChange) {
        match change {
            PasskeyChange::Added(passkey) => {
                self.pending.mark_outdated(&passkey);
                self.writes.on_added(&passkey);
                self.begin_write();
                if self.answers().get(&passkey).is_some_and(|answer| answer.verified.is_none()) {
                    self.answers().remove(&passkey);
                }
            }
            PasskeyChange::Removed(passkey) => {
                self.whitelist.accept_missing();
                self.on_removed(&passkey);
            }
            PasskeyChange::Replaced => {
                self.whitelist.accept_missing();
                self.pending.mark_all_outdated();
                let now = self.now();
                for passkey in self.writes.on_replaced() {
                    self.answers().expire(&passkey, now);
                    self.remove_from_whitelist(passkey);
                }
                self.recheck.begin(self.unknown_passkeys.answers());
                self.continue_recheck();
            }
        }
    }

    fn on_removed(&mut self, passkey: &Passkey) {
        self.pending.mark_outdated(passkey);
        if !self.writes.on_removed(passkey) {
            self.counters().whitelist_removals_failed.increment();
        }
        self.begin_write();
        let removed = self.answers().remove(passkey);
        if let Some(user) = removed.and_then(|answer| answer.account()) {
            self.revoke(user);
        } else if let Some(holder) = self.gate.holder(passkey).filter(|holder| holder.is_external) {
            self.revoke(holder.id);
        }
    }

    pub(super) fn continue_recheck(&mut self) {
        let Some(batch) = self.recheck.next(self.unknown_passkeys.answers()) else { return };
        let whitelist = Arc::clone(&self.whitelist);
        self.tasks.spawn(async move {
            let passkeys: Vec<Passkey> = batch.iter().map(|(passkey, _)| *passkey).collect();
            let found = within(RECHECK_TIMEOUT, whitelist.check(&passkeys)).await;
            TaskResult::Recheck(batch, found)
        });
    }

    pub(super) fn on_recheck(&mut self, batch: RecheckBatch, found: Result<Vec<bool>, AccessError>) {
        let counts = self.recheck.end();
        match found {
            // Retried at the next tick.
            Err(error) => {
                self.warn_of_whitelist(&error);
                if counts {
                    self.recheck.remaining.extend(batch.into_iter().map(|(passkey, _)| passkey));
                }
            }
            Ok(found) => {
                if counts {
                    batch.into_iter().zip(found).for_each(|(cached, is_in)| self.compare(cached, is_in));
                }
                self.continue_recheck();
            }
        }
    }

    fn compare(&mut self, (passkey, cached): (Passkey, CachedAnswer), is_in: bool) {
        let is_by_redis_key = cached.verified.is_some_and(|(_, source)| source == Source::RedisKey);
        if cached.verified.is_some() == is_in
            || is_by_redis_key
            || self.answers().get(&passkey) != Some(cached)
        {
            return;
        }
        match cached.account() {
            // The next announce triggers a call of the endpoint, whose negative answer evicts the user's peers.
            Some(_) if self.endpoint.is_some() => self.answers().expire(&passkey, self.now()),
            Some(user) => {
                self.answers().remove(&passkey);
                self.revoke(user);
            }
            None => drop(self.answers().remove(&passkey)),
        }
    }
}

/// Writes to the whitelist.
impl Verifier {
    pub(super) fn add_to_whitelist(&mut self, passkey: Passkey) {
        if !self.writes.add(passkey) {
            self.counters().whitelist_adds_dropped.increment();
        }
        self.begin_write();
    }

    pub(super) fn remove_from_whitelist(&mut self, passkey: Passkey) {
        if !self.writes.remove(passkey) {
            self.counters().whitelist_removals_failed.increment();
        }
        self.begin_write();
    }

    /// Begins the next write, unless one is in flight.
    fn begin_write(&mut self) {
        let Some(write) = self.writes.next() else { return };
        let whitelist = Arc::clone(&self.whitelist);
        self.tasks.spawn(async move {
            let outcome = match write {
                WhitelistWrite::Add(passkeys) => within(WRITE_TIMEOUT, whitelist.add(&passkeys)).await,
                WhitelistWrite::Remove(passkeys) => within(WRITE_TIMEOUT, whitelist.remove(&passkeys)).await,
            };
            TaskResult::Write(outcome.map(|_| ()))
        });
    }

    /// A failed addition is not retried: it follows again from the next answer of the endpoint.
    pub(super) fn on_write(&mut self, outcome: Result<(), AccessError>) {
        let ended = self.writes.end(self.elapsed());
        let counters = self.counters();
        match (&ended, &outcome) {
            (Some(WhitelistWrite::Add(passkeys)), Ok(())) => {
                counters.whitelist_adds.add(passkeys.len() as u64);
            }
            (Some(WhitelistWrite::Add(passkeys)), Err(_)) => {
                counters.whitelist_adds_failed.add(passkeys.len() as u64);
            }
            (Some(WhitelistWrite::Remove(passkeys)), Ok(())) => {
                counters.whitelist_removals.add(passkeys.len() as u64);
                // Redis deletes a set with its last member.
                self.whitelist.accept_missing();
            }
            (Some(WhitelistWrite::Remove(passkeys)), Err(_)) => {
                counters.whitelist_removals_failed.add(passkeys.len() as u64);
            }
            (None, _) => {}
        }
        if let Some(WhitelistWrite::Remove(passkeys)) = &ended {
            // A lookup in progress may still have found them.
            passkeys.iter().for_each(|passkey| self.pending.mark_outdated(passkey));
        }
        if let Err(error) = outcome {
            self.warn_of_whitelist(&error);
        }
        self.begin_write();
    }
}
