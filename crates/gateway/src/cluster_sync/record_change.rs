//! What follows from a published change: history, webhooks, and the presence saved for a restart.

use crate::cluster::{Record, RecordChange};
use domain::UserId;
use friends::{PresenceEvent, PresenceEventKind};
use presence::{Cause, DeviceId, Platform, StoredPresence};
use std::sync::atomic::Ordering;

use crate::hub::shard::{Shard, ShardContext};
use crate::recent_events::RecentEvent;

impl ShardContext {
    /// Writes down a change that this gateway made.
    pub(super) fn save_change(&self, outcome: &RecordChange, (cause, device): (Cause, Option<DeviceId>)) {
        let user = outcome.record.user;
        let record = |kind| {
            let (cause, device) = (Some(cause), device.clone());
            self.writer.record(PresenceEvent { user, at_ms: outcome.at_ms, kind, cause, device });
        };
        if outcome.arrived {
            record(PresenceEventKind::Arrived);
        }
        if outcome.left {
            record(PresenceEventKind::Left);
        }
        let (from, to) = (outcome.from, outcome.to);
        if from != to {
            self.counters.hub.transitions.count(cause.name());
            let platform = device.as_ref().and_then(|id| platform_of(&outcome.record, id));
            let recent = RecentEvent::new(outcome.at_ms, user, (from, to), cause);
            self.recent_events.add(recent.on(platform));
            if self.history_days.load(Ordering::Relaxed) > 0 {
                record(PresenceEventKind::Transition { from, to });
            }
        }
        self.writer.remember(remembered(&outcome.record));
    }
}

impl Shard {
    /// Saves the last sign of life periodically, with the versions of the last known record. Later changes are saved
    /// when the store has answered to them.
    pub(crate) fn save_last_sign(&self, user: UserId, context: &ShardContext) {
        let Some(sync_state) = &self.sync_state else { return };
        let Some(known) = sync_state.known.get(&user).filter(|known| known.version > 0) else { return };
        if !sync_state.is_published(user) || sync_state.is_dirty(user) {
            return;
        }
        let kept =
            self.roster.stored_presence(user).filter(|kept| kept.online && kept.hidden_since.is_none());
        if let Some(kept) = kept {
            let (own_version, public_version) = (known.version, known.public_version);
            context.writer.remember(StoredPresence { own_version, public_version, ..kept });
        }
    }
}

/// None if the device is gone.
fn platform_of(record: &Record, device: &DeviceId) -> Option<Platform> {
    let mut devices = record.entries.iter().flat_map(|entry| &entry.entry.devices);
    devices.find(|known| known.id == *device).map(|known| known.platform)
}

/// The presence to save for a restart.
fn remembered(record: &Record) -> StoredPresence {
    let is_present = !record.entries.is_empty();
    let last_activity = record.entries.iter().map(|entry| entry.entry.last_activity).max();
    let is_seen = is_present && record.hidden_since.is_none();
    StoredPresence {
        user: record.user,
        online: is_present || record.pending.is_some(),
        declaration: record.declaration.clone(),
        last_seen: if is_seen { last_activity.max(record.last_seen) } else { record.last_seen },
        hidden_since: record.hidden_since,
        public_version: record.public_version,
        own_version: record.own_version,
    }
}
