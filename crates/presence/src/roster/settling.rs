//! What follows from a change: versions, effects, the tally, the agenda.

use domain::{UnixTime, UserId};

use super::Core;
use crate::device::DeviceId;
use crate::input::{Cause, Effect};
use crate::moment::{Moment, Steady};
use crate::person::Glimpse;
use crate::slots::NONE;
use crate::status::Status;
use crate::view::{LastKnown, Remembered};

/// Why something changed.
pub(super) struct Why {
    pub cause: Cause,
    pub device: Option<DeviceId>,
}

impl Why {
    pub fn by(cause: Cause, device: DeviceId) -> Why {
        Why { cause, device: Some(device) }
    }

    pub fn of(cause: Cause) -> Why {
        Why { cause, device: None }
    }
}

/// Versions go on over a restart that lost the last ones: nobody changes a thousand times a second, so the start lies
/// above all that were given before it. The present is not in them, or a version would tell when somebody was last here.
fn next_version(last: u64, start: Moment) -> u64 {
    last.saturating_add(1).max(start.0)
}

fn is_absent(status: Status) -> bool {
    matches!(status, Status::Offline | Status::Pending)
}

impl Core {
    pub(super) fn glimpse(&self, person: u32) -> Glimpse {
        self.persons[person].glimpse(&self.sessions)
    }

    /// Compares a person with what they were, and says what is different.
    pub(super) fn settle(
        &mut self,
        now: Steady,
        slot: u32,
        before: Glimpse,
        why: Why,
        effects: &mut Vec<Effect>,
    ) {
        if before.is_others && self.persons[slot].is_others() {
            return self.settle_others(slot, before, effects);
        }
        self.settle_presence(slot, before, &why, effects);
        let after = self.glimpse(slot);
        self.settle_times(now, slot, before, after);
        let user = self.persons[slot].user;
        if before.own != after.own {
            let Why { cause, device } = why;
            effects.push(Effect::Transition { user, from: before.own, to: after.own, cause, device });
        }
        self.settle_versions(slot, before, after, effects);
        if before.memory_differs(&after) {
            self.persons[slot].remembered_at_s = now.seconds();
            effects.push(Effect::Remember { user });
        }
        self.plan(slot);
    }

    /// First in, last out.
    fn settle_presence(&mut self, slot: u32, before: Glimpse, why: &Why, effects: &mut Vec<Effect>) {
        let person = &mut self.persons[slot];
        let is_here = person.is_present() || person.pending_until_s > 0;
        if is_here == person.flags.here {
            return;
        }
        person.flags.here = is_here;
        let user = person.user;
        let (cause, device) = (why.cause, why.device.clone());
        if is_here {
            effects.push(Effect::Arrived { user, cause, device });
        } else {
            let last_seen =
                if before.own == Status::Pending { person.last_seen.get() } else { Some(person.last_alive) };
            effects.push(Effect::Left { user, last_seen, cause, device });
        }
    }

    fn settle_times(&mut self, now: Steady, slot: u32, before: Glimpse, after: Glimpse) {
        let unix = self.unix(now);
        let person = &mut self.persons[slot];
        let vanished = before.public() != Status::Offline && after.public() == Status::Offline;
        // Of who was only pending, others know no later time than the one from before the restart.
        if vanished && before.own != Status::Pending {
            person.last_seen = Some(if after.hidden { unix } else { person.last_alive }).into();
        }
        match (after.hidden, person.hidden_since.get()) {
            (true, None) => person.hidden_since = Some(unix).into(),
            (false, Some(_)) => person.hidden_since = None.into(),
            _ => {}
        }
    }

    pub(super) fn settle_versions(
        &mut self,
        slot: u32,
        before: Glimpse,
        after: Glimpse,
        effects: &mut Vec<Effect>,
    ) {
        let (public, own) = (before.public_differs(&after), before.own_differs(&after));
        self.tally.persons[before.counted as usize] -= 1;
        self.tally.persons[after.counted as usize] += 1;
        self.settle_list(slot, before, after);
        let person = &mut self.persons[slot];
        // Who is elsewhere has versions that were begun there.
        let start = if person.is_others() { Moment::default() } else { self.start };
        if public {
            person.public_version = next_version(person.public_version, start);
        }
        if own {
            person.own_version = next_version(person.own_version, start);
        }
        if public || own {
            let crosses = is_absent(before.public()) != is_absent(after.public());
            effects.push(Effect::Changed { user: person.user, public, own, urgent: crosses || !public });
        }
    }

    /// The list has those who are counted as anything but offline.
    fn settle_list(&mut self, slot: u32, before: Glimpse, after: Glimpse) {
        let user = self.persons[slot].user;
        match (before.counted == Status::Offline, after.counted == Status::Offline) {
            (true, false) => drop(self.listed.insert(user)),
            (false, true) => drop(self.listed.remove(&user)),
            _ => {}
        }
    }

