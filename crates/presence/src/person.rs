//! One person: what their sessions and their own words add up to.
//!
//! The rules, in this order:
//!
//! 1. What the person declared decides: invisible, busy or away as said; online means automatic.
//! 2. Else, if any session says invisible: invisible.
//! 3. Else the best of busy, online, away among the sessions that say busy or away, or say online and are.
//! 4. Else automatic: online if any session is, else away.
//! 5. Without a session: pending after a restart, else offline, whatever is declared.
//!
//! A grace period is a session that is over and still shown, so these rules need not know of it.

use std::hash::{BuildHasher, Hash, Hasher};

use domain::{UnixTime, UserId};
use foldhash::fast::FixedState;

use crate::device::{AppState, DeviceId, Platform};
use crate::session::Session;
use crate::slots::{NONE, Slots};
use crate::status::{Declaration, Declared, Status};
use crate::view::DeviceView;

#[derive(Debug)]
pub(crate) struct Person {
    pub user: UserId,
    pub public_version: u64,
    pub own_version: u64,
    pub declaration: Option<Box<Declaration>>,
    /// The slot of the first of the sessions.
    pub first: u32,
    /// Sessions that are alive.
    pub live: u16,
    /// How often the person's connection broke lately.
    pub flap_level: u8,
    pub flags: Flags,
    /// The last sign of life that others may know of, once the person cannot be seen any more.
    pub last_seen: Known,
    /// The last sign of life of sessions that are over.
    pub last_alive: UnixTime,
    pub hidden_since: Known,
    pub seeding: u32,
    pub leeching: u32,
    /// Steady seconds from here on; zero means none.
    pub pending_until_s: u32,
    pub grace_until_s: u32,
    /// When the last session ended.
    pub left_at_s: u32,
    /// When the first of the present sessions began.
    pub up_since_s: u32,
    pub remembered_at_s: u32,
    /// The place in the agenda.
    pub due_s: u32,
}

/// A moment or none, in the space of a moment: nobody was seen in 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known(UnixTime);

impl Known {
    pub fn get(self) -> Option<UnixTime> {
        Some(self.0).filter(|at| at.0 > 0)
    }
}

impl From<Option<UnixTime>> for Known {
    fn from(at: Option<UnixTime>) -> Known {
        Known(at.unwrap_or_default())
    }
}

/// What is so or not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    /// Has arrived and not left.
    pub here: bool,
    /// Somebody watches.
    pub watched: bool,
    /// What was last known has been told.
    pub informed: bool,
    /// The last session ended because the connection broke.
    pub dropped: bool,
}

impl Person {
    pub fn new(user: UserId) -> Person {
        Person {
            user,
            public_version: 0,
            own_version: 0,
            declaration: None,
            first: NONE,
            live: 0,
            flap_level: 0,
            flags: Flags::default(),
            last_seen: Known::default(),
            last_alive: UnixTime(0),
            hidden_since: Known::default(),
            seeding: 0,
            leeching: 0,
            pending_until_s: 0,
            grace_until_s: 0,
            left_at_s: 0,
            up_since_s: 0,
            remembered_at_s: 0,
            due_s: 0,
        }
    }

    pub fn sessions<'a>(&self, slots: &'a Slots<Session>) -> SessionsOf<'a> {
        SessionsOf { slots, next: self.first }
    }

    /// The status in the own view.
    pub fn status(&self, sessions: SessionsOf<'_>) -> Status {
        if self.first == NONE {
            return if self.pending_until_s > 0 { Status::Pending } else { Status::Offline };
        }
        match self.declaration.as_deref().map(|declaration| declaration.status) {
            Some(Declared::Invisible) => Status::Invisible,
            Some(Declared::Busy) => Status::Busy,
            Some(Declared::Away) => Status::Away,
            Some(Declared::Online) => automatic(sessions),
            None => said(sessions.clone()).unwrap_or_else(|| automatic(sessions)),
        }
    }

    /// Whether the person hides: here and invisible, or hidden before a restart and not back yet.
    pub fn is_hidden(&self, own: Status) -> bool {
        own == Status::Invisible || (own == Status::Pending && self.hidden_since.get().is_some())
    }

    /// What can be compared before and after a change.
    pub fn glimpse(&self, slots: &Slots<Session>) -> Glimpse {
        let own = self.status(self.sessions(slots));
        let hidden = self.is_hidden(own);
        let declaration = self.declaration.as_deref();
        let mut print = FixedState::default().build_hasher();
        own.hash(&mut print);
        declaration.map(|declaration| (&declaration.text, declaration.until.map(|at| at.0))).hash(&mut print);
        (self.seeding, self.leeching).hash(&mut print);
        // Added up, so that the order of the sessions does not matter.
        let devices = devices(self.sessions(slots)).map(|device| FixedState::default().hash_one(device));
        devices.fold(0_u64, u64::wrapping_add).hash(&mut print);
        let mut memory = FixedState::default().build_hasher();
        (self.flags.here, hidden).hash(&mut memory);
        declaration.map(|said| (said.status, &said.text, said.until.map(|at| at.0))).hash(&mut memory);
        Glimpse { own, hidden, print: print.finish(), memory: memory.finish() }
    }
}

