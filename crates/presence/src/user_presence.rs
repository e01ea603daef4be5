//! The presence of one user: aggregates sessions and declarations.
//!
//! The rules, in this order:
//!
//! 1. The user's declaration decides: invisible, busy or away; online means automatic.
//! 2. Else, if any session declares invisible: invisible.
//! 3. Else the best of busy, online, away among the sessions that declare busy or away, or declare online and are
//!    online.
//! 4. Else automatic: online if any session is online, else away.
//! 5. Without a session: pending after a restart, else offline, whatever is declared.
//!
//! A grace period is an ended session that is still shown, so these rules need not handle it. Remote devices (see
//! `remote`) count like sessions.

use std::hash::{BuildHasher, Hash, Hasher};

use domain::{UnixTime, UserId};
use foldhash::fast::FixedState;

use crate::device::{AppState, DeviceId, Platform};
use crate::remote::NodeDevice;
use crate::session::Session;
use crate::slab::{NONE, Slab};
use crate::status::{Declaration, Declared, Status};
use crate::view::DeviceView;

#[derive(Debug)]
pub(crate) struct UserPresence {
    pub user: UserId,
    pub public_version: u64,
    pub own_version: u64,
    /// Boxed, since few users have any of it.
    rare: Option<Box<Rare>>,
    /// The slot of the first session.
    pub first: u32,
    pub live: u16,
    /// Recent connection drops, for flap damping.
    pub flap_level: u8,
    pub flags: Flags,
    /// The last activity that other users may see, once the user is offline or hidden.
    pub last_seen: OptionalTime,
    /// The last activity of ended sessions.
    pub last_alive: UnixTime,
    pub hidden_since: OptionalTime,
    pub seeding: u32,
    pub leeching: u32,
    /// Monotonic seconds from here on; zero means none.
    pub pending_until_s: u32,
    pub grace_until_s: u32,
    /// When the last session ended.
    pub left_at_s: u32,
    /// When the oldest current session started.
    pub up_since_s: u32,
    pub stored_at_s: u32,
    /// The key in the deadlines.
    pub due_s: u32,
}

#[derive(Debug, Default)]
struct Rare {
    declaration: Option<Declaration>,
    remote: Option<RemoteDevices>,
}

/// `Option<UnixTime>` in four bytes: zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OptionalTime(UnixTime);

impl OptionalTime {
    pub fn get(self) -> Option<UnixTime> {
        Some(self.0).filter(|at| at.0 > 0)
    }
}

impl From<Option<UnixTime>> for OptionalTime {
    fn from(at: Option<UnixTime>) -> OptionalTime {
        OptionalTime(at.unwrap_or_default())
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    /// Has arrived and not left.
    pub online: bool,
    pub watched: bool,
    /// The last known presence was loaded.
    pub loaded: bool,
    /// The last session ended because the connection broke.
    pub dropped: bool,
    /// The cluster was queried about this user: there may be remote sessions.
    pub has_remote: bool,
}

impl UserPresence {
    pub fn new(user: UserId) -> UserPresence {
        UserPresence {
            user,
            public_version: 0,
            own_version: 0,
            rare: None,
            first: NONE,
            live: 0,
            flap_level: 0,
            flags: Flags::default(),
            last_seen: OptionalTime::default(),
            last_alive: UnixTime(0),
            hidden_since: OptionalTime::default(),
            seeding: 0,
            leeching: 0,
            pending_until_s: 0,
            grace_until_s: 0,
            left_at_s: 0,
            up_since_s: 0,
            stored_at_s: 0,
            due_s: 0,
        }
    }

