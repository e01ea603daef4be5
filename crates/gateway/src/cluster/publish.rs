//! Writes this node's entries.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::{UnixTime, UserId};
use keyspace::{Mode, RedisError, Reply, scripts};
use redis::Cmd;

use super::deadlines::{DeadlineScores, DeadlineUpdates, UpdateIndex};
use super::encoding::{EntryText, VERSION_MAX, declaration_text};
use super::node::NodeName;
use super::notify::InboxEntry;
use super::record::{EntryChange, EntryUpdate, PublishOutcome};
use super::reply::{ReplyReader, ScriptReply};
use super::settings::ms;
use super::shards::shard_of;
use super::store::{BATCH_MAX, ClusterStore};

/// The owner of the shard checks a removed entry after this long, in case this node dies before all watchers are
/// notified.
const NOTIFIED_WITHIN: Duration = Duration::from_secs(30);
/// Users with an unanswered call.
const UNANSWERED_MAX: usize = 200_000;

/// One update in flight.
struct PendingUpdate<'a> {
    update: &'a EntryUpdate,
    number: u64,
    first_unanswered: u64,
    /// The deadline update, and its set.
    due: UpdateIndex,
    set: String,
}

struct Batch<'a> {
    steps: Vec<PendingUpdate<'a>>,
    results: Vec<Option<Result<PublishOutcome, RedisError>>>,
    entries: Vec<InboxEntry>,
}

impl ClusterStore {
    /// Writes this node's entries of users, and notifies the nodes that watch the users that changed. Results are in
    /// the order of the updates. A failed update may have been applied: publish it again, which is idempotent.
    pub async fn publish(&self, updates: &[EntryUpdate]) -> Vec<Result<PublishOutcome, RedisError>> {
        let mut results = Vec::with_capacity(updates.len());
        for batch in updates.chunks(BATCH_MAX) {
            results.extend(self.publish_batch(batch).await);
        }
        results
    }

    async fn publish_batch(&self, updates: &[EntryUpdate]) -> Vec<Result<PublishOutcome, RedisError>> {
        let node = self.node();
        let now_ms = SystemClock.now_ms();
        let mut words = DeadlineUpdates::default();
        let steps: Vec<PendingUpdate> =
            updates.iter().map(|update| self.begin(&node, update, now_ms, &mut words)).collect();
        let results = steps.iter().map(|_| None).collect();
        let mut batch = Batch { steps, results, entries: Vec::new() };
        self.counters.published.add(updates.len() as u64);

        // One server executes commands in order. A cluster does not: there, a new entry is written only after its
        // deadline was stored. A refresh is one round trip everywhere.
        let is_ordered = self.redis.mode() != Mode::Cluster;
        let is_first =
            |step: &PendingUpdate| is_ordered || !matches!(step.update.change, EntryChange::Abandon);
        let (first, mut second): (Vec<usize>, Vec<usize>) =
            (0..batch.steps.len()).partition(|at| is_first(&batch.steps[*at]));
        let mut pipeline = redis::pipe();
        let sets = words.write(&mut pipeline);
        for at in &first {
            pipeline.add_command(self.publish_command(&node, &batch.steps[*at], now_ms, !is_ordered));
        }
        let mut replies = self.send_all(&pipeline).await.into_iter();
        let scores = DeadlineScores::read(replies.by_ref().take(sets));
        for (at, reply) in first.into_iter().zip(replies) {
            if self.handle_reply(&node, &mut batch, at, reply) {
                second.push(at);
            }
        }
        self.publish_second(&node, &mut batch, (second, &scores), now_ms).await;
        self.finish(batch, &scores).await
    }

    /// Updates that had to wait until their deadline was stored.
    async fn publish_second(
        &self,
        node: &NodeName,
        batch: &mut Batch<'_>,
        (positions, scores): (Vec<usize>, &DeadlineScores),
        now_ms: u64,
    ) {
        let mut sure = Vec::new();
        for at in positions {
            match scores.get(batch.steps[at].due) {
                Ok(_) => sure.push(at),
                Err(error) => batch.results[at] = Some(Err(error)),
            }
        }
        let mut pipeline = redis::pipe();
        for at in &sure {
            pipeline.add_command(self.publish_command(node, &batch.steps[*at], now_ms, false));
        }
        for (at, reply) in sure.into_iter().zip(self.send_all(&pipeline).await) {
            self.handle_reply(node, batch, at, reply);
        }
    }

