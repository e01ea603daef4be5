//! Publishes dirty users at once, and activity periodically (P13).
//!
//! # Guarantees
//!
//! - One batch at a time, of at most a thousand users; users marked meanwhile go with the next batch, at once.
//! - An entry is read from the presence table when it is sent, so several changes become one.
//! - Updates that failed, or may have failed, are repeated.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::cluster::{EntryChange, EntryUpdate, PublishOutcome};
use domain::UserId;
use domain::clock::Stopwatch;
use friends::{PresenceEvent, PresenceEventKind};
use parking_lot::Mutex;
use presence::{Cause, NodeEntry, PresenceTable, WallTime};

use super::record_change::save_change;
use super::sync_state::{after, is_in_background};
use super::watch::paced;
use super::{ShardSync, SyncContext, SyncSettings};
use crate::hub::shard::{Shard, Trigger};
use crate::hub::users::Users;

/// Updates in one batch (P13).
const BATCH_MAX: usize = 1_000;
/// Interval of the check for new activity (P13).
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);
/// A user active within this time is active.
const ACTIVE_MS: u64 = 60_000;
/// Interval of the check for sessions that are silent since membership was lost.
const RECHECK_SILENT: Duration = Duration::from_secs(2);
/// This long before a published entry expires, every check may be the last.
const EXPIRY_MARGIN: Duration = Duration::from_secs(5);
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

struct PendingPublish {
    update: EntryUpdate,
    /// Whether it is only new activity.
    is_refresh: bool,
}

/// Publishes the dirty users of all shards.
pub(super) struct Publisher {
    pub(super) users: Arc<Users>,
    pub(super) context: Arc<SyncContext>,
    /// The shard that the next batch starts with.
    pub(super) next_shard: AtomicUsize,
}

