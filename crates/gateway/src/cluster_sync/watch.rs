//! Reads the records of users that are watched here: before they are shown, and then periodically.
//!
//! # Guarantees
//!
//! - A client that connects sees the current state of its friends (P4), whichever gateways they use; if the store
//!   does not answer in time, the state known here, and later the reply.
//! - A user with remote sessions is read again before an entry expires; without an answer, the sessions expire.
//! - A user without watchers and sessions here is no longer read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::UserId;
use presence::Moment;

use super::ClusterSync;
use super::sync_state::after;
use crate::hub::Hub;
use crate::hub::shard::Shard;

/// Users per read.
const BATCH_MAX: usize = 1_000;
/// Interval of the check for due reads.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Delay after a failed read.
const RETRY: Duration = Duration::from_secs(2);
/// Only a step back of the clock by more than this is one: it is also read out of order.
const STEP_MS_MIN: u64 = 2_000;
/// Users per second when all are read or published again.
const PACE: u64 = 5_000;

/// The paced time of the next user.
fn paced(now: Moment, place: &mut u64) -> Moment {
    *place += 1;
    Moment(now.0 + *place * 1000 / PACE)
}

pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sync) = &hub.context.sync else { return };
    loop {
        hub.follow_clock(sync);
        let asked = hub.check_due(sync).await;
        if asked < BATCH_MAX {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

impl Hub {
    /// Users whose record has not been read; they are read ([`Hub::load_remote`]) before they are shown. Empty
    /// without a cluster.
    pub(crate) fn unknown_users(&self, users: impl IntoIterator<Item = UserId>) -> Vec<(UserId, u64)> {
        let mut unknown_users = Vec::new();
        if self.context.sync.is_none() {
            return unknown_users;
        }
        let now = self.now();
        for user in users {
            if self.shard(user).start_watching(now, user) {
                unknown_users.push((user, 0));
            }
        }
        unknown_users.sort_unstable();
        unknown_users.dedup();
        unknown_users
    }

    /// Reads users that are about to be shown, within a time limit.
    pub(crate) async fn load_remote(&self, users: Vec<(UserId, u64)>) {
        let Some(sync) = self.context.sync.as_ref().filter(|_| !users.is_empty()) else { return };
        // An unreachable store is not waited for.
        let reading = tokio::time::timeout(sync.settings.read_timeout, self.read_store(sync, &users));
        if sync.is_unreachable() || !reading.await.unwrap_or(false) {
            self.context.counters.sync.timeouts.increment();
        }
    }

    /// If the clock stepped back, all plans go back with it. The roster sees to its own.
    pub(crate) fn follow_clock(&self, sync: &ClusterSync) {
        let now_ms = self.now().0;
        let by_ms = sync.clock_ms.swap(now_ms, Ordering::Relaxed).saturating_sub(now_ms);
        if by_ms < STEP_MS_MIN {
            return;
        }
        tracing::warn!(by_ms, "system clock stepped back; adjusting scheduled times");
        sync.step_back(by_ms);
        for shard in self.shards() {
            if let Some(sync_state) = &mut shard.lock().sync_state {
                sync_state.step_back(by_ms);
            }
        }
    }

    /// Reads the users that are due. Returns how many.
    async fn check_due(&self, sync: &ClusterSync) -> usize {
        let now = self.now();
        let mut users = Vec::new();
        for shard in self.shards_from(&sync.next_shard) {
            shard.lock().take_due_checks(now, BATCH_MAX, &mut users);
        }
        if users.is_empty() {
            return 0;
        }
        self.context.counters.sync.rechecked.add(users.len() as u64);
        if sync.is_unreachable() {
            self.expire_unanswered(&users);
        } else {
            self.read_store(sync, &users).await;
        }
        let known = self.shards().map(|shard| shard.lock().known()).sum();
        self.context.counters.sync.watched.set(known);
        users.len()
    }

    /// True if all reads were answered.
    async fn read_store(&self, sync: &ClusterSync, users: &[(UserId, u64)]) -> bool {
        let mut all_answered = true;
        for chunk in users.chunks(BATCH_MAX) {
            let answers = sync.store.watch(chunk).await;
            for ((user, version), answer) in chunk.iter().zip(answers) {
                match answer {
                    Ok(watched) => {
                        let now = self.now();
                        let after = self.shard(*user).apply_watch_reply(now, *user, watched, &self.context);
                        self.finish(after);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "cannot read a record; retrying");
                        all_answered = false;
                        self.expire_unanswered(&[(*user, *version)]);
                    }
                }
            }
        }
        all_answered
    }

    /// Without an answer, expired entries are removed.
    fn expire_unanswered(&self, users: &[(UserId, u64)]) {
        for (user, _) in users {
            let now = self.now();
            let mut shard = self.shard(*user);
            let after = shard.expire_remotes(now, *user, &self.context);
            shard.retry_check(now, *user);
            drop(shard);
            self.finish(after);
        }
    }

    /// Changes may have been missed: all users are read again, at a bounded rate. A user that is due earlier stays
    /// so, or its entries would be valid too long.
    pub(crate) fn recheck_all(&self) {
        let now = self.now();
        let mut place = 0;
        for shard in self.shards() {
            if let Some(sync_state) = &mut shard.lock().sync_state {
                sync_state.recheck_all(|| paced(now, &mut place));
            }
        }
    }

    /// Published entries may be lost: all local users are published again, at a bounded rate. A user that is due
    /// earlier stays so, or its entry would expire.
    pub(super) fn republish_all(&self) {
        let now = self.now();
        let mut place = 0;
        for shard in self.shards() {
            if let Some(sync_state) = &mut shard.lock().sync_state {
                for user in sync_state.published.keys().copied().collect::<Vec<UserId>>() {
                    sync_state.republish_by(user, paced(now, &mut place));
                }
            }
        }
    }

    /// Other gateways with sessions of the user, as far as known here.
    pub fn nodes_of(&self, user: UserId) -> Vec<crate::cluster::NodeName> {
        self.shard(user).sync_state.as_ref().map(|sync_state| sync_state.nodes(user)).unwrap_or_default()
    }
}

impl Shard {
    /// Takes the users that are due, with their known versions. Drops users that are not watched any more.
    fn take_due_checks(&mut self, now: Moment, limit: usize, users: &mut Vec<(UserId, u64)>) {
        let Some(mut sync_state) = self.sync_state.take() else { return };
        while users.len() < limit
            && let Some(user) = sync_state.checks.take_due(now)
        {
            let is_wanted = self.users.contains_key(&user) || self.roster.has_local_session(user);
            match sync_state.known.get_mut(&user) {
                Some(known) if is_wanted => {
                    known.may_be_stale = false;
                    users.push((user, if known.accepts_any_version { 0 } else { known.version }));
                    // In case the reply is lost.
                    sync_state.checks.put(user, after(now, RETRY * 5));
                }
                _ => {
                    sync_state.stop_watching(user);
                    self.roster.unwatch(user);
                }
            }
        }
        self.sync_state = Some(sync_state);
    }

    /// Returns whether the record is still to be read.
    pub(crate) fn start_watching(&mut self, now: Moment, user: UserId) -> bool {
        let is_known = self.knows(user);
        let Some(sync_state) = &mut self.sync_state else { return false };
        // The presence table has dropped the user: so is the known record.
        if !is_known {
            sync_state.stop_watching(user);
        }
        sync_state.start_watching(user, now)
    }

    /// The user has no watchers and no connection.
    pub(crate) fn stop_watching(&mut self, user: UserId) {
        if let Some(sync_state) = &mut self.sync_state
            && !self.roster.has_local_session(user)
        {
            sync_state.stop_watching(user);
        }
    }

    fn known(&self) -> usize {
        self.sync_state.as_ref().map_or(0, |sync_state| sync_state.known.len())
    }

    fn retry_check(&mut self, now: Moment, user: UserId) {
        let Some(sync_state) = &mut self.sync_state else { return };
        let Some(known) = sync_state.known.get(&user) else { return };
        let at = known.first_expiry().map_or(after(now, RETRY), |until| until.min(after(now, RETRY)));
        sync_state.checks.put(user, at);
    }

    /// Whether the local state of the user holds for all gateways.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        let is_known = self.knows(user);
        is_known
            && self
                .sync_state
                .as_ref()
                .is_none_or(|sync_state| sync_state.is_current(user) || self.roster.has_local_session(user))
    }
}
