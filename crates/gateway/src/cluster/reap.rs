//! Removes entries of dead nodes, expired entries, and ended pending periods.
//!
//! # Guarantees
//!
//! - Each step is bounded, and reads only what is due.
//! - Two nodes that both consider themselves owner of a shard do no harm: the record decides whether there is
//!   anything to do.
//! - Watchers that may have missed a user's last change at a dead node are notified again.

use domain::named;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::UserId;
use domain::clock::Stopwatch;
use keyspace::{RedisError, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::deadlines::{DeadlineScores, DeadlineUpdates, UpdateIndex};
use super::node::NodeName;
use super::notify::InboxEntry;
use super::record::RecordChange;
use super::reply::{ReplyReader, ScriptReply};
use super::settings::ms;
use super::shards::{SHARDS, owner_of};
use super::store::{BATCH_MAX, ClusterStore, DEAD_NODE_TTL};

/// A dead node without entries is checked again after this long: it may not know yet that it was declared dead.
const RECHECK_CLEAN: Duration = Duration::from_secs(3);

/// Delay after a failure.
const RETRY: Duration = Duration::from_secs(3);

const AFTER_ALL_DEADLINES: Duration = Duration::from_secs(24 * 3600);

/// Users with an unanswered call.
const UNANSWERED_MAX: usize = 100_000;

/// Minimum number of users per shard and kind in one step.
const SHARE_MIN: usize = 16;

/// State between two steps.
#[derive(Default)]
pub(crate) struct ReapState {
    /// The shard at which the next step begins.
    next: u8,
    /// When a dead node was found without entries, and the shards that were owned then.
    clean: HashMap<NodeName, (Stopwatch, Vec<u8>)>,
    /// Unanswered calls: the deadline set and the user.
    unanswered: HashSet<(String, UserId)>,
    /// The last step reached its limit.
    has_more: bool,
}

impl ReapState {
    /// Records a call that may never be answered. Returns whether an earlier one is unanswered.
    fn mark_unanswered(&mut self, due: &DueUser) -> bool {
        let about = (due.set.key.clone(), due.user);
        let was_unanswered = self.unanswered.contains(&about);
        if self.unanswered.len() < UNANSWERED_MAX {
            self.unanswered.insert(about);
        }
        was_unanswered
    }
}

named! {
    /// Why something is cleared up.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum DueKind {
        Gone = "gone",
        Late = "late",
        Pending = "pending",
    }
}

#[derive(Clone)]
struct DueSet {
    key: String,
    kind: DueKind,
    /// None for the pending set.
    node: Option<NodeName>,
    shard: u8,
}

struct DueUser {
    set: DueSet,
    user: UserId,
    score: String,
    /// The score with which the user was added to the pending set.
    noted: Option<String>,
}

impl DueUser {
    /// Nothing can be done now: it is tried again after the others.
    fn postpone(&self, settled: &mut DeadlineUpdates) {
        self.put_off(
            settled,
            match self.set.kind {
                // All of these are due, in the order of their deadlines.
                DueKind::Gone => AFTER_ALL_DEADLINES,
                DueKind::Late | DueKind::Pending => RETRY,
            },
        );
    }

    /// It is due again after this long. Redis may have lost its data since the user was found, and with it the list of
    /// dead nodes: a set that was created anew for a dead node would not be read again.
    fn put_off(&self, settled: &mut DeadlineUpdates, remaining: Duration) {
        settled.put_off(self.set.key.clone(), self.user, remaining);
    }
}

#[derive(Default)]
struct ReapResult<'a> {
    outcomes: Vec<(UserId, RecordChange)>,
    entries: Vec<InboxEntry>,
    settled: DeadlineUpdates,
    removals: Vec<&'a DueUser>,
}

impl ClusterStore {
    /// One step: reaps at most `limit` users in the shards that this node owns, and notifies watching nodes, this one
    /// included. Call it often; at once if [`ClusterStore::has_more`]. The result includes changes made by an
    /// unanswered call, or by a node that died before it could report them.
    pub async fn reap(&self, limit: usize) -> Result<Vec<(UserId, RecordChange)>, RedisError> {
        self.retry_unsent().await;
        self.reap_state.lock().has_more = false;
        let node_list = self.node_list();
        let node = self.node();
        if !node_list.is_member {
            self.counters.shards_owned.set(0);
            return Ok(Vec::new());
        }
        let owned: Vec<u8> =
            (0..SHARDS).filter(|shard| owner_of(*shard, &node_list.live) == Some(&node)).collect();
        self.counters.shards_owned.set(owned.len());
        let gone = self.dead_nodes_to_check(&node_list.gone, &owned);
        let living: Vec<NodeName> = node_list.live.into_iter().chain(node_list.lapsed).collect();
        let due = self.find_due(&owned, (&living, &gone), limit.min(BATCH_MAX)).await?;
        self.remember_clean(&gone, &owned, &due);
        let is_full = due.len() >= limit.min(BATCH_MAX);
        let due = self.add_pending(due).await;
        // Where nothing can be noted, more of the same is no use.
        self.reap_state.lock().has_more = is_full && !due.is_empty();
        Ok(self.reap_users(due).await)
    }

