//! Consequences of a change: versions, effects, counts, deadlines.

use domain::{UnixTime, UserId};

use super::Core;
use crate::device::DeviceId;
use crate::input::{Cause, Effect};
use crate::slab::NONE;
use crate::status::Status;
use crate::user_presence::StatusDigest;
use crate::view::{LastKnown, StoredPresence};
use crate::wall_time::{MonotonicTime, WallTime};

pub(super) struct Trigger {
    pub cause: Cause,
    pub device: Option<DeviceId>,
}

impl Trigger {
    pub fn by(cause: Cause, device: DeviceId) -> Trigger {
        Trigger { cause, device: Some(device) }
    }

    pub fn of(cause: Cause) -> Trigger {
        Trigger { cause, device: None }
    }
}

/// Versions keep growing over a restart that lost the last ones: no user changes a thousand times a second, so the
/// start time in milliseconds exceeds all earlier versions. The current time is not used, since a version would then
/// disclose when the user was last active.
fn next_version(last: u64, start: WallTime) -> u64 {
    last.saturating_add(1).max(start.0)
}

fn is_absent(status: Status) -> bool {
    matches!(status, Status::Offline | Status::Pending)
}

impl Core {
    pub(super) fn digest(&self, entry: u32) -> StatusDigest {
        self.users[entry].digest(&self.sessions)
    }

    /// Compares a user before and after a change, and emits the effects.
    pub(super) fn apply_change(
        &mut self,
        now: MonotonicTime,
        slot: u32,
        before: StatusDigest,
        trigger: Trigger,
        effects: &mut Vec<Effect>,
    ) {
        if before.is_remote_only && self.users[slot].is_remote_only() {
            return self.apply_remote_change(slot, before, effects);
        }
        self.update_online(slot, before, &trigger, effects);
        let after = self.digest(slot);
        self.update_times(now, slot, before, after);
        let user = self.users[slot].user;
        if before.own != after.own {
            let Trigger { cause, device } = trigger;
            effects.push(Effect::Transition { user, from: before.own, to: after.own, cause, device });
        }
        self.update_versions(slot, before, after, effects);
        if before.stored_differs(&after) {
            self.users[slot].stored_at_s = now.seconds();
            effects.push(Effect::Store { user });
        }
        self.schedule(slot);
    }

    /// First session in, last session out.
    fn update_online(
        &mut self,
        slot: u32,
        before: StatusDigest,
        trigger: &Trigger,
        effects: &mut Vec<Effect>,
    ) {
        let entry = &mut self.users[slot];
        let is_online = entry.is_present() || entry.pending_until_s > 0;
        if is_online == entry.flags.online {
            return;
        }
        entry.flags.online = is_online;
        let user = entry.user;
        let (cause, device) = (trigger.cause, trigger.device.clone());
        if is_online {
            effects.push(Effect::Arrived { user, cause, device });
        } else {
            let last_seen =
                if before.own == Status::Pending { entry.last_seen.get() } else { Some(entry.last_alive) };
            effects.push(Effect::Left { user, last_seen, cause, device });
        }
    }

    fn update_times(&mut self, now: MonotonicTime, slot: u32, before: StatusDigest, after: StatusDigest) {
        let unix = self.unix(now);
        let entry = &mut self.users[slot];
        let vanished = before.public() != Status::Offline && after.public() == Status::Offline;
        // Other users know no later time of a pending user than the one from before the restart.
        if vanished && before.own != Status::Pending {
            entry.last_seen = Some(if after.hidden { unix } else { entry.last_alive }).into();
        }
        match (after.hidden, entry.hidden_since.get()) {
            (true, None) => entry.hidden_since = Some(unix).into(),
            (false, Some(_)) => entry.hidden_since = None.into(),
            _ => {}
        }
    }

    pub(super) fn update_versions(
        &mut self,
        slot: u32,
        before: StatusDigest,
        after: StatusDigest,
        effects: &mut Vec<Effect>,
    ) {
        let (public, own) = (before.public_differs(&after), before.own_differs(&after));
        self.counts.users[before.counted as usize] -= 1;
        self.counts.users[after.counted as usize] += 1;
        self.update_list(slot, before, after);
        let entry = &mut self.users[slot];
        // Versions of remote users are assigned by their gateways.
        let start = if entry.is_remote_only() { WallTime::default() } else { self.start };
        if public {
            entry.public_version = next_version(entry.public_version, start);
        }
        if own {
            entry.own_version = next_version(entry.own_version, start);
        }
        if public || own {
            let crosses = is_absent(before.public()) != is_absent(after.public());
            effects.push(Effect::Changed { user: entry.user, public, own, urgent: crosses || !public });
        }
    }

    fn update_list(&mut self, slot: u32, before: StatusDigest, after: StatusDigest) {
        let user = self.users[slot].user;
        match (before.counted == Status::Offline, after.counted == Status::Offline) {
            (true, false) => drop(self.listed.insert(user)),
            (false, true) => drop(self.listed.remove(&user)),
            _ => {}
        }
    }

