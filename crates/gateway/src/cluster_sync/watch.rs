//! Reads the records of users that are watched here: before they are shown, and then periodically.
//!
//! # Guarantees
//!
//! - A client that connects sees the current state of its friends (P4), whichever gateways they use; if the store
//!   does not answer in time, the state known here, and later the reply.
//! - A user with remote sessions is read again before an entry expires; without an answer, the sessions expire.
//! - A user without watchers and sessions here is no longer read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use presence::{LastKnown, PresenceTable, View, WallTime};

use super::receive::{remote_sessions, remotes, remove_expired};
use super::sync_state::after;
use super::{ShardSync, SyncContext};
use crate::cluster::Record;
use crate::hub::shard::Shard;
use crate::hub::users::Users;

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
pub(super) fn paced(now: WallTime, place: &mut u64) -> WallTime {
    *place += 1;
    WallTime(now.0 + *place * 1000 / PACE)
}

/// Reads records.
pub(crate) struct RecordReader {
    pub(super) users: Arc<Users>,
    pub(super) context: Arc<SyncContext>,
    /// The shard that the next round starts with.
    pub(super) next_shard: AtomicUsize,
    /// Last reading of the clock. Milliseconds.
    pub(super) clock_ms: AtomicU64,
}

impl RecordReader {
    pub(super) async fn run(&self) {
        loop {
            self.follow_clock();
            let asked = self.check_due().await;
            if asked < BATCH_MAX {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        }
    }

    /// Watches the records of users that are about to be shown. Returns those that are to be read before.
    pub(crate) fn unread(&self, users: impl IntoIterator<Item = UserId>) -> Vec<(UserId, u64)> {
        let now = self.users.now();
        let mut unread: Vec<(UserId, u64)> = users
            .into_iter()
            .filter(|user| self.users.shard(*user).watch_record(now, *user))
            .map(|user| (user, 0))
            .collect();
        unread.sort_unstable();
        unread.dedup();
        unread
    }

    /// Reads records within a time limit.
    pub(crate) async fn load(&self, unread: &[(UserId, u64)]) {
        // An unreachable store is not waited for.
        let reading = tokio::time::timeout(self.context.settings.read_timeout, self.read(unread));
        if self.context.contact.is_lost() || !reading.await.unwrap_or(false) {
            self.context.counters.sync.timeouts.increment();
        }
    }

    /// Public views of the users that have a record, watched or not; nothing is kept. Empty if the store does not answer
    /// in time: the caller falls back to the database.
    pub(crate) async fn lookup(
        &self,
        users: &[UserId],
    ) -> HashMap<UserId, View, foldhash::fast::RandomState> {
        let mut views = HashMap::default();
        for batch in users.chunks(BATCH_MAX) {
            let asked = self.context.store.read(batch);
            let Ok(records) = tokio::time::timeout(self.context.settings.read_timeout, asked).await else {
                self.context.counters.sync.timeouts.increment();
                break;
            };
            if records.iter().any(Result::is_err) {
                self.context.counters.sync.timeouts.increment();
            }
            for record in records.into_iter().flatten().flatten() {
                views.insert(record.user, self.view_of(&record));
            }
        }
        views
    }

    /// The same rules as for watched users.
    fn view_of(&self, record: &Record) -> View {
        let now = self.users.now();
        let mut roster = PresenceTable::new(self.users.settings.policy.clone(), now, 0);
        let mut remotes = remotes(now, record, &[], &self.context);
        let has_expired = remove_expired(now, &mut remotes);
        roster.watch(now, record.user, LastKnown::default());
        let mut elsewhere = remote_sessions(now, record, &remotes);
        if has_expired {
            elsewhere.wait_for_lost(roster.pending_until(now));
        }
        roster.set_remote(now, elsewhere, &mut Vec::new());
        roster.public_view(record.user)
    }

    /// If the clock stepped back, all plans go back with it. The presence tables see to their own.
    fn follow_clock(&self) {
        let now_ms = self.users.now().0;
        let by_ms = self.clock_ms.swap(now_ms, Ordering::Relaxed).saturating_sub(now_ms);
        if by_ms < STEP_MS_MIN {
            return;
        }
        tracing::warn!(by_ms, "system clock stepped back; adjusting scheduled times");
        self.context.step_back(by_ms);
        for shard in self.users.shards() {
            if let Some(sync) = &mut shard.lock().sync {
                sync.state.step_back(by_ms);
            }
        }
    }

    /// Reads the users that are due. Returns how many.
    async fn check_due(&self) -> usize {
        let now = self.users.now();
        let mut users = Vec::new();
        for shard in self.users.shards_from(&self.next_shard) {
            let shard = &mut *shard.lock();
            if let Some(sync) = &mut shard.sync {
                let is_kept = |user| shard.users.contains_key(&user);
                sync.take_due_checks(now, &mut shard.roster, is_kept, &mut users);
            }
        }
        if users.is_empty() {
            return 0;
        }
        self.context.counters.sync.rechecked.add(users.len() as u64);
        if self.context.contact.is_lost() {
            users.iter().for_each(|(user, _)| self.expire_unanswered(*user));
        } else {
            self.read(&users).await;
        }
        let known =
            |shard: &Mutex<Shard>| shard.lock().sync.as_ref().map_or(0, |sync| sync.state.known.len());
        self.context.counters.sync.watched.set(self.users.shards().map(known).sum());
        users.len()
    }

    /// True if all reads were answered.
    async fn read(&self, users: &[(UserId, u64)]) -> bool {
        let mut all_answered = true;
        for chunk in users.chunks(BATCH_MAX) {
            let answers = self.context.store.watch(chunk).await;
            for ((user, _), answer) in chunk.iter().zip(answers) {
                match answer {
                    Ok(watched) => self.users.change(*user, |shard, now| {
                        shard.sync(now, |sync, roster, effects| {
                            sync.apply_watch_reply(now, (*user, watched), roster, effects)
                        })
                    }),
                    Err(error) => {
                        tracing::debug!(%error, "cannot read a record; retrying");
                        all_answered = false;
                        self.expire_unanswered(*user);
                    }
                }
            }
        }
        all_answered
    }

    /// Without an answer, expired entries are removed.
    fn expire_unanswered(&self, user: UserId) {
        self.users.change(user, |shard, now| {
            shard.sync(now, |sync, roster, effects| {
                sync.expire_remotes(now, user, roster, effects);
                sync.retry_check(now, user);
            })
        });
    }

    /// Changes may have been missed: all users are read again, at a bounded rate. A user that is due earlier stays
    /// so, or its entries would be valid too long.
    pub(super) fn recheck_all(&self) {
        let now = self.users.now();
        let mut place = 0;
        for shard in self.users.shards() {
            if let Some(sync) = &mut shard.lock().sync {
                sync.state.recheck_all(|| paced(now, &mut place));
            }
        }
    }
}

impl ShardSync {
    /// Takes the users that are due, with their known versions. Drops users that are not watched any more: neither
    /// kept by the shard, nor with sessions here.
    fn take_due_checks(
        &mut self,
        now: WallTime,
        roster: &mut PresenceTable,
        is_kept: impl Fn(UserId) -> bool,
        due: &mut Vec<(UserId, u64)>,
    ) {
        while due.len() < BATCH_MAX
            && let Some(user) = self.state.checks.take_due(now)
        {
            match self.state.known.get_mut(&user) {
                Some(known) if is_kept(user) || roster.has_local_session(user) => {
                    known.may_be_stale = false;
                    due.push((user, if known.accepts_any_version { 0 } else { known.version }));
                    // In case the reply is lost.
                    self.state.checks.put(user, after(now, RETRY * 5));
                }
                _ => {
                    self.state.stop_watching(user);
                    roster.unwatch(user);
                }
            }
        }
    }

    /// Returns whether the record is still to be read.
    pub(crate) fn start_watching(&mut self, now: WallTime, user: UserId, is_known: bool) -> bool {
        // The presence table has dropped the user: so is the known record.
        if !is_known {
            self.state.stop_watching(user);
        }
        self.state.start_watching(user, now)
    }

    /// The user has no watchers and no session here.
    pub(crate) fn stop_watching(&mut self, user: UserId) {
        self.state.stop_watching(user);
    }

    /// Whether the record has been read.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        self.state.is_current(user)
    }

    fn retry_check(&mut self, now: WallTime, user: UserId) {
        let Some(known) = self.state.known.get(&user) else { return };
        let at = known.first_expiry().map_or(after(now, RETRY), |until| until.min(after(now, RETRY)));
        self.state.checks.put(user, at);
    }
}
