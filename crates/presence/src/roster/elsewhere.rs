//! What other gateways say of a person, and what this one says to them.
//!
//! Whoever changed a person's record has told the site and the history of it. So what is heard changes what is shown,
//! and nothing else follows from it.

use domain::{Seconds, UnixTime, UserId};

use super::{Core, Roster};
use crate::elsewhere::{Elsewhere, Part, PartDevice};
use crate::input::Effect;
use crate::moment::{Moment, Steady};
use crate::person::{Afar, Glimpse, Person, weight};
use crate::session::Session;
use crate::slots::NONE;
use crate::status::{Declaration, Status};

impl Roster {
    /// What this gateway says of a person; none if they have no session here. A session that lingers counts. With
    /// `heard_since`, only sessions count that gave a sign of life at or after it.
    pub fn part(&self, user: UserId, heard_since: Option<Moment>) -> Option<Part> {
        let person = &self.core.persons[self.core.find(user)?];
        self.core.part(person, heard_since.map(|at| self.core.timeline.steady_at(at)))
    }

    /// Whether a person has a session here. One that lingers counts.
    pub fn has_part(&self, user: UserId) -> bool {
        self.core.find(user).is_some_and(|slot| self.core.persons[slot].first != NONE)
    }

    /// Until when somebody may come back whose gateway is not believed any more from now on.
    pub fn pending_end(&self, now: Moment) -> Moment {
        Moment(now.0.saturating_add(u64::from(self.core.policy.pending.0) * 1000))
    }

    /// Whether a person is known from elsewhere only: somebody else tells of what happens to them.
    pub fn is_others(&self, user: UserId) -> bool {
        self.core.find(user).is_some_and(|slot| self.core.persons[slot].is_others())
    }

    /// The last sign of life of a person's sessions that are over, as far as they were here.
    pub fn last_alive(&self, user: UserId) -> Option<UnixTime> {
        let person = &self.core.persons[self.core.find(user)?];
        Some(person.last_alive).filter(|at| at.0 > 0)
    }

    /// What is known from elsewhere, in place of what was. Versions never go back. Says what changed in what is shown,
    /// and nothing else.
    pub fn hear_elsewhere(&mut self, now: Moment, elsewhere: Elsewhere, effects: &mut Vec<Effect>) {
        let now = self.core.timeline.at(now);
        self.core.hear_elsewhere(now, elsewhere, effects);
    }

    /// What was known from elsewhere is too old to be believed: who has no session here is pending.
    pub fn lose_elsewhere(&mut self, now: Moment, user: UserId, effects: &mut Vec<Effect>) {
        let now = self.core.timeline.at(now);
        if let Some(slot) = self.core.find(user) {
            self.core.lose_elsewhere(now, slot, effects);
        }
    }
}

impl Core {
    fn part(&self, person: &Person, heard_since: Option<Steady>) -> Option<Part> {
        let is_heard = |session: &Session| heard_since.is_none_or(|since| session.pulse.sign() >= since);
        let sessions = || {
            person.sessions(&self.sessions).map(|(_, session)| session).filter(|session| is_heard(session))
        };
        let last_sign = sessions().map(|session| session.pulse.sign()).max()?;
        let ends = sessions().map(|session| {
            let gone = self.policy.gone_by(session.rule(&self.policy));
            let gone_at = session.pulse.sign().plus(gone);
            // What only a grace period keeps is over with it.
            if session.is_live() { gone_at } else { gone_at.max(self.grace_end(person)) }
        });
        let gone_in_ms = ends.max().map_or(0, |end| end.since_ms(last_sign));
        let mut devices: Vec<PartDevice> = Vec::with_capacity(usize::from(person.live).max(1));
        for session in sessions() {
            let known = devices.binary_search_by(|device| device.id.cmp(&session.device));
            match known {
                Ok(place) => add(&mut devices[place], session),
                Err(place) => devices.insert(place, device_of(session)),
            }
        }
        let gone_in = Seconds(u32::try_from(gone_in_ms.div_ceil(1000)).unwrap_or(u32::MAX));
        Some(Part { devices, last_sign: self.unix(last_sign), gone_in })
    }

    fn grace_end(&self, person: &Person) -> Steady {
        Steady(u64::from(person.grace_until_s) * 1000)
    }

