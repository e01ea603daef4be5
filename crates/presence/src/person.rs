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
//! A grace period is a session that is over and still shown, so these rules need not know of it. Devices elsewhere
//! (see `elsewhere`) count like sessions.

use std::hash::{BuildHasher, Hash, Hasher};

use domain::{UnixTime, UserId};
use foldhash::fast::FixedState;

use crate::device::{AppState, DeviceId, Platform};
use crate::elsewhere::PartDevice;
use crate::session::Session;
use crate::slots::{NONE, Slots};
use crate::status::{Declaration, Declared, Status};
use crate::view::DeviceView;

#[derive(Debug)]
pub(crate) struct Person {
    pub user: UserId,
    pub public_version: u64,
    pub own_version: u64,
    /// What few people have.
    rare: Option<Box<Rare>>,
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

/// What few people have, in the space of a pointer.
#[derive(Debug, Default)]
struct Rare {
    declaration: Option<Declaration>,
    afar: Option<Afar>,
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
    /// Others were asked about this person: what is here is not all there is.
    pub shared: bool,
}

impl Person {
    pub fn new(user: UserId) -> Person {
        Person {
            user,
            public_version: 0,
            own_version: 0,
            rare: None,
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

    /// What the person declared.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.rare.as_ref()?.declaration.as_ref()
    }

    /// Sessions elsewhere, if there are any.
    pub fn afar(&self) -> Option<&Afar> {
        self.rare.as_ref()?.afar.as_ref()
    }

    /// The person declares something, or takes it back.
    pub fn declare(&mut self, declaration: Option<Declaration>) {
        self.keep(|rare| rare.declaration = declaration);
    }

    /// What is known of sessions elsewhere. Gives what was.
    pub fn replace_afar(&mut self, afar: Option<Afar>) -> Option<Afar> {
        self.keep(|rare| std::mem::replace(&mut rare.afar, afar))
    }

    fn keep<T>(&mut self, act: impl FnOnce(&mut Rare) -> T) -> T {
        let mut rare = self.rare.take().unwrap_or_default();
        let done = act(&mut rare);
        self.rare = Some(rare).filter(|rare| rare.declaration.is_some() || rare.afar.is_some());
        done
    }

    /// Whether there is a session, here or elsewhere.
    pub fn is_present(&self) -> bool {
        self.first != NONE || self.afar().is_some()
    }

    /// The devices that are elsewhere.
    pub fn devices_afar(&self) -> &[PartDevice] {
        self.afar().map(|afar| &*afar.devices).unwrap_or_default()
    }

    /// Those who have no session here are somebody else's to tell of, once others are asked.
    pub fn is_others(&self) -> bool {
        self.flags.shared && self.first == NONE
    }

    /// The status in the own view.
    pub fn status(&self, sessions: SessionsOf<'_>) -> Status {
        if !self.is_present() {
            return if self.pending_until_s > 0 { Status::Pending } else { Status::Offline };
        }
        match self.declaration().map(|declaration| declaration.status) {
            Some(Declared::Invisible) => Status::Invisible,
            Some(Declared::Busy) => Status::Busy,
            Some(Declared::Away) => Status::Away,
            Some(Declared::Online) => self.automatic(sessions),
            None => self.said(sessions.clone()).unwrap_or_else(|| self.automatic(sessions)),
        }
    }

    fn automatic(&self, mut sessions: SessionsOf<'_>) -> Status {
        let is_online = sessions.any(|(_, session)| session.is_online())
            || self.devices_afar().iter().any(|device| device.online);
        if is_online { Status::Online } else { Status::Away }
    }

    /// What the sessions say, if any says something that counts.
    fn said(&self, sessions: SessionsOf<'_>) -> Option<Status> {
        let here = sessions.filter_map(|(_, session)| session.counts());
        let afar = self.devices_afar().iter().filter_map(|device| device.said);
        here.chain(afar).max_by_key(|said| weight(*said)).map(|said| match said {
            Declared::Invisible => Status::Invisible,
            Declared::Busy => Status::Busy,
            Declared::Online => Status::Online,
            Declared::Away => Status::Away,
        })
    }

    /// Whether the person hides: here and invisible, or hidden before a restart and not back yet.
    pub fn is_hidden(&self, own: Status) -> bool {
        own == Status::Invisible || (own == Status::Pending && self.hidden_since.get().is_some())
    }

    /// What can be compared before and after a change.
    pub fn glimpse(&self, slots: &Slots<Session>) -> Glimpse {
        let own = self.status(self.sessions(slots));
        let hidden = self.is_hidden(own);
        let declaration = self.declaration();
        let mut print = FixedState::default().build_hasher();
        own.hash(&mut print);
        declaration.map(|declaration| (&declaration.text, declaration.until.map(|at| at.0))).hash(&mut print);
        (self.seeding, self.leeching).hash(&mut print);
        // Added up, so that the order of the sessions does not matter.
        let devices = self.devices(slots).map(|device| FixedState::default().hash_one(device));
        devices.fold(0_u64, u64::wrapping_add).hash(&mut print);
        let mut memory = FixedState::default().build_hasher();
        (self.flags.here, hidden).hash(&mut memory);
        declaration.map(|said| (said.status, &said.text, said.until.map(|at| at.0))).hash(&mut memory);
        let counted = if self.is_others() { Status::Offline } else { own };
        let is_others = self.is_others();
        Glimpse { own, hidden, counted, is_others, print: print.finish(), memory: memory.finish() }
    }
}

/// What is shown of a person, small enough to compare: sixty-four bits stand for text, devices and traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glimpse {
    pub own: Status,
    pub hidden: bool,
    /// The status by which the person is counted here.
    pub counted: Status,
    /// Known from others only.
    pub is_others: bool,
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

/// Of several that count, the heaviest decides.
pub(crate) fn weight(said: Declared) -> u8 {
    match said {
        Declared::Invisible => 3,
        Declared::Busy => 2,
        Declared::Online => 1,
        Declared::Away => 0,
    }
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

impl Person {
    /// The devices, here and elsewhere, each once.
    pub fn devices<'a>(&'a self, slots: &'a Slots<Session>) -> impl Iterator<Item = DeviceGlimpse<'a>> {
        let all = self.sessions(slots);
        let here = devices_here(all.clone()).map(|device| match self.find_afar(device.id) {
            None => device,
            Some(afar) => DeviceGlimpse {
                app: better(device.app, afar.app),
                online: device.online || afar.online,
                ..device
            },
        });
        let is_only_afar =
            move |afar: &&PartDevice| !all.clone().any(|(_, session)| session.device == afar.id);
        let afar = self.devices_afar().iter().filter(is_only_afar).map(|afar| DeviceGlimpse {
            id: &afar.id,
            platform: afar.platform,
            app: afar.app,
            online: afar.online,
        });
        here.chain(afar)
    }

    fn find_afar(&self, id: &DeviceId) -> Option<&PartDevice> {
        let devices = self.devices_afar();
        devices.binary_search_by(|afar| afar.id.cmp(id)).ok().map(|place| &devices[place])
    }
}

/// The devices of these sessions, each once.
pub(crate) fn devices_here(sessions: SessionsOf<'_>) -> impl Iterator<Item = DeviceGlimpse<'_>> {
    let all = sessions.clone();
    sessions.filter_map(move |(slot, session)| {
        let mut of_device = all.clone().filter(|(_, other)| other.device == session.device);
        let newest = of_device.clone().next().is_some_and(|(other, _)| other == slot);
        newest.then(|| DeviceGlimpse {
            id: &session.device,
            platform: session.platform,
            app: of_device.clone().map(|(_, other)| other.app).fold(session.app, better),
            online: of_device.any(|(_, other)| other.is_online()),
        })
    })
}

/// The states are declared from the best to the worst.
fn better(one: AppState, other: AppState) -> AppState {
    if (other as u8) < one as u8 { other } else { one }
}

/// A person's sessions elsewhere, as far as they matter here.
#[derive(Debug)]
pub(crate) struct Afar {
    /// In the order of their names, each once.
    devices: Box<[PartDevice]>,
    pub last_sign: Option<UnixTime>,
}

impl Afar {
    /// What was said of devices elsewhere; none if there are none. A device that is at several places is put together.
    pub fn new(mut devices: Vec<PartDevice>, last_sign: Option<UnixTime>) -> Option<Afar> {
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        devices.dedup_by(|next, kept| {
            let is_same = next.id == kept.id;
            if is_same {
                kept.app = better(kept.app, next.app);
                kept.online |= next.online;
                kept.said = [kept.said, next.said].into_iter().flatten().max_by_key(|said| weight(*said));
            }
            is_same
        });
        (!devices.is_empty()).then(|| Afar { devices: devices.into(), last_sign })
    }
}
