//! Publishes dirty users at once, and signs of life periodically (P13).
//!
//! # Guarantees
//!
//! - One batch at a time, of at most a thousand users; users marked meanwhile go with the next batch, at once.
//! - An entry is read from the presence table when it is sent, so several changes become one.
//! - Updates that failed, or may have failed, are repeated.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::cluster::{EntryChange, EntryUpdate, PublishOutcome};
use domain::UserId;
use domain::clock::Stopwatch;
use presence::{Cause, Moment, NodeEntry};

use super::sync_state::{DirtyReason, SyncState, after, is_in_background};
use super::{ClusterSync, SyncSettings};
use crate::hub::Hub;
use crate::hub::shard::{Shard, ShardContext};

/// Updates in one batch (P13).
const BATCH_MAX: usize = 1_000;
/// Interval of the check for new signs of life (P13).
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);
/// A user with a sign of life within this time is active.
const ACTIVE_MS: u64 = 60_000;
/// Interval of the check for sessions that are silent since membership was lost.
const RECHECK_SILENT: Duration = Duration::from_secs(2);
/// This long before a published entry expires, every check may be the last.
const EXPIRY_MARGIN: Duration = Duration::from_secs(5);
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

struct PendingPublish {
    update: EntryUpdate,
    /// Whether it is only a new sign of life.
    is_refresh: bool,
}

pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sync) = &hub.context.sync else { return };
    loop {
        tokio::select! {
            () = sync.dirty_added.notified() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
        }
        if !hub.flush(sync).await {
            tokio::time::sleep(PAUSE).await;
            sync.dirty_added.notify_one();
        }
    }
}

impl Hub {
    /// Publishes what was marked before shutdown, within a time limit.
    pub(crate) async fn final_flush(&self, sync: &ClusterSync) {
        for shard in self.shards() {
            if let Some(sync_state) = &mut shard.lock().sync_state {
                sync_state.put_back_all();
            }
        }
        if tokio::time::timeout(FINAL_FLUSH_TIMEOUT, self.flush(sync)).await != Ok(true) {
            tracing::warn!("last presence changes not published before shutdown");
        }
    }

    /// Publishes everything that is to be. Whether all of it was.
    async fn flush(&self, sync: &ClusterSync) -> bool {
        loop {
            let batch = self.take_batch(sync);
            if batch.is_empty() {
                return true;
            }
            let stopwatch = Stopwatch::start();
            let name = sync.store.node();
            let updates: Vec<EntryUpdate> = batch.iter().map(|taken| taken.update.clone()).collect();
            let answers = sync.store.publish(&updates).await;
            let counters = &self.context.counters.sync;
            counters.flushes.increment();
            counters.flush_seconds.record(stopwatch.elapsed());
            let refreshes = batch.iter().filter(|taken| taken.is_refresh).count();
            counters.refreshes.add(refreshes as u64);
            // A write fenced under the former name says nothing about the current one.
            let is_fenced = answers.contains(&Ok(PublishOutcome::Fenced)) && sync.store.node() == name;
            if is_fenced {
                sync.is_fenced.store(true, Ordering::Release);
                sync.fenced.notify_one();
            }
            let mut all_done = true;
            for (taken, answer) in batch.into_iter().zip(answers) {
                all_done &= self.apply_publish_outcome(sync, taken, answer.ok());
            }
            if sync.store.node() != name {
                // Published under the former name, whose entries are removed.
                self.republish_all();
            }
            counters.dirty.set(self.shards().map(|shard| shard.lock().dirty_count()).sum());
            if !all_done {
                counters.flush_failures.increment();
                return false;
            }
        }
    }

    fn take_batch(&self, sync: &ClusterSync) -> Vec<PendingPublish> {
        let now = self.now();
        let mut batch = Vec::new();
        for shard in self.shards_from(&sync.next_shard) {
            if batch.len() >= BATCH_MAX {
                break;
            }
            shard.lock().take_updates(now, sync, &mut batch);
        }
        batch
    }

