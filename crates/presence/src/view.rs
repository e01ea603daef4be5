//! What can be read from a presence table.

use domain::{UnixTime, UserId};

use crate::device::{AppState, DeviceId, Platform};
use crate::input::ConnId;
use crate::status::{Declaration, Status};
use crate::wall_time::WallTime;

/// What other users, or the user's own devices, see of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub user: UserId,
    /// Never invisible in a public view.
    pub status: Status,
    pub text: Option<Box<str>>,
    /// When the declaration expires.
    pub until: Option<UnixTime>,
    /// Sorted by id.
    pub devices: Vec<DeviceView>,
    /// The last activity. For online users it changes without a new version.
    pub last_seen: Option<UnixTime>,
    /// Grows with each change of this view. Zero: unknown user.
    pub version: u64,
    /// Torrents the user seeds.
    pub seeding: u32,
    /// Torrents the user leeches.
    pub leeching: u32,
}

impl View {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    pub id: DeviceId,
    pub platform: Platform,
    /// The best of its sessions.
    pub app: AppState,
    /// Online or away, whatever is declared.
    pub status: Status,
}

/// What an administrator sees of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// None for a session with heartbeats over HTTP.
    pub conn: Option<ConnId>,
    pub device: DeviceId,
    pub platform: Platform,
    pub app: AppState,
    /// Online or away.
    pub status: Status,
    pub since: UnixTime,
    /// At most ten, newest first (P10). The first one is the connect.
    pub heartbeats: Vec<WallTime>,
}

/// What survives a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPresence {
    pub user: UserId,
    pub online: bool,
    pub declaration: Option<Declaration>,
    /// The last activity that other users could see.
    pub last_seen: Option<UnixTime>,
    pub hidden_since: Option<UnixTime>,
    pub public_version: u64,
    pub own_version: u64,
}

/// What is known of a user that is not online.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastKnown {
    /// The last activity that other users could see.
    pub last_seen: Option<UnixTime>,
    pub public_version: u64,
    pub own_version: u64,
    pub declaration: Option<Declaration>,
}

/// Maintained with each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserCounts {
    /// Users by own status, in the order of [`Status::ALL`]. Offline ones are those that are watched or have just left.
    pub users: [u32; Status::ALL.len()],
    /// Sessions with a connection.
    pub connections: u32,
    /// Sessions with heartbeats over HTTP.
    pub without_connection: u32,
}

impl UserCounts {
    pub fn of(&self, status: Status) -> u32 {
        self.users[status as usize]
    }

    /// Online users, hidden or not; pending ones are not counted.
    pub fn online(&self) -> u32 {
        self.visible() + self.of(Status::Invisible)
    }

    /// Online users that others may see.
    pub fn visible(&self) -> u32 {
        self.of(Status::Online) + self.of(Status::Away) + self.of(Status::Busy)
    }
}

/// Entries in a table, for metrics and for tests that entries are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSize {
    pub users: usize,
    /// Lingering ones included.
    pub sessions: usize,
    /// Armed slots of the timing wheel.
    pub armed: usize,
    /// Users with a deadline.
    pub due: usize,
    /// Ignored inputs for unknown connections.
    pub unknown_inputs: u64,
}
