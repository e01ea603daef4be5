//! What can be read of a person.

use std::ops::Bound;

use domain::{UnixTime, UserId};

use super::{Core, Roster};
use crate::device::{DeviceId, Platform};
use crate::moment::Steady;
use crate::person::Person;
use crate::slots::NONE;
use crate::status::Status;
use crate::view::{Remembered, SessionView, View};

impl Roster {
    /// What others see. Of somebody unknown: offline, version 0.
    pub fn public_view(&self, user: UserId) -> View {
        let Some(slot) = self.core.find(user) else { return View::unknown(user) };
        let person = &self.core.persons[slot];
        let own = person.status(person.sessions(&self.core.sessions));
        if own == Status::Offline || person.is_hidden(own) {
            let (last_seen, version) = (person.last_seen.get(), person.public_version);
            return View { last_seen, version, ..View::unknown(user) };
        }
        View { version: person.public_version, ..self.core.full_view(person, own) }
    }

    /// What the person's own devices see.
    pub fn own_view(&self, user: UserId) -> View {
        let Some(slot) = self.core.find(user) else { return View::unknown(user) };
        let person = &self.core.persons[slot];
        self.core.full_view(person, person.status(person.sessions(&self.core.sessions)))
    }

    /// What should be known of a person after a crash; none if they are unknown here.
    pub fn remembered(&self, user: UserId) -> Option<Remembered> {
        let person = &self.core.persons[self.core.find(user)?];
        let own = person.status(person.sessions(&self.core.sessions));
        let visible = own != Status::Offline && !person.is_hidden(own);
        Some(Remembered {
            user,
            here: person.flags.here,
            declaration: person.declaration().cloned(),
            last_seen: if visible { self.core.last_sign(person) } else { person.last_seen.get() },
            hidden_since: person.hidden_since.get(),
            public_version: person.public_version,
            own_version: person.own_version,
        })
    }

    /// A person's sessions, for an administrator: the newest first.
    pub fn sessions(&self, user: UserId) -> impl Iterator<Item = SessionView> {
        let person = self.core.find(user).map(|slot| &self.core.persons[slot]);
        let sessions = person.into_iter().flat_map(|person| person.sessions(&self.core.sessions));
        let live = sessions.filter(|(_, session)| session.is_live());
        live.map(|(_, session)| session.view(&self.core.timeline))
    }
}

/// Everybody who is here, or pending, and not only known from elsewhere.
impl Roster {
    /// Their numbers in order, behind this one.
    pub fn listed_after(&self, after: Option<UserId>) -> impl Iterator<Item = UserId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.core.listed.range((from, Bound::Unbounded)).copied()
    }

    /// Whether somebody is among them.
    pub fn is_listed(&self, user: UserId) -> bool {
        self.core.listed.contains(&user)
    }

    /// Somebody's status as they see it themselves, and whether they hide.
    pub fn standing(&self, user: UserId) -> (Status, bool) {
        let Some(slot) = self.core.find(user) else { return (Status::Offline, false) };
        let person = &self.core.persons[slot];
        let own = person.status(person.sessions(&self.core.sessions));
        (own, person.is_hidden(own))
    }

    /// Since when somebody has had a session here; none if they have none.
    pub fn here_since(&self, user: UserId) -> Option<UnixTime> {
        let person = &self.core.persons[self.core.find(user)?];
        let is_here = person.first != NONE;
        is_here.then(|| self.core.unix(Steady(u64::from(person.up_since_s) * 1000)))
    }

    /// Whether somebody has a device of this kind, here or elsewhere.
    pub fn has_platform(&self, user: UserId, platform: Platform) -> bool {
        let Some(slot) = self.core.find(user) else { return false };
        let person = &self.core.persons[slot];
        person.sessions(&self.core.sessions).any(|(_, session)| session.platform == platform)
            || person.devices_afar().iter().any(|device| device.platform == platform)
    }

    /// What kind of device it is, if it has a session here.
    pub fn platform_of(&self, user: UserId, device: &DeviceId) -> Option<Platform> {
        let person = &self.core.persons[self.core.find(user)?];
        let mut sessions = person.sessions(&self.core.sessions);
        sessions.find(|(_, session)| session.device == *device).map(|(_, session)| session.platform)
    }
}

impl Core {
    /// Everything there is to see, with the version of the own view.
    fn full_view(&self, person: &Person, own: Status) -> View {
        let mut shown: Vec<_> = person.devices(&self.sessions).map(|device| device.view()).collect();
        shown.sort_by(|one, other| one.id.cmp(&other.id));
        let declaration = person.declaration();
        View {
            user: person.user,
            status: own,
            text: declaration.and_then(|said| said.text.clone()),
            until: declaration.and_then(|said| said.until),
            devices: shown,
            last_seen: self.last_sign(person),
            version: person.own_version,
            seeding: person.seeding,
            leeching: person.leeching,
        }
    }

    /// The last sign of life: of who is here that of their sessions, else what is remembered.
    fn last_sign(&self, person: &Person) -> Option<UnixTime> {
        if !person.is_present() {
            return person.last_seen.get();
        }
        let signs = person.sessions(&self.sessions).map(|(_, session)| self.unix(session.pulse.sign()));
        let afar = person.afar().and_then(|afar| afar.last_sign);
        signs.max().max(afar).max(Some(person.last_alive)).filter(|at| at.0 > 0)
    }
}