    /// Notifies watching nodes, then removes the deadlines of users that left.
    async fn finish(
        &self,
        batch: Batch<'_>,
        scores: &DeadlineScores,
    ) -> Vec<Result<PublishOutcome, RedisError>> {
        let unnotified = self.append_entries(batch.entries).await;
        let mut words = DeadlineUpdates::default();
        let results: Vec<Result<PublishOutcome, RedisError>> = batch
            .results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(super::reply::unexpected())))
            .collect();
        for (step, result) in batch.steps.iter().zip(&results) {
            let stays = is_put(&step.update.change) || unnotified.contains(&step.update.user);
            let is_done = result.as_ref().is_ok_and(|published| *published != PublishOutcome::Fenced);
            if let (false, true, Ok(score)) = (stays, is_done, scores.get(step.due)) {
                words.remove(step.set.clone(), step.update.user, score);
            }
        }
        let mut pipeline = redis::pipe();
        words.write(&mut pipeline);
        // If this fails, the owner of the shard finds the deadline, and nothing to do.
        self.send_all(&pipeline).await;
        for (step, result) in batch.steps.iter().zip(&results) {
            self.clear_unanswered(step, result.as_ref().err());
        }
        results
    }

    /// Queues the deadline, which is written before the entry.
    fn begin<'a>(
        &self,
        node: &NodeName,
        update: &'a EntryUpdate,
        now_ms: u64,
        words: &mut DeadlineUpdates,
    ) -> PendingUpdate<'a> {
        let (user, shard) = (update.user, shard_of(update.user));
        let set = self.keys.due(shard, node.as_str());
        let remaining = match &update.change {
            EntryChange::Put(part) if !part.devices.is_empty() => {
                let whole = Duration::from_secs(part.gone_in.0.into());
                whole.saturating_sub(Duration::from_millis(age_ms(part.last_activity, now_ms)))
            }
            _ => NOTIFIED_WITHIN,
        };
        if update.change == EntryChange::Abandon {
            words.add(self.keys.due_pending(shard), user, self.pending());
        }
        let due = words.add(set.clone(), user, remaining);
        let number = self.next_call();
        let first_unanswered = self.mark_unanswered(user, number);
        PendingUpdate { update, number, first_unanswered, due, set }
    }

    pub(crate) fn pending(&self) -> Duration {
        Duration::from_secs(self.settings.pending.0.into())
    }

    fn publish_command(
        &self,
        node: &NodeName,
        step: &PendingUpdate<'_>,
        now_ms: u64,
        must_exist: bool,
    ) -> Cmd {
        let update = step.update;
        let mut call = scripts::PRESENCE_PUBLISH.call(&self.keys.user(update.user).all());
        call.arg(node.as_str());
        match &update.change {
            EntryChange::Put(part) if !part.devices.is_empty() => {
                let text = EntryText::of(&part.devices);
                call.arg("put").arg(u8::from(must_exist));
                call.arg(text.summary).arg(part.gone_in.0).arg(text.declared).arg(text.devices);
                call.arg(age_ms(part.last_activity, now_ms));
            }
            EntryChange::Put(part) => push_no_entry(&mut call, "drop", age_ms(part.last_activity, now_ms)),
            EntryChange::Remove { last_alive } => {
                push_no_entry(&mut call, "drop", age_ms(*last_alive, now_ms))
            }
            EntryChange::Abandon => push_no_entry(&mut call, "abandon", 0),
        }
        match &update.declaration {
            None => call.arg("="),
            Some(None) => call.arg("-"),
            Some(Some(declaration)) => call.arg(declaration_text(declaration)),
        };
        call.arg(update.local_declaration.as_ref().map(declaration_text).unwrap_or_default());
        call.arg(update.version_floor.0.min(VERSION_MAX)).arg(update.version_floor.1.min(VERSION_MAX));
        call.arg(update.last_seen.map_or(0, |at| at.0));
        call.arg(ms(self.pending())).arg(ms(self.settings.keep)).arg(step.number).arg(step.first_unanswered);
        call.arg(self.former_names()).arg(update.known_version.min(VERSION_MAX)).arg(ms(update.declared_ago));
        call.arg(ms(self.settings.keys_ttl));
        call
    }

    /// True if the entry did not exist, and nothing was written.
    fn handle_reply(&self, node: &NodeName, batch: &mut Batch<'_>, at: usize, reply: Reply) -> bool {
        let user = batch.steps[at].update.user;
        let mut reader = ReplyReader::default();
        let reply = reader.script_reply(user, reply);
        self.counters.malformed.add(reader.malformed);
        batch.results[at] = Some(match reply {
            Ok(ScriptReply::Absent) => return true,
            Ok(ScriptReply::PublishOutcome(published)) => {
                match published {
                    PublishOutcome::Fenced => self.counters.fenced.increment(),
                    PublishOutcome::Unchanged { .. } => self.counters.refreshed.increment(),
                    _ => {}
                }
                Ok(published)
            }
            Ok(ScriptReply::Changed(outcome, notification)) => {
                self.counters.changed.increment();
                batch.entries.extend(InboxEntry::for_watchers(notification, Some(node)));
                Ok(PublishOutcome::Changed(outcome))
            }
            Ok(ScriptReply::Later(_) | ScriptReply::Waiting | ScriptReply::Nothing(_)) => {
                Err(super::reply::unexpected())
            }
            Err(error) => Err(error),
        });
        false
    }

    /// Records a call that may never be answered (the caller can be dropped at any time). If it was applied, the next
    /// call reports what it changed. Returns the first unanswered call, or 0.
    fn mark_unanswered(&self, user: UserId, number: u64) -> u64 {
        let mut unanswered = self.unanswered.lock();
        if let Some(first) = unanswered.get(&user) {
            return *first;
        }
        if unanswered.len() < UNANSWERED_MAX {
            unanswered.insert(user, number);
        }
        0
    }

    /// The call was answered and watchers were notified, or the call was not executed.
    fn clear_unanswered(&self, step: &PendingUpdate<'_>, error: Option<&RedisError>) {
        let mut unanswered = self.unanswered.lock();
        let user = step.update.user;
        match error {
            Some(RedisError::Unanswered { .. }) => {}
            // It did not happen; earlier ones may have.
            Some(_) if unanswered.get(&user) != Some(&step.number) => {}
            _ => drop(unanswered.remove(&user)),
        }
    }
}

fn is_put(change: &EntryChange) -> bool {
    matches!(change, EntryChange::Put(part) if !part.devices.is_empty())
}

fn push_no_entry(call: &mut Cmd, change: &str, age_ms: u64) {
    call.arg(change).arg(0).arg("").arg(0).arg("").arg("").arg(age_ms);
}

/// By the clock that set `at`: clocks of nodes and of Redis need not agree.
fn age_ms(at: UnixTime, now_ms: u64) -> u64 {
    now_ms.saturating_sub(u64::from(at.0) * 1000)
}
