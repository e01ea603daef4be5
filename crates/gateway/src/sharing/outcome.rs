//! What follows from what the register says has changed: the history, webhooks, and what a crash must not forget.

use domain::UserId;
use people::{Occurrence, OccurrenceKind};
use presence::{Cause, DeviceId, Platform, Remembered};
use register::{Outcome, Record};
use std::sync::atomic::Ordering;

use crate::hub::shard::{Outside, Shard};
use crate::occurrences::Happening;

impl Outside {
    /// Writes down a change that this gateway made.
    pub(super) fn keep_outcome(&self, outcome: &Outcome, (cause, device): (Cause, Option<DeviceId>)) {
        let user = outcome.record.user;
        let record = |kind| {
            let (cause, device) = (Some(cause), device.clone());
            self.keeper.record(Occurrence { user, at_ms: outcome.at_ms, kind, cause, device });
        };
        if outcome.arrived {
            record(OccurrenceKind::Arrived);
        }
        if outcome.left {
            record(OccurrenceKind::Left);
        }
        let (from, to) = (outcome.from, outcome.to);
        if from != to {
            self.counters.hub.transitions.count(cause.name());
            let platform = device.as_ref().and_then(|id| platform_of(&outcome.record, id));
            let happening = Happening::new(outcome.at_ms, user, (from, to), cause);
            self.occurrences.add(happening.on(platform));
            if self.history_days.load(Ordering::Relaxed) > 0 {
                record(OccurrenceKind::Transition { from, to });
            }
        }
        self.keeper.remember(remembered(&outcome.record));
    }
}

impl Shard {
    /// The last sign of life of who is here goes on: it is written now and then, as part of what the register said last.
    /// What has changed since is written when the register has answered to that.
    pub(crate) fn keep_sign(&self, user: UserId, outside: &Outside) {
        let Some(book) = &self.book else { return };
        let Some(known) = book.known.get(&user).filter(|known| known.version > 0) else { return };
        if !book.is_told(user) || book.is_marked(user) {
            return;
        }
        let kept = self.roster.remembered(user).filter(|kept| kept.here && kept.hidden_since.is_none());
        if let Some(kept) = kept {
            let (own_version, public_version) = (known.version, known.public_version);
            outside.keeper.remember(Remembered { own_version, public_version, ..kept });
        }
    }
}

/// What kind of device it is, if it is still there.
fn platform_of(record: &Record, device: &DeviceId) -> Option<Platform> {
    let mut devices = record.parts.iter().flat_map(|part| &part.part.devices);
    devices.find(|known| known.id == *device).map(|known| known.platform)
}

/// What should be known of a person after a crash of everything.
fn remembered(record: &Record) -> Remembered {
    let is_present = !record.parts.is_empty();
    let last_sign = record.parts.iter().map(|part| part.part.last_sign).max();
    let is_seen = is_present && record.hidden_since.is_none();
    Remembered {
        user: record.user,
        here: is_present || record.pending.is_some(),
        declaration: record.declaration.clone(),
        last_seen: if is_seen { last_sign.max(record.last_seen) } else { record.last_seen },
        hidden_since: record.hidden_since,
        public_version: record.public_version,
        own_version: record.own_version,
    }
}
