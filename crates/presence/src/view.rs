//! What can be read from a roster.

use domain::{UnixTime, UserId};

use crate::device::{AppState, DeviceId, Platform};
use crate::input::ConnId;
use crate::moment::Moment;
use crate::status::{Declaration, Status};

/// What is shown of a person: to others, or to their own devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Who.
    pub user: UserId,
    /// Their status. In a public view never invisible.
    pub status: Status,
    /// The text beside it.
    pub text: Option<Box<str>>,
    /// When what they declared ends by itself.
    pub until: Option<UnixTime>,
    /// Their devices, in the order of their names.
    pub devices: Vec<DeviceView>,
    /// Their last sign of life. For who is here it moves without a new version.
    pub last_seen: Option<UnixTime>,
    /// Grows with each change of this view. Zero: never heard of.
    pub version: u64,
    /// Torrents they seed.
    pub seeding: u32,
    /// Torrents they leech.
    pub leeching: u32,
}

impl View {
    /// What there is to say of somebody who was never heard of.
    pub fn unknown(user: UserId) -> View {
        View {
            user,
            status: Status::Offline,
            text: None,
            until: None,
            devices: Vec::new(),
            last_seen: None,
            version: 0,
            seeding: 0,
            leeching: 0,
        }
    }
}

/// What is shown of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Its name.
    pub id: DeviceId,
    /// What kind it is.
    pub platform: Platform,
    /// Whether somebody looks at it: of several sessions, the best.
    pub app: AppState,
    /// Online or away, whatever is declared.
    pub status: Status,
}

/// What an administrator sees of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The connection; none if it lives by heartbeats over HTTP.
    pub conn: Option<ConnId>,
    /// Its device.
    pub device: DeviceId,
    /// What kind it is.
    pub platform: Platform,
    /// Whether somebody looks at it.
    pub app: AppState,
    /// Online or away.
    pub status: Status,
    /// When it began.
    pub since: UnixTime,
    /// Its last heartbeats, the latest first; ten at the most (P10). The first is the connect itself.
    pub heartbeats: Vec<Moment>,
}

/// What should be known of a person after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Who.
    pub user: UserId,
    /// Whether they are here.
    pub here: bool,
    /// What they declared.
    pub declaration: Option<Declaration>,
    /// Their last sign of life while others could see them.
    pub last_seen: Option<UnixTime>,
    /// Since when they hide, if they do.
    pub hidden_since: Option<UnixTime>,
    /// The version of their public view.
    pub public_version: u64,
    /// The version of their own view.
    pub own_version: u64,
}

/// What was last known of somebody who is not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastKnown {
    /// Their last sign of life while others could see them.
    pub last_seen: Option<UnixTime>,
    /// The version of their public view.
    pub public_version: u64,
    /// The version of their own view.
    pub own_version: u64,
    /// What they declared.
    pub declaration: Option<Declaration>,
}

/// How many there are. Kept up to date, never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Persons by their own status, in the order of [`Status::ALL`]. The offline ones are those somebody watches, and
    /// those who left a moment ago.
    pub persons: [u32; Status::ALL.len()],
    /// Sessions with a connection.
    pub connections: u32,
    /// Sessions that live by heartbeats over HTTP.
    pub without_connection: u32,
}

impl Tally {
    /// Persons of this status, as they see it themselves.
    pub fn of(&self, status: Status) -> u32 {
        self.persons[status as usize]
    }

    /// Persons who are here, hidden or not; not those who are only pending.
    pub fn here(&self) -> u32 {
        self.visible() + self.of(Status::Invisible)
    }

    /// Persons who are here and whom others may see.
    pub fn visible(&self) -> u32 {
        self.of(Status::Online) + self.of(Status::Away) + self.of(Status::Busy)
    }
}

/// What a roster holds, for metrics and for the proof that it forgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Persons, here or not.
    pub persons: usize,
    /// Sessions, with those that only a grace period keeps.
    pub sessions: usize,
    /// Slots the wheel will look at.
    pub armed: usize,
    /// Persons with something due some day.
    pub due: usize,
    /// Inputs about connections that nobody knows (any more): ignored.
    pub strays: u64,
}