    pub fn sessions<'a>(&self, slots: &'a Slab<Session>) -> SessionsOf<'a> {
        SessionsOf { slots, next: self.first }
    }

    pub fn declaration(&self) -> Option<&Declaration> {
        self.rare.as_ref()?.declaration.as_ref()
    }

    pub fn remote(&self) -> Option<&RemoteDevices> {
        self.rare.as_ref()?.remote.as_ref()
    }

    pub fn declare(&mut self, declaration: Option<Declaration>) {
        self.keep(|rare| rare.declaration = declaration);
    }

    /// Returns the previous value.
    pub fn replace_remote(&mut self, remote: Option<RemoteDevices>) -> Option<RemoteDevices> {
        self.keep(|rare| std::mem::replace(&mut rare.remote, remote))
    }

    fn keep<T>(&mut self, act: impl FnOnce(&mut Rare) -> T) -> T {
        let mut rare = self.rare.take().unwrap_or_default();
        let done = act(&mut rare);
        self.rare = Some(rare).filter(|rare| rare.declaration.is_some() || rare.remote.is_some());
        done
    }

    /// Whether there is a session, local or remote.
    pub fn is_present(&self) -> bool {
        self.first != NONE || self.remote().is_some()
    }

    pub fn remote_devices(&self) -> &[NodeDevice] {
        self.remote().map(|remote| &*remote.devices).unwrap_or_default()
    }

    /// Whether only other gateways have sessions of this user. They publish the user's changes.
    pub fn is_remote_only(&self) -> bool {
        self.flags.has_remote && self.first == NONE
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
            None => self.declared_by_sessions(sessions.clone()).unwrap_or_else(|| self.automatic(sessions)),
        }
    }

    fn automatic(&self, mut sessions: SessionsOf<'_>) -> Status {
        let is_online = sessions.any(|(_, session)| session.is_online())
            || self.remote_devices().iter().any(|device| device.online);
        if is_online { Status::Online } else { Status::Away }
    }

    /// The status of highest priority that a session declares.
    fn declared_by_sessions(&self, sessions: SessionsOf<'_>) -> Option<Status> {
        let here = sessions.filter_map(|(_, session)| session.effective_declared());
        let remote = self.remote_devices().iter().filter_map(|device| device.declared);
        here.chain(remote).max_by_key(|declared| weight(*declared)).map(|declared| match declared {
            Declared::Invisible => Status::Invisible,
            Declared::Busy => Status::Busy,
            Declared::Online => Status::Online,
            Declared::Away => Status::Away,
        })
    }

    /// Whether other users see the user as offline: invisible now, or invisible before a restart and pending.
    pub fn is_hidden(&self, own: Status) -> bool {
        own == Status::Invisible || (own == Status::Pending && self.hidden_since.get().is_some())
    }

    /// For comparing before and after a change.
    pub fn digest(&self, slots: &Slab<Session>) -> StatusDigest {
        let own = self.status(self.sessions(slots));
        let hidden = self.is_hidden(own);
        let declaration = self.declaration();
        let mut print = FixedState::default().build_hasher();
        own.hash(&mut print);
        declaration.map(|declaration| (&declaration.text, declaration.until.map(|at| at.0))).hash(&mut print);
        (self.seeding, self.leeching).hash(&mut print);
        // A sum, so that the order of the sessions does not matter.
        let devices = self.devices(slots).map(|device| FixedState::default().hash_one(device));
        devices.fold(0_u64, u64::wrapping_add).hash(&mut print);
        let mut memory = FixedState::default().build_hasher();
        (self.flags.online, hidden).hash(&mut memory);
        declaration
            .map(|declared| (declared.status, &declared.text, declared.until.map(|at| at.0)))
            .hash(&mut memory);
        let counted = if self.is_remote_only() { Status::Offline } else { own };
        let is_remote_only = self.is_remote_only();
        StatusDigest { own, hidden, counted, is_remote_only, print: print.finish(), memory: memory.finish() }
    }
}

/// The user's status, with hashes of text, devices and traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusDigest {
    pub own: Status,
    pub hidden: bool,
    /// The status under which the user is counted here.
    pub counted: Status,
    pub is_remote_only: bool,
    print: u64,
    memory: u64,
}

impl StatusDigest {
    pub fn public(&self) -> Status {
        if self.hidden { Status::Offline } else { self.own }
    }

    pub fn own_differs(&self, other: &StatusDigest) -> bool {
        self.print != other.print
    }

