//! Applies a user's record.

use std::time::Duration;

use crate::cluster::{NodeName, Record, TimedEntry, WatchReply};
use domain::UserId;
use presence::{Cause, Effect, PresenceTable, RemoteSessions, WallTime};

use super::sync_state::{DirtyReason, KnownRecord, RemoteEntry, after};
use super::{ShardSync, SyncContext};

impl ShardSync {
    fn known_mut(&mut self, user: UserId) -> Option<&mut KnownRecord> {
        self.state.known.get_mut(&user)
    }

    /// Applies a record if the user is watched here and the record is newer than the known one.
    pub(crate) fn apply_record(
        &mut self,
        now: WallTime,
        record: Record,
        roster: &mut PresenceTable,
        effects: &mut Vec<Effect>,
    ) {
        let (user, counters) = (record.user, &self.context.counters.sync);
        let Some(known) = self.state.known.get_mut(&user) else { return counters.unwatched.increment() };
        known.is_loaded |= record.own_version >= known.version;
        if record.own_version < known.version || (record.own_version == known.version && known.version > 0) {
            if record.own_version == known.version {
                known.remotes = remotes(now, &record, &known.remotes, &self.context);
            }
            counters.stale.increment();
            return self.expire_remotes(now, user, roster, effects);
        }
        counters.applied.increment();
        (known.version, known.public_version) = (record.own_version, record.public_version);
        // An answer that was on its way meanwhile is older, and counts by its version again.
        known.accepts_any_version = false;
        known.remotes = remotes(now, &record, &known.remotes, &self.context);
        let has_expired = remove_expired(now, &mut known.remotes);
        let mut elsewhere = remote_sessions(now, &record, &known.remotes);
        if has_expired {
            known.version = known.version.saturating_sub(1);
            elsewhere.wait_for_lost(roster.pending_until(now));
        }
        let has_own_part = record.entries.iter().any(|entry| entry.node == self.context.store.node());
        let declared_here = roster.stored_presence(user).and_then(|kept| kept.declaration);
        if self.state.has_unconfirmed_declaration(user) && elsewhere.declaration != declared_here {
            // The local declaration is newer, as far as this gateway knows. If the store considered it older, this
            // record is right, and is read again when the store has answered (`confirm_declaration`).
            elsewhere.declaration = declared_here;
            if let Some(known) = self.known_mut(user) {
                (known.version, known.is_overridden) = (known.version.saturating_sub(1), true);
            }
        }
        let had_part = roster.has_local_session(user);
        roster.set_remote(now, elsewhere, effects);
        // A lingering local session ended, because the user connected at another gateway.
        if had_part && !roster.has_local_session(user) {
            self.mark_dirty(user, DirtyReason { cause: Cause::Drop, device: None, declared: None });
        }
        self.schedule_check(now, user);
        if !has_own_part {
            self.repair_entry(now, user, roster);
        }
    }

    /// The store has answered to the local declaration. A record that was overridden meanwhile is read again.
    pub(crate) fn confirm_declaration(&mut self, now: WallTime, user: UserId) {
        if !self.state.has_unconfirmed_declaration(user)
            && let Some(known) = self.known_mut(user)
            && std::mem::take(&mut known.is_overridden)
        {
            self.state.check_at(user, now);
        }
    }

    /// The record lacks this gateway's entry. If the user still has sessions here, they are published again.
    fn repair_entry(&mut self, now: WallTime, user: UserId, roster: &PresenceTable) {
        if !self.state.is_published(user) || self.state.is_dirty(user) {
            return;
        }
        // An entry that expired was rightly removed.
        let is_alive = |part: presence::NodeEntry| (part.last_activity.0 + part.gone_in.0) > now.seconds().0;
        if roster.node_entry(user, self.context.signs_since()).is_some_and(is_alive) {
            self.context.counters.sync.repaired.increment();
            self.state.republish_by(user, now);
            self.context.dirty_added.notify_one();
        }
    }

    pub(super) fn apply_watch_reply(
        &mut self,
        now: WallTime,
        (user, watched): (UserId, WatchReply),
        roster: &mut PresenceTable,
        effects: &mut Vec<Effect>,
    ) {
        match watched {
            WatchReply::Record(record) => {
                if let Some(known) = self.known_mut(user).filter(|known| known.accepts_any_version) {
                    (known.version, known.accepts_any_version) = (0, false);
                }
                return self.apply_record(now, *record, roster, effects);
            }
            WatchReply::Same { remaining } => self.extend_validity(now, user, &remaining),
            WatchReply::Unknown => {
                if let Some(known) = self.known_mut(user) {
                    known.is_loaded = true;
                }
                self.repair_entry(now, user, roster);
            }
        }
        self.expire_remotes(now, user, roster, effects);
    }

