//! What follows from a published change: history, webhooks, and the presence saved for a restart.

use crate::cluster::{Record, RecordChange};
use friends::{PresenceEvent, PresenceEventKind};
use presence::{DeviceId, Platform, StoredPresence};

use super::ShardSync;
use crate::hub::shard::{ShardContext, Trigger};

/// Writes down a change that this gateway made.
pub(super) fn save_change(context: &ShardContext, outcome: &RecordChange, (cause, device): Trigger) {
    let (from, to) = (outcome.from, outcome.to);
    let kinds = [
        outcome.arrived.then_some(PresenceEventKind::Arrived),
        outcome.left.then_some(PresenceEventKind::Left),
        (from != to).then_some(PresenceEventKind::Transition { from, to }),
    ];
    for kind in kinds.into_iter().flatten() {
        let (user, cause, by) = (outcome.record.user, Some(cause), device.clone());
        let platform = || platform_of(&outcome.record, device.as_ref()?);
        context.record(PresenceEvent { user, at_ms: outcome.at_ms, kind, cause, device: by }, platform);
    }
    context.writer.remember(remembered(&outcome.record));
}

impl ShardSync {
    /// The state to save with the last activity, with the versions of the last known record; none if a later
    /// change is saved when the store has answered to it.
    pub(crate) fn last_sign(&self, kept: StoredPresence) -> Option<StoredPresence> {
        let known = self.state.known.get(&kept.user).filter(|known| known.version > 0)?;
        let is_settled = self.state.is_published(kept.user) && !self.state.is_dirty(kept.user);
        let (own_version, public_version) = (known.version, known.public_version);
        (is_settled && kept.online && kept.hidden_since.is_none()).then_some(StoredPresence {
            own_version,
            public_version,
            ..kept
        })
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