    /// When a person who is not here is forgotten, in steady seconds; none if they are kept.
    pub(super) fn forgets_at_s(&self, slot: u32) -> Option<u32> {
        let person = &self.persons[slot];
        // Who is elsewhere is not kept for that: others know them.
        let kept = person.flags.watched || (person.flags.here && !person.is_others());
        // From the last news of them on, so that it can be read.
        let last_s = person.left_at_s.max(person.remembered_at_s);
        (!kept).then(|| last_s.saturating_add(self.policy.keep_after_leaving().0))
    }

    /// Puts a person into the agenda for what is due next.
    pub(super) fn plan(&mut self, slot: u32) {
        let person = &self.persons[slot];
        let until = person.declaration().and_then(|said| said.until);
        let due_s = [
            until.map(|until| self.timeline.steady(until).seconds_up()),
            Some(person.grace_until_s).filter(|at| *at > 0),
            Some(person.pending_until_s).filter(|at| *at > 0),
            self.forgets_at_s(slot),
        ];
        let due_s = due_s.into_iter().flatten().min().map_or(0, |at| at.max(1));
        if due_s == person.due_s {
            return;
        }
        self.agenda.remove(&(person.due_s, slot));
        self.persons[slot].due_s = due_s;
        if due_s > 0 {
            self.agenda.insert((due_s, slot));
        }
    }

    pub(super) fn restore(&mut self, now: Steady, remembered: Remembered, effects: &mut Vec<Effect>) {
        let Remembered { user, here, declaration, last_seen, hidden_since, public_version, own_version } =
            remembered;
        let last = LastKnown { last_seen, public_version, own_version, declaration };
        let slot = self.recall(now, user, last);
        if here && !self.persons[slot].flags.here {
            let before = self.glimpse(slot);
            self.await_return(now, slot, hidden_since);
            let after = self.glimpse(slot);
            self.settle_versions(slot, before, after, effects);
        }
        self.plan(slot);
    }

    /// Like [`Core::restore`], but what is stored is newer than what is known of somebody who is not connected.
    pub(super) fn bring_back(&mut self, now: Steady, remembered: Remembered, effects: &mut Vec<Effect>) {
        let Some(slot) = self.find(remembered.user) else { return self.restore(now, remembered, effects) };
        if self.persons[slot].first != NONE {
            return;
        }
        let Remembered { here, declaration, last_seen, hidden_since, public_version, own_version, .. } =
            remembered;
        let before = self.glimpse(slot);
        self.adopt(now, slot, LastKnown { last_seen, public_version, own_version, declaration });
        if here && !self.persons[slot].flags.here {
            self.await_return(now, slot, hidden_since);
        }
        let after = self.glimpse(slot);
        self.settle_versions(slot, before, after, effects);
        self.plan(slot);
    }

    /// Somebody was here, and may come back.
    fn await_return(&mut self, now: Steady, slot: u32, hidden_since: Option<UnixTime>) {
        let pending_until_s = now.plus(self.policy.pending).seconds_up().max(1);
        let person = &mut self.persons[slot];
        person.flags.here = true;
        person.pending_until_s = pending_until_s;
        person.hidden_since = hidden_since.into();
        let declared_invisible = person.declaration().is_some_and(|said| said.hides());
        if declared_invisible && hidden_since.is_none() {
            person.hidden_since = Some(self.timeline.moment(now).seconds()).into();
        }
    }

    /// Takes what was last known of a person, unless more is known already.
    pub(super) fn recall(&mut self, now: Steady, user: UserId, last: LastKnown) -> u32 {
        let is_new = self.find(user).is_none();
        let slot = self.find_or_add(user);
        let person = &mut self.persons[slot];
        if is_new {
            person.left_at_s = now.seconds();
        }
        // What happened here is newer than what was stored.
        if !person.flags.informed && !person.flags.here {
            self.adopt(now, slot, last);
        }
        slot
    }

    fn adopt(&mut self, now: Steady, slot: u32, last: LastKnown) {
        let unix = self.unix(now);
        let person = &mut self.persons[slot];
        person.flags.informed = true;
        person.last_seen = person.last_seen.get().max(last.last_seen).into();
        person.public_version = person.public_version.max(last.public_version);
        person.own_version = person.own_version.max(last.own_version);
        let holds = |said: &crate::status::Declaration| said.until.is_none_or(|until| until > unix);
        person.declare(last.declaration.filter(holds));
    }

    pub(super) fn forget(&mut self, user: UserId) -> bool {
        let Some(slot) = self.find(user) else { return false };
        self.persons[slot].flags.watched = false;
        self.stop_asking(slot);
        let over = self.forgets_at_s(slot).is_some_and(|at| at <= self.timeline.latest().seconds());
        if over {
            self.remove_person(slot);
        } else {
            self.plan(slot);
        }
        over
    }
}