    fn extend_validity(&mut self, now: WallTime, user: UserId, remaining: &[(NodeName, Duration)]) {
        let Some(known) = self.known_mut(user) else { return };
        known.is_loaded = true;
        for remote in &mut known.remotes {
            let renewed = remaining.iter().find(|(node, _)| *node == remote.node);
            // An expired entry is not extended, however often it is reported.
            if let Some((_, left)) = renewed.filter(|(_, left)| !left.is_zero()) {
                remote.valid_until = remote.valid_until.max(after(now, *left + NODE_GRACE));
            }
        }
    }

    /// Removes remote sessions whose entry expired.
    pub(super) fn expire_remotes(
        &mut self,
        now: WallTime,
        user: UserId,
        roster: &mut PresenceTable,
        effects: &mut Vec<Effect>,
    ) {
        let Some(known) = self.state.known.get_mut(&user) else { return };
        if remove_expired(now, &mut known.remotes) {
            self.context.counters.sync.expired.increment();
            // The same version contains more than is shown now: it must be applied again.
            known.version = known.version.saturating_sub(1);
            match roster.stored_presence(user).filter(|_| !known.remotes.is_empty()) {
                None => roster.expire_remote(now, user, effects),
                Some(kept) => {
                    let elsewhere = RemoteSessions {
                        devices: devices(&known.remotes),
                        last_activity: known.remotes.iter().map(|remote| remote.last_activity).max(),
                        declaration: kept.declaration,
                        last_seen: kept.last_seen.filter(|_| kept.hidden_since.is_some()),
                        hidden_since: kept.hidden_since,
                        public_version: kept.public_version,
                        own_version: kept.own_version,
                        ..RemoteSessions::none(user)
                    };
                    roster.set_remote(now, elsewhere, effects);
                }
            }
        }
        self.schedule_check(now, user);
    }

    /// Schedules the next read: before any remote entry expires.
    fn schedule_check(&mut self, now: WallTime, user: UserId) {
        self.state.update_also_remote(user);
        let Some(known) = self.state.known.get(&user) else { return };
        let settings = &self.context.settings;
        let at = match known.first_expiry() {
            None => after(now, settings.check_absent),
            // A quarter of the time is left for checks, and for checks once more.
            Some(until) => {
                let left_ms = until.0.saturating_sub(now.0);
                WallTime(now.0 + (left_ms - left_ms / 4)).min(after(now, settings.check_present))
            }
        };
        // No answer yet: retry in one second.
        let at = if known.is_loaded { at } else { after(now, Duration::from_secs(1)).min(at) };
        self.state.check_at(user, at);
    }
}

/// Extra validity of an entry: the time a gateway has to report that a device is silent.
const NODE_GRACE: Duration = Duration::from_secs(2);

/// Remote entries of a record. An expired entry keeps its validity from `before`.
pub(super) fn remotes(
    now: WallTime,
    record: &Record,
    before: &[RemoteEntry],
    sync: &SyncContext,
) -> Vec<RemoteEntry> {
    let others = record.entries.iter().filter(|entry| !sync.is_own(&entry.node));
    let valid_until = |entry: &TimedEntry| match entry.remaining.is_zero() {
        false => after(now, entry.remaining + NODE_GRACE),
        true => before.iter().find(|known| known.node == entry.node).map_or(now, |known| known.valid_until),
    };
    let remote = |entry: &TimedEntry| RemoteEntry {
        node: entry.node.clone(),
        devices: entry.entry.devices.clone(),
        last_activity: entry.entry.last_activity,
        valid_until: valid_until(entry),
    };
    others.map(remote).collect()
}

/// True if any was removed.
pub(super) fn remove_expired(now: WallTime, remotes: &mut Vec<RemoteEntry>) -> bool {
    let before = remotes.len();
    remotes.retain(|remote| remote.valid_until > now);
    remotes.len() < before
}

fn devices(remotes: &[RemoteEntry]) -> Vec<presence::NodeDevice> {
    remotes.iter().flat_map(|remote| remote.devices.iter().cloned()).collect()
}

/// The remote sessions of a record, with `remotes` as the valid entries.
pub(super) fn remote_sessions(now: WallTime, record: &Record, remotes: &[RemoteEntry]) -> RemoteSessions {
    RemoteSessions {
        user: record.user,
        devices: devices(remotes),
        last_activity: remotes.iter().map(|remote| remote.last_activity).max(),
        pending_until: record.pending.map(|remaining| after(now, remaining)),
        declaration: record.declaration.clone(),
        last_seen: record.last_seen,
        hidden_since: record.hidden_since,
        public_version: record.public_version,
        own_version: record.own_version,
    }
}