    fn hear_elsewhere(&mut self, now: Steady, elsewhere: Elsewhere, effects: &mut Vec<Effect>) {
        let is_new = self.find(elsewhere.user).is_none();
        let slot = self.find_or_add(elsewhere.user);
        if is_new {
            self.persons[slot].left_at_s = now.seconds();
        }
        let before = self.glimpse(slot);
        let afar = Afar::new(elsewhere.devices, elsewhere.last_sign);
        if afar.is_some() {
            // Who came back elsewhere is not waited for here.
            self.end_lingering(now, slot);
        }
        let pending = elsewhere.pending_until.map(|until| self.timeline.steady_at(until).seconds_up().max(1));
        let unix = self.unix(now);
        let person = &mut self.persons[slot];
        person.note_afar();
        person.replace_afar(afar);
        (person.flags.shared, person.flags.informed) = (true, true);
        let holds = |said: &Declaration| said.until.is_none_or(|until| until > unix);
        person.declare(elsewhere.declaration.filter(holds));
        person.pending_until_s = pending.filter(|_| !person.is_present()).unwrap_or(0);
        person.last_seen = person.last_seen.get().max(elsewhere.last_seen).into();
        let hidden_before = person.hidden_since.get();
        // Who hid here a moment ago may not be known to hide yet.
        let kept = hidden_before.filter(|_| person.first != NONE);
        person.hidden_since = elsewhere.hidden_since.or(kept).into();
        let versions = (elsewhere.public_version, elsewhere.own_version);
        self.settle_hiding(slot, unix);
        self.settle_others(slot, before, effects);
        let person = &mut self.persons[slot];
        person.public_version = person.public_version.max(versions.0);
        person.own_version = person.own_version.max(versions.1);
    }

    fn lose_elsewhere(&mut self, now: Steady, slot: u32, effects: &mut Vec<Effect>) {
        let before = self.glimpse(slot);
        let pending_until_s = now.plus(self.policy.pending).seconds_up().max(1);
        let person = &mut self.persons[slot];
        person.note_afar();
        let Some(afar) = person.replace_afar(None) else { return };
        if person.first == NONE {
            person.pending_until_s = pending_until_s;
            if !before.hidden {
                person.last_seen = person.last_seen.get().max(afar.last_sign).into();
            }
        }
        let unix = self.unix(now);
        self.settle_hiding(slot, unix);
        self.settle_others(slot, before, effects);
    }

    /// Since when somebody hides follows from what they are now.
    fn settle_hiding(&mut self, slot: u32, unix: UnixTime) {
        let person = &self.persons[slot];
        let since = match person.status(person.sessions(&self.sessions)) {
            Status::Invisible => person.hidden_since.get().or(Some(unix)),
            // Who hid and may come back is still hidden.
            Status::Pending => person.hidden_since.get(),
            _ => None,
        };
        self.persons[slot].hidden_since = since.into();
    }

    /// What follows from a change that others have told of already.
    pub(super) fn settle_others(&mut self, slot: u32, before: Glimpse, effects: &mut Vec<Effect>) {
        let person = &mut self.persons[slot];
        person.flags.here = person.is_present() || person.pending_until_s > 0;
        let after = self.glimpse(slot);
        self.settle_versions(slot, before, after, effects);
        self.plan(slot);
    }

    /// Nobody is asked about this person any more: what others said of them will not hold for long.
    pub(super) fn stop_asking(&mut self, slot: u32) {
        let person = &mut self.persons[slot];
        if person.is_others() {
            person.note_afar();
            person.replace_afar(None);
            person.pending_until_s = 0;
            (person.flags.here, person.flags.shared, person.flags.informed) = (false, false, false);
        }
    }
}

impl Person {
    /// The last sign of life from elsewhere stays known when those sessions are over.
    fn note_afar(&mut self) {
        let sign = self.afar().and_then(|afar| afar.last_sign);
        self.last_alive = self.last_alive.max(sign.unwrap_or_default());
    }
}

fn device_of(session: &Session) -> PartDevice {
    PartDevice {
        id: session.device.clone(),
        platform: session.platform,
        app: session.app,
        online: session.is_online(),
        said: session.counts(),
    }
}

/// An older session of the same device.
fn add(device: &mut PartDevice, session: &Session) {
    if (session.app as u8) < device.app as u8 {
        device.app = session.app;
    }
    device.online |= session.is_online();
    device.said = [device.said, session.counts()].into_iter().flatten().max_by_key(|said| weight(*said));
}