/// What is shown of a person, small enough to compare: sixty-four bits stand for text, devices and traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glimpse {
    pub own: Status,
    pub hidden: bool,
    print: u64,
    memory: u64,
}

impl Glimpse {
    /// The status in the public view.
    pub fn public(&self) -> Status {
        if self.hidden { Status::Offline } else { self.own }
    }

    pub fn own_differs(&self, other: &Glimpse) -> bool {
        self.print != other.print
    }

    /// Of who is offline, others see nothing that could change.
    pub fn public_differs(&self, other: &Glimpse) -> bool {
        let shown = |glimpse: &Glimpse| match glimpse.public() {
            Status::Offline => None,
            _ => Some(glimpse.print),
        };
        shown(self) != shown(other)
    }

    pub fn memory_differs(&self, other: &Glimpse) -> bool {
        self.memory != other.memory
    }
}

/// A walk through a person's sessions, the newest first.
#[derive(Clone)]
pub(crate) struct SessionsOf<'a> {
    slots: &'a Slots<Session>,
    next: u32,
}

impl<'a> Iterator for SessionsOf<'a> {
    type Item = (u32, &'a Session);
    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.next;
        let session = if slot == NONE { return None } else { &self.slots[slot] };
        self.next = session.next;
        Some((slot, session))
    }
}

fn automatic(mut sessions: SessionsOf<'_>) -> Status {
    if sessions.any(|(_, session)| session.is_online()) { Status::Online } else { Status::Away }
}

/// What the sessions say, if any says something that counts.
fn said(sessions: SessionsOf<'_>) -> Option<Status> {
    let counts = sessions.filter_map(|(_, session)| match session.said? {
        Declared::Invisible => Some(Status::Invisible),
        Declared::Busy => Some(Status::Busy),
        Declared::Online => session.is_online().then_some(Status::Online),
        Declared::Away => Some(Status::Away),
    });
    counts.max_by_key(|status| match status {
        Status::Invisible => 3,
        Status::Busy => 2,
        Status::Online => 1,
        Status::Away | Status::Offline | Status::Pending => 0,
    })
}

/// What there is to show of a device. Of several sessions the best counts; the newest says what kind it is.
#[derive(Clone, Copy, Hash)]
pub(crate) struct DeviceGlimpse<'a> {
    pub id: &'a DeviceId,
    platform: Platform,
    app: AppState,
    online: bool,
}

impl DeviceGlimpse<'_> {
    pub fn view(&self) -> DeviceView {
        DeviceView {
            id: self.id.clone(),
            platform: self.platform,
            app: self.app,
            status: if self.online { Status::Online } else { Status::Away },
        }
    }
}

/// The devices of these sessions, each once.
pub(crate) fn devices(sessions: SessionsOf<'_>) -> impl Iterator<Item = DeviceGlimpse<'_>> {
    let all = sessions.clone();
    sessions.filter_map(move |(slot, session)| {
        let mut of_device = all.clone().filter(|(_, other)| other.device == session.device);
        let newest = of_device.clone().next().is_some_and(|(other, _)| other == slot);
        newest.then(|| DeviceGlimpse {
            id: &session.device,
            platform: session.platform,
            // The states are declared from the best to the worst.
            app: of_device
                .clone()
                .map(|(_, other)| other.app)
                .min_by_key(|app| *app as u8)
                .unwrap_or(session.app),
            online: of_device.any(|(_, other)| other.is_online()),
        })
    })
}