    /// True if the update was applied.
    fn apply_publish_outcome(
        &self,
        sync: &ClusterSync,
        taken: PendingPublish,
        answer: Option<PublishOutcome>,
    ) -> bool {
        let now = self.now();
        let user = taken.update.user;
        let mut shard = self.shard(user);
        let Some(sync_state) = &mut shard.sync_state else { return true };
        let (outcome, is_unknown) = match answer {
            Some(PublishOutcome::Changed(outcome)) => (Some(outcome), false),
            Some(PublishOutcome::Unchanged { .. }) => (None, false),
            Some(PublishOutcome::Unknown) => (None, true),
            Some(PublishOutcome::Fenced) | None => {
                sync_state.put_back(user);
                if taken.is_refresh {
                    sync_state.refresh.put(user, after(now, CHECK_INTERVAL));
                }
                return false;
            }
        };
        let (mark, was_published) = (sync_state.finish_publish(user), sync_state.is_published(user));
        match &taken.update.change {
            EntryChange::Put(part) => {
                let look_at = after(now, refresh_in(now, part, sync));
                sync_state.set_published(user, Some(part.last_activity), look_at);
            }
            EntryChange::Remove { .. } | EntryChange::Abandon => sync_state.forget_published(user),
        }
        let after = match outcome {
            Some(mut outcome) => {
                if outcome.is_first && was_published {
                    // Redis lost its data, and the user was online all the time: nothing changed.
                    (outcome.arrived, outcome.from) = (false, outcome.to);
                }
                let cause = mark.map_or((Cause::Heartbeat, None), |mark| (mark.cause, mark.device));
                self.context.save_change(&outcome, cause);
                // Users with HTTP sessions only are not in `users`, and are watched as well.
                if shard.roster.has_local_session(user) {
                    shard.start_watching(now, user);
                }
                shard.apply_record(now, outcome.record, &self.context)
            }
            None => {
                if is_unknown {
                    shard.save_offline(
                        now,
                        user,
                        mark.filter(|mark| was_published || mark.ends_pending()),
                        &self.context,
                    );
                }
                Default::default()
            }
        };
        shard.confirm_declaration(now, user);
        drop(shard);
        self.finish(after);
        true
    }
}

impl Shard {
    /// Marks a user to be published.
    pub(crate) fn mark_dirty(&mut self, user: UserId, mark: DirtyReason, context: &ShardContext) {
        let (Some(sync_state), Some(sync)) = (&mut self.sync_state, &context.sync) else { return };
        sync_state.mark_dirty(user, mark);
        sync.dirty_added.notify_one();
    }

    /// How many are marked and not published yet.
    pub(crate) fn dirty_count(&self) -> usize {
        self.sync_state.as_ref().map_or(0, |sync_state| sync_state.dirty_count())
    }

    fn take_updates(&mut self, now: Moment, sync: &ClusterSync, batch: &mut Vec<PendingPublish>) {
        let Some(mut sync_state) = self.sync_state.take() else { return };
        let since = sync.signs_since();
        for user in sync_state.take_dirty(BATCH_MAX.saturating_sub(batch.len())) {
            let part = self.roster.node_entry(user, since);
            if part.is_none() && self.roster.has_local_session(user) {
                // No sign of life since: nothing is published until there is one.
                sync_state.await_sign(user);
                sync_state.set_published(user, None, after(now, RECHECK_SILENT));
                continue;
            }
            batch.push(PendingPublish {
                update: self.update(now, user, part, &sync_state),
                is_refresh: false,
            });
        }
        while batch.len() < BATCH_MAX
            && let Some(user) = sync_state.refresh.take_due(now)
        {
            let published = sync_state.published.get(&user).copied().flatten();
            match self.roster.node_entry(user, since) {
                Some(part)
                    if published.is_none_or(|sign| part.last_activity > sign)
                        || outlives_keys(&part, sync) =>
                {
                    sync_state.resume(user);
                    batch.push(PendingPublish {
                        update: self.update(now, user, Some(part), &sync_state),
                        is_refresh: true,
                    });
                }
                Some(part) => sync_state.refresh.put(user, after(now, refresh_in(now, &part, sync))),
                None if self.roster.has_local_session(user) => {
                    sync_state.refresh.put(user, after(now, RECHECK_SILENT))
                }
                // A user that left was marked, and is published by that.
                None => {}
            }
        }
        self.sync_state = Some(sync_state);
    }