    /// Whether the last step reached its limit.
    pub fn has_more(&self) -> bool {
        self.reap_state.lock().has_more
    }

    /// Dead nodes that may have left entries.
    fn dead_nodes_to_check(&self, gone: &[NodeName], owned: &[u8]) -> Vec<NodeName> {
        let mut reap_state = self.reap_state.lock();
        reap_state.clean.retain(|node, (since, then)| {
            gone.contains(node) && since.elapsed() < RECHECK_CLEAN && then.as_slice() == owned
        });
        gone.iter().filter(|node| !reap_state.clean.contains_key(*node)).cloned().collect()
    }

    fn remember_clean(&self, gone: &[NodeName], owned: &[u8], due: &[DueUser]) {
        let mut reap_state = self.reap_state.lock();
        for node in gone {
            // If anything is due, the step may have ended before it reached this node.
            if due.is_empty() {
                reap_state.clean.insert(node.clone(), (Stopwatch::start(), owned.to_vec()));
            }
        }
    }

    /// One command per shard.
    async fn find_due(
        &self,
        owned: &[u8],
        (living, gone): (&[NodeName], &[NodeName]),
        limit: usize,
    ) -> Result<Vec<DueUser>, RedisError> {
        let start = self.reap_state.lock().next;
        let (before, after): (Vec<u8>, Vec<u8>) = owned.iter().partition(|shard| **shard < start);
        let shards: Vec<Vec<DueSet>> =
            after.into_iter().chain(before).map(|shard| self.sets_of(shard, living, gone)).collect();
        // A share for each shard, so that not all due users are read for the few that fit.
        let share = (limit / shards.len().max(1)).max(SHARE_MIN);
        let mut pipeline = redis::pipe();
        shards.iter().for_each(|sets| {
            pipeline.add_command(find_due_command(sets, share));
        });
        let (mut due, mut error, mut failed) = (Vec::new(), None, 0);
        let mut rubbish = redis::pipe();
        for (sets, reply) in shards.iter().zip(self.send_all(&pipeline).await) {
            if due.len() >= limit {
                // The next step begins with the shard that did not fit.
                self.reap_state.lock().next = sets.first().map_or(0, |set| set.shard);
                break;
            }
            match read_reply::<Vec<(usize, Vec<String>)>>(reply) {
                Ok(found) => due.extend(self.read_due(sets, found, &mut rubbish)),
                Err(other) => {
                    failed += 1;
                    error = Some(other);
                }
            }
        }
        self.send_all(&rubbish).await;
        due.truncate(limit);
        match error {
            // An unreachable server must not delay the shards of the others.
            Some(error) if failed == shards.len() => Err(error),
            _ => Ok(due),
        }
    }

    fn sets_of(&self, shard: u8, living: &[NodeName], gone: &[NodeName]) -> Vec<DueSet> {
        let of_node = |kind| {
            move |node: &NodeName| DueSet {
                key: self.keys.due(shard, node.as_str()),
                kind,
                node: Some(node.clone()),
                shard,
            }
        };
        let pending = DueSet { key: self.keys.due_pending(shard), kind: DueKind::Pending, node: None, shard };
        let of_living = living.iter().map(of_node(DueKind::Late));
        let of_gone = gone.iter().map(of_node(DueKind::Gone));
        of_gone.chain(of_living).chain([pending]).collect()
    }

    /// Members that are not user ids are removed, or they would be found each time.
    fn read_due(
        &self,
        sets: &[DueSet],
        found: Vec<(usize, Vec<String>)>,
        rubbish: &mut Pipeline,
    ) -> Vec<DueUser> {
        let mut due = Vec::new();
        for (place, words) in found {
            let Some(set) = place.checked_sub(1).and_then(|place| sets.get(place)) else { continue };
            for pair in words.chunks_exact(2) {
                match pair[0].parse() {
                    Ok(user) => {
                        due.push(DueUser { set: set.clone(), user, score: pair[1].clone(), noted: None })
                    }
                    Err(_) => {
                        self.counters.malformed.increment();
                        rubbish.cmd("ZREM").arg(&set.key).arg(&pair[0]);
                    }
                }
            }
        }
        due
    }

    /// Adds users to the pending set before their record says so. Returns those for which that succeeded.
    async fn add_pending(&self, due: Vec<DueUser>) -> Vec<DueUser> {
        let mut words = DeadlineUpdates::default();
        let places: Vec<Option<UpdateIndex>> = due
            .iter()
            .map(|one| match one.set.kind {
                DueKind::Pending => None,
                _ => Some(words.add(self.keys.due_pending(one.set.shard), one.user, self.pending())),
            })
            .collect();
        let mut pipeline = redis::pipe();
        words.write(&mut pipeline);
        let scores = DeadlineScores::read(self.send_all(&pipeline).await.into_iter());
        let noted = |(one, place): (DueUser, Option<UpdateIndex>)| match place {
            None => Some(one),
            Some(at) => Some(DueUser { noted: Some(scores.get(at).ok()?.to_owned()), ..one }),
        };
        due.into_iter().zip(places).filter_map(noted).collect()
    }