    /// When an offline user is removed, in monotonic seconds; none if it is kept.
    pub(super) fn removal_at_s(&self, slot: u32) -> Option<u32> {
        let entry = &self.users[slot];
        // Users that only other gateways have are not kept.
        let kept = entry.flags.watched || (entry.flags.online && !entry.is_remote_only());
        // Since the last effect, so that its consequences can be read.
        let last_s = entry.left_at_s.max(entry.stored_at_s);
        (!kept).then(|| last_s.saturating_add(self.policy.keep_after_leaving().0))
    }

    /// Schedules the user's next deadline.
    pub(super) fn schedule(&mut self, slot: u32) {
        let entry = &self.users[slot];
        let until = entry.declaration().and_then(|declared| declared.until);
        let due_s = [
            until.map(|until| self.clock.monotonic(until).seconds_up()),
            Some(entry.grace_until_s).filter(|at| *at > 0),
            Some(entry.pending_until_s).filter(|at| *at > 0),
            self.removal_at_s(slot),
        ];
        let due_s = due_s.into_iter().flatten().min().map_or(0, |at| at.max(1));
        if due_s == entry.due_s {
            return;
        }
        self.deadlines.remove(&(entry.due_s, slot));
        self.users[slot].due_s = due_s;
        if due_s > 0 {
            self.deadlines.insert((due_s, slot));
        }
    }

    pub(super) fn restore(&mut self, now: MonotonicTime, stored: StoredPresence, effects: &mut Vec<Effect>) {
        let StoredPresence {
            user,
            online,
            declaration,
            last_seen,
            hidden_since,
            public_version,
            own_version,
        } = stored;
        let last = LastKnown { last_seen, public_version, own_version, declaration };
        let slot = self.preload(now, user, last);
        if online && !self.users[slot].flags.online {
            let before = self.digest(slot);
            self.set_pending(now, slot, hidden_since);
            let after = self.digest(slot);
            self.update_versions(slot, before, after, effects);
        }
        self.schedule(slot);
    }

    /// As [`Core::restore`], but the stored presence is newer than that of a user without a connection here.
    pub(super) fn restore_after_handover(
        &mut self,
        now: MonotonicTime,
        stored: StoredPresence,
        effects: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.find(stored.user) else { return self.restore(now, stored, effects) };
        if self.users[slot].first != NONE {
            return;
        }
        let StoredPresence {
            online, declaration, last_seen, hidden_since, public_version, own_version, ..
        } = stored;
        let before = self.digest(slot);
        self.load_last_known(now, slot, LastKnown { last_seen, public_version, own_version, declaration });
        if online && !self.users[slot].flags.online {
            self.set_pending(now, slot, hidden_since);
        }
        let after = self.digest(slot);
        self.update_versions(slot, before, after, effects);
        self.schedule(slot);
    }

    fn set_pending(&mut self, now: MonotonicTime, slot: u32, hidden_since: Option<UnixTime>) {
        let pending_until_s = now.plus(self.policy.pending).seconds_up().max(1);
        let entry = &mut self.users[slot];
        entry.flags.online = true;
        entry.pending_until_s = pending_until_s;
        entry.hidden_since = hidden_since.into();
        let declared_invisible = entry.declaration().is_some_and(|declared| declared.hides());
        if declared_invisible && hidden_since.is_none() {
            entry.hidden_since = Some(self.clock.wall_time(now).seconds()).into();
        }
    }

    /// Loads the last known presence, unless newer presence is known.
    pub(super) fn preload(&mut self, now: MonotonicTime, user: UserId, last: LastKnown) -> u32 {
        let is_new = self.find(user).is_none();
        let slot = self.find_or_add(user);
        let entry = &mut self.users[slot];
        if is_new {
            entry.left_at_s = now.seconds();
        }
        // Changes here are newer than the stored presence.
        if !entry.flags.loaded && !entry.flags.online {
            self.load_last_known(now, slot, last);
        }
        slot
    }

    fn load_last_known(&mut self, now: MonotonicTime, slot: u32, last: LastKnown) {
        let unix = self.unix(now);
        let entry = &mut self.users[slot];
        entry.flags.loaded = true;
        entry.last_seen = entry.last_seen.get().max(last.last_seen).into();
        entry.public_version = entry.public_version.max(last.public_version);
        entry.own_version = entry.own_version.max(last.own_version);
        let holds = |declared: &crate::status::Declaration| declared.until.is_none_or(|until| until > unix);
        entry.declare(last.declaration.filter(holds));
    }

    pub(super) fn unwatch(&mut self, user: UserId) -> bool {
        let Some(slot) = self.find(user) else { return false };
        self.users[slot].flags.watched = false;
        self.drop_remote(slot);
        let over = self.removal_at_s(slot).is_some_and(|at| at <= self.clock.latest().seconds());
        if over {
            self.remove_user(slot);
        } else {
            self.schedule(slot);
        }
        over
    }
}