    fn update(
        &self,
        now: Moment,
        user: UserId,
        part: Option<NodeEntry>,
        sync_state: &SyncState,
    ) -> EntryUpdate {
        let declared = sync_state.in_flight(user).and_then(|mark| mark.declared);
        let kept = self.roster.stored_presence(user);
        let last_alive = self.roster.last_alive(user).unwrap_or_default();
        let local_declaration = kept.as_ref().and_then(|kept| kept.declaration.clone());
        EntryUpdate {
            user,
            change: part.map_or(EntryChange::Remove { last_alive }, EntryChange::Put),
            declaration: declared.map(|_| local_declaration.clone()),
            declared_ago: Duration::from_millis(declared.map_or(0, |at| now.0.saturating_sub(at.0))),
            known_version: sync_state.known.get(&user).map_or(0, |known| known.version),
            local_declaration,
            version_floor: kept.as_ref().map_or((0, 0), |kept| (kept.public_version, kept.own_version)),
            last_seen: kept.and_then(|kept| kept.last_seen),
        }
    }

    /// The store has no record of a user that left: they were only restored after a restart, or Redis lost its data
    /// meanwhile. `mark` holds the cause if the user was known to be online.
    fn save_offline(&mut self, now: Moment, user: UserId, mark: Option<DirtyReason>, context: &ShardContext) {
        let Some(kept) = self.roster.stored_presence(user).filter(|kept| !kept.online) else { return };
        if let Some(mark) = mark {
            context.record(now, user, friends::PresenceEventKind::Left, (mark.cause, mark.device));
        }
        context.writer.remember(kept);
    }
}

/// Whether the public keys expire before the entry: then the entry is refreshed while it exists, also without a new
/// sign of life (P19).
fn outlives_keys(part: &NodeEntry, sync: &ClusterSync) -> bool {
    entry_lifetime(part) > sync.store.keys_ttl()
}

fn refresh_in(now: Moment, part: &NodeEntry, sync: &ClusterSync) -> Duration {
    next_refresh(now, part, &sync.settings, sync.store.keys_ttl())
}

/// Time until the next check for a sign of life: by activity, and well before the entry or the public keys expire.
fn next_refresh(now: Moment, part: &NodeEntry, settings: &SyncSettings, keys_ttl: Duration) -> Duration {
    let silent_ms = now.0.saturating_sub(u64::from(part.last_activity.0) * 1000);
    let is_active = !is_in_background(part) && silent_ms <= ACTIVE_MS;
    let tier = if is_active { settings.refresh_active } else { settings.refresh_quiet };
    let lifetime = entry_lifetime(part);
    // With lifetimes of seconds, intervals made for 90 s would let all entries expire.
    let tier = tier.min(lifetime / 4).min(keys_ttl / 3);
    // A late sign of life must be published before the entry expires, so checks are frequent then.
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
        let (now, settings) = (Moment((1_000 + silent_s) * 1000), SyncSettings::default());
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
    fn p7_a_sign_of_life_at_the_last_moment_is_found_in_time() {
        assert_eq!(next_check(35, 90), 10.0);
        assert_eq!(next_check(61, 90), 22.5);
        assert_eq!(next_check(65, 90), 20.0);
        for silent_s in 84..=200 {
            assert_eq!(next_check(silent_s, 90), 1.0);
        }
        assert_eq!(next_check(1, 3), 0.75);
    }
}