    /// Changes records, then notifies watchers, then removes the deadlines.
    async fn reap_users(&self, due: Vec<DueUser>) -> Vec<(UserId, RecordChange)> {
        let mut pipeline = redis::pipe();
        for one in &due {
            let is_unanswered = self.reap_state.lock().mark_unanswered(one);
            pipeline.add_command(self.reap_command(one, is_unanswered));
        }
        let replies = self.send_all(&pipeline).await;
        let mut result = ReapResult::default();
        for (one, reply) in due.iter().zip(replies) {
            let mut reader = ReplyReader::default();
            let reply = reader.script_reply(one.user, reply);
            self.counters.malformed.add(reader.malformed);
            if !matches!(reply, Err(RedisError::Unanswered { .. })) {
                self.reap_state.lock().unanswered.remove(&(one.set.key.clone(), one.user));
            }
            self.apply_reply(&mut result, one, reply);
        }
        let ReapResult { outcomes, entries, mut settled, removals } = result;
        let unnotified = self.append_entries(entries).await;
        for one in removals {
            match unnotified.contains(&one.user) {
                true => one.postpone(&mut settled),
                false => _ = settled.remove(one.set.key.clone(), one.user, &one.score),
            }
        }
        let mut pipeline = redis::pipe();
        settled.write(&mut pipeline);
        // If this fails, the deadline is found again, and there is nothing to do.
        self.send_all(&pipeline).await;
        outcomes
    }

    fn apply_reply<'a>(
        &self,
        result: &mut ReapResult<'a>,
        one: &'a DueUser,
        reply: Result<ScriptReply, RedisError>,
    ) {
        let settled = &mut result.settled;
        match reply {
            Ok(ScriptReply::Changed(outcome, notification)) => {
                self.count_reaped(one.set.kind);
                match notification.pending() {
                    // The removed entry was lost; the user is pending from now on.
                    Some(remaining) if one.set.kind == DueKind::Pending => {
                        settled.add(one.set.key.clone(), one.user, remaining);
                    }
                    pending => {
                        self.settle_pending(settled, one, pending);
                        result.removals.push(one);
                    }
                }
                result.entries.extend(InboxEntry::for_watchers(notification, None));
                result.outcomes.push((one.user, *outcome));
            }
            Ok(ScriptReply::Nothing(notification)) => {
                self.settle_pending(settled, one, notification.pending());
                // The node that removed the entry may have died before it notified watchers.
                if one.set.kind != DueKind::Pending && !notification.fields.is_empty() {
                    self.counters.renotified.increment();
                    result.entries.extend(InboxEntry::for_watchers(notification, None));
                }
                result.removals.push(one);
            }
            Ok(ScriptReply::Later(remaining)) => {
                one.put_off(settled, remaining);
                if one.set.kind != DueKind::Pending {
                    self.settle_pending(settled, one, None);
                }
            }
            Ok(ScriptReply::Waiting) => {}
            // Failed: retried after the other users.
            _ => one.postpone(settled),
        }
    }

    /// Corrects the pending set for a user who might have become pending.
    fn settle_pending(&self, settled: &mut DeadlineUpdates, one: &DueUser, pending: Option<Duration>) {
        let Some(noted) = &one.noted else { return };
        let set = self.keys.due_pending(one.set.shard);
        match pending {
            Some(remaining) => settled.add(set, one.user, remaining),
            None => settled.remove(set, one.user, noted),
        };
    }

    fn reap_command(&self, due: &DueUser, is_unanswered: bool) -> Cmd {
        let mut call = scripts::PRESENCE_REAP.call(&self.keys.user(due.user).all());
        call.arg(due.set.node.as_ref().map_or("", NodeName::as_str)).arg(due.set.kind.name());
        call.arg(ms(self.pending())).arg(ms(self.settings.keep)).arg(ms(DEAD_NODE_TTL));
        call.arg(self.node().as_str()).arg(u8::from(is_unanswered));
        call
    }

    fn count_reaped(&self, kind: DueKind) {
        match kind {
            DueKind::Gone => self.counters.reaped_gone.increment(),
            DueKind::Late => self.counters.reaped_late.increment(),
            DueKind::Pending => self.counters.reaped_pending.increment(),
        }
    }
}

fn find_due_command(sets: &[DueSet], limit: usize) -> Cmd {
    let keys: Vec<&str> = sets.iter().map(|set| set.key.as_str()).collect();
    let mut call = scripts::PRESENCE_DUE_READ.call(&keys);
    call.arg(limit);
    for set in sets {
        call.arg(match set.kind {
            DueKind::Gone => "all",
            DueKind::Late => "late",
            DueKind::Pending => "pending",
        });
    }
    call
}