impl Publisher {
    pub(super) async fn run(&self) {
        loop {
            tokio::select! {
                () = self.context.dirty_added.notified() => {}
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            if !self.flush().await {
                tokio::time::sleep(PAUSE).await;
                self.context.dirty_added.notify_one();
            }
        }
    }

    /// Publishes what was marked before shutdown, within a time limit.
    pub(super) async fn final_flush(&self) {
        for shard in self.users.shards() {
            if let Some(sync) = &mut shard.lock().sync {
                sync.state.put_back_all();
            }
        }
        if tokio::time::timeout(FINAL_FLUSH_TIMEOUT, self.flush()).await != Ok(true) {
            tracing::warn!("last presence changes not published before shutdown");
        }
    }

    /// Publishes everything that is to be. Whether all of it was.
    async fn flush(&self) -> bool {
        let context = &*self.context;
        loop {
            let batch = self.take_batch();
            if batch.is_empty() {
                return true;
            }
            let stopwatch = Stopwatch::start();
            let name = context.store.node();
            let updates: Vec<EntryUpdate> = batch.iter().map(|taken| taken.update.clone()).collect();
            let answers = context.store.publish(&updates).await;
            let counters = &context.counters.sync;
            counters.flushes.increment();
            counters.flush_seconds.record(stopwatch.elapsed());
            let refreshes = batch.iter().filter(|taken| taken.is_refresh).count();
            counters.refreshes.add(refreshes as u64);
            // A write fenced under the former name says nothing about the current one.
            if answers.contains(&Ok(PublishOutcome::Fenced)) && context.store.node() == name {
                context.contact.fence();
            }
            let mut all_done = true;
            for (taken, answer) in batch.into_iter().zip(answers) {
                all_done &= self.apply_outcome(taken, answer.ok());
            }
            if context.store.node() != name {
                // Published under the former name, whose entries and deadlines are removed.
                context.store.declare_dead(&name).await;
                self.republish_all();
            }
            let dirty =
                |shard: &Mutex<Shard>| shard.lock().sync.as_ref().map_or(0, |sync| sync.state.dirty_count());
            counters.dirty.set(self.users.shards().map(dirty).sum());
            if !all_done {
                counters.flush_failures.increment();
                return false;
            }
        }
    }

    fn take_batch(&self) -> Vec<PendingPublish> {
        let now = self.users.now();
        let mut batch = Vec::new();
        for shard in self.users.shards_from(&self.next_shard) {
            if batch.len() >= BATCH_MAX {
                break;
            }
            let shard = &mut *shard.lock();
            if let Some(sync) = &mut shard.sync {
                sync.take_updates(now, &shard.roster, &mut batch);
            }
        }
        batch
    }

    /// True if the update was applied.
    fn apply_outcome(&self, taken: PendingPublish, answer: Option<PublishOutcome>) -> bool {
        let PendingPublish { update: EntryUpdate { user, change, .. }, is_refresh } = taken;
        self.users.change(user, |shard, now| {
            let Some(sync) = &mut shard.sync else { return true };
            let (outcome, is_unknown) = match answer {
                Some(PublishOutcome::Changed(outcome)) => (Some(outcome), false),
                Some(PublishOutcome::Unchanged { .. }) => (None, false),
                Some(PublishOutcome::Unknown) => (None, true),
                Some(PublishOutcome::Fenced) | None => {
                    sync.state.put_back(user);
                    if is_refresh {
                        sync.state.refresh.put(user, after(now, CHECK_INTERVAL));
                    }
                    return false;
                }
            };
            let (mark, was_published) = (sync.state.finish_publish(user), sync.state.is_published(user));
            match &change {
                EntryChange::Put(part) => {
                    let check_at = after(now, sync.context.refresh_in(now, part));
                    sync.state.set_published(user, Some(part.last_activity), check_at);
                }
                EntryChange::Remove { .. } | EntryChange::Abandon => sync.state.forget_published(user),
            }
            if let Some(mut outcome) = outcome {
                if outcome.is_first && was_published {
                    // Redis lost its data, and the user was online all the time: nothing changed.
                    (outcome.arrived, outcome.from) = (false, outcome.to);
                }
                let cause = mark.map_or((Cause::Heartbeat, None), |mark| (mark.cause, mark.device));
                save_change(&self.users.context, &outcome, cause);
                // Users with HTTP sessions only are not in `users`, and are watched as well.
                if shard.roster.has_local_session(user) {
                    shard.watch_record(now, user);
                }
                shard.sync(now, |sync, roster, effects| {
                    sync.apply_record(now, outcome.record, roster, effects)
                });
            } else if is_unknown {
                let known = mark.filter(|mark| was_published || mark.ends_pending());
                self.save_offline(now, user, &shard.roster, known.map(|mark| (mark.cause, mark.device)));
            }
            if let Some(sync) = &mut shard.sync {
                sync.confirm_declaration(now, user);
            }
            true
        })
    }

    /// The store has no record of a user that left: they were only restored after a restart, or Redis lost its data
    /// meanwhile. `left` is why, if the user was known to be online.
    fn save_offline(&self, now: WallTime, user: UserId, roster: &PresenceTable, left: Option<Trigger>) {
        let Some(kept) = roster.stored_presence(user).filter(|kept| !kept.online) else { return };
        let writer = &self.users.context.writer;
        if let Some((cause, device)) = left {
            let (kind, cause) = (PresenceEventKind::Left, Some(cause));
            writer.record(PresenceEvent { user, at_ms: now.0, kind, cause, device });
        }
        writer.remember(kept);
    }

    /// Published entries may be lost: all local users are published again, at a bounded rate. A user that is due
    /// earlier stays so, or its entry would expire.
    pub(super) fn republish_all(&self) {
        let now = self.users.now();
        let mut place = 0;
        for shard in self.users.shards() {
            if let Some(sync) = &mut shard.lock().sync {
                for user in sync.state.published.keys().copied().collect::<Vec<UserId>>() {
                    sync.state.republish_by(user, paced(now, &mut place));
                }
            }
        }
    }
}

impl ShardSync {
    fn take_updates(&mut self, now: WallTime, roster: &PresenceTable, batch: &mut Vec<PendingPublish>) {
        let since = self.context.signs_since();
        for user in self.state.take_dirty(BATCH_MAX.saturating_sub(batch.len())) {
            let part = roster.node_entry(user, since);
            if part.is_none() && roster.has_local_session(user) {
                // No activity since: nothing is published until there is one.
                self.state.wait_for_activity(user);
                self.state.set_published(user, None, after(now, RECHECK_SILENT));
                continue;
            }
            batch.push(PendingPublish { update: self.update(now, user, part, roster), is_refresh: false });
        }
        while batch.len() < BATCH_MAX
            && let Some(user) = self.state.refresh.take_due(now)
        {
            let published = self.state.published.get(&user).copied().flatten();
            match roster.node_entry(user, since) {
                Some(part)
                    if published.is_none_or(|sign| part.last_activity > sign)
                        || self.context.outlives_keys(&part) =>
                {
                    self.state.resume(user);
                    let update = self.update(now, user, Some(part), roster);
                    batch.push(PendingPublish { update, is_refresh: true });
                }
                Some(part) => {
                    self.state.refresh.put(user, after(now, self.context.refresh_in(now, &part)));
                }
                None if roster.has_local_session(user) => {
                    self.state.refresh.put(user, after(now, RECHECK_SILENT))
                }
                // A user that left was marked, and is published by that.
                None => {}
            }
        }
    }

