//! What can be read of a person.

use domain::{UnixTime, UserId};

use super::{Core, Roster};
use crate::person::Person;
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