    /// Other users see nothing of an offline user that could change.
    pub fn public_differs(&self, other: &StatusDigest) -> bool {
        let shown = |digest: &StatusDigest| match digest.public() {
            Status::Offline => None,
            _ => Some(digest.print),
        };
        shown(self) != shown(other)
    }

    pub fn stored_differs(&self, other: &StatusDigest) -> bool {
        self.memory != other.memory
    }
}

/// Iterates over a user's sessions, newest first.
#[derive(Clone)]
pub(crate) struct SessionsOf<'a> {
    slots: &'a Slab<Session>,
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

/// The declaration with the highest priority decides.
pub(crate) fn weight(declared: Declared) -> u8 {
    match declared {
        Declared::Invisible => 3,
        Declared::Busy => 2,
        Declared::Online => 1,
        Declared::Away => 0,
    }
}

/// The best of the device's sessions counts; the newest decides the platform.
#[derive(Clone, Copy, Hash)]
pub(crate) struct DeviceStatus<'a> {
    pub id: &'a DeviceId,
    platform: Platform,
    app: AppState,
    online: bool,
}

impl DeviceStatus<'_> {
    pub fn view(&self) -> DeviceView {
        DeviceView {
            id: self.id.clone(),
            platform: self.platform,
            app: self.app,
            status: if self.online { Status::Online } else { Status::Away },
        }
    }
}

impl UserPresence {
    /// Local and remote devices, without duplicates.
    pub fn devices<'a>(&'a self, slots: &'a Slab<Session>) -> impl Iterator<Item = DeviceStatus<'a>> {
        let all = self.sessions(slots);
        let here = devices_here(all.clone()).map(|device| match self.find_remote(device.id) {
            None => device,
            Some(remote) => DeviceStatus {
                app: better(device.app, remote.app),
                online: device.online || remote.online,
                ..device
            },
        });
        let is_only_remote =
            move |remote: &&NodeDevice| !all.clone().any(|(_, session)| session.device == remote.id);
        let remote = self.remote_devices().iter().filter(is_only_remote).map(|remote| DeviceStatus {
            id: &remote.id,
            platform: remote.platform,
            app: remote.app,
            online: remote.online,
        });
        here.chain(remote)
    }

    fn find_remote(&self, id: &DeviceId) -> Option<&NodeDevice> {
        let devices = self.remote_devices();
        devices.binary_search_by(|remote| remote.id.cmp(id)).ok().map(|place| &devices[place])
    }
}

/// The devices of these sessions, without duplicates.
pub(crate) fn devices_here(sessions: SessionsOf<'_>) -> impl Iterator<Item = DeviceStatus<'_>> {
    let all = sessions.clone();
    sessions.filter_map(move |(slot, session)| {
        let mut of_device = all.clone().filter(|(_, other)| other.device == session.device);
        let newest = of_device.clone().next().is_some_and(|(other, _)| other == slot);
        newest.then(|| DeviceStatus {
            id: &session.device,
            platform: session.platform,
            app: of_device.clone().map(|(_, other)| other.app).fold(session.app, better),
            online: of_device.any(|(_, other)| other.is_online()),
        })
    })
}

/// The states are ordered from best to worst.
fn better(one: AppState, other: AppState) -> AppState {
    if (other as u8) < one as u8 { other } else { one }
}

/// A user's devices at other gateways.
#[derive(Debug)]
pub(crate) struct RemoteDevices {
    /// Sorted by id, without duplicates.
    devices: Box<[NodeDevice]>,
    pub last_activity: Option<UnixTime>,
}

impl RemoteDevices {
    /// Merges the entries of a device that several gateways report. None without devices.
    pub fn new(mut devices: Vec<NodeDevice>, last_activity: Option<UnixTime>) -> Option<RemoteDevices> {
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        devices.dedup_by(|next, kept| {
            let is_same = next.id == kept.id;
            if is_same {
                kept.app = better(kept.app, next.app);
                kept.online |= next.online;
                kept.declared = [kept.declared, next.declared]
                    .into_iter()
                    .flatten()
                    .max_by_key(|declared| weight(*declared));
            }
            is_same
        });
        (!devices.is_empty()).then(|| RemoteDevices { devices: devices.into(), last_activity })
    }
}