    fn update(
        &self,
        now: WallTime,
        user: UserId,
        part: Option<NodeEntry>,
        roster: &PresenceTable,
    ) -> EntryUpdate {
        let declared = self.state.declared_in_flight(user);
        let kept = roster.stored_presence(user);
        let last_alive = roster.last_alive(user).unwrap_or_default();
        let local_declaration = kept.as_ref().and_then(|kept| kept.declaration.clone());
        EntryUpdate {
            user,
            change: part.map_or(EntryChange::Remove { last_alive }, EntryChange::Put),
            declaration: declared.map(|_| local_declaration.clone()),
            declared_ago: Duration::from_millis(declared.map_or(0, |at| now.0.saturating_sub(at.0))),
            known_version: self.state.known.get(&user).map_or(0, |known| known.version),
            local_declaration,
            version_floor: kept.as_ref().map_or((0, 0), |kept| (kept.public_version, kept.own_version)),
            last_seen: kept.and_then(|kept| kept.last_seen),
        }
    }
}

impl SyncContext {
    /// Whether the public keys expire before the entry: then the entry is refreshed while it exists, also without a
    /// new activity (P19).
    fn outlives_keys(&self, part: &NodeEntry) -> bool {
        entry_lifetime(part) > self.store.keys_ttl()
    }

    fn refresh_in(&self, now: WallTime, part: &NodeEntry) -> Duration {
        next_refresh(now, part, &self.settings, self.store.keys_ttl())
    }
}

/// Time until the next check for activity: by activity, and well before the entry or the public keys expire.
fn next_refresh(now: WallTime, part: &NodeEntry, settings: &SyncSettings, keys_ttl: Duration) -> Duration {
    let silent_ms = now.0.saturating_sub(u64::from(part.last_activity.0) * 1000);
    let is_active = !is_in_background(part) && silent_ms <= ACTIVE_MS;
    let tier = if is_active { settings.refresh_active } else { settings.refresh_quiet };
    let lifetime = entry_lifetime(part);
    // With lifetimes of seconds, intervals made for 90 s would let all entries expire.
    let tier = tier.min(lifetime / 4).min(keys_ttl / 3);
    // Late activity must be published before the entry expires, so checks are frequent then.
    let left = lifetime.saturating_sub(Duration::from_millis(silent_ms) + EXPIRY_MARGIN);
    left.clamp(tier.min(CHECK_INTERVAL), tier)
}

fn entry_lifetime(part: &NodeEntry) -> Duration {
    Duration::from_secs(u64::from(part.gone_in.0))
}

#[cfg(test)]
mod tests {
    use domain::{Seconds, UnixTime};
    use presence::{AppState, DeviceId, NodeDevice, Platform};

    use super::*;

    /// Seconds until the next check of a device in this state that was silent for `silent_s`.
    fn next_check_at(app: AppState, silent_s: u64, gone_in: u32) -> f64 {
        let device = NodeDevice {
            id: DeviceId::new("a").unwrap(),
            platform: Platform::Web,
            app,
            online: true,
            declared: None,
        };
        let part =
            NodeEntry { devices: vec![device], last_activity: UnixTime(1_000), gone_in: Seconds(gone_in) };
        let (now, settings) = (WallTime((1_000 + silent_s) * 1000), SyncSettings::default());
        next_refresh(now, &part, &settings, Duration::from_secs(90)).as_secs_f64()
    }

    fn next_check(silent_s: u64, gone_in: u32) -> f64 {
        next_check_at(AppState::Foreground, silent_s, gone_in)
    }

    #[test]
    fn p19_a_device_in_the_background_is_refreshed_before_its_keys_expire() {
        for silent_s in [0, 70, 299, 1_500] {
            assert_eq!(next_check_at(AppState::Background, silent_s, 1_800), 30.0);
        }
    }

    #[test]
    fn p7_activity_at_the_last_moment_is_found_in_time() {
        assert_eq!(next_check(35, 90), 10.0);
        assert_eq!(next_check(61, 90), 22.5);
        assert_eq!(next_check(65, 90), 20.0);
        for silent_s in 84..=200 {
            assert_eq!(next_check(silent_s, 90), 1.0);
        }
        assert_eq!(next_check(1, 3), 0.75);
    }
}
