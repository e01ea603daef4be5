//! A user's sessions at other gateways.
//!
//! Each gateway publishes a [`NodeEntry`] for each user with sessions there. What a gateway knows of a user from all
//! other gateways is [`RemoteSessions`]. Both are state, not events: a newer one replaces the previous one.
//!
//! # Guarantees
//!
//! - A user's status is the same function of all devices, whichever gateways they are connected to.
//!
//! # Deliberately absent
//!
//! Transport, and how long an entry may be trusted: the owner of the table decides when to drop it
//! ([`crate::PresenceTable::expire_remote`]).

use domain::{Seconds, UnixTime, UserId};

use crate::device::{AppState, DeviceId, Platform};
use crate::status::{Declaration, Declared};
use crate::wall_time::WallTime;

/// One device as one gateway reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeDevice {
    pub id: DeviceId,
    pub platform: Platform,
    /// The best of its sessions.
    pub app: AppState,
    /// Whether any of its sessions is automatically online.
    pub online: bool,
    /// The declared status of highest priority among its sessions. Online only if that session is online.
    pub declared: Option<Declared>,
}

/// One gateway's report of a user with sessions there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Sorted by id, without duplicates.
    pub devices: Vec<NodeDevice>,
    /// The latest activity of any device.
    pub last_activity: UnixTime,
    /// Silence after which all of them have ended: the longest timeout among the sessions.
    pub gone_in: Seconds,
}

/// What is known of a user apart from this gateway's own sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSessions {
    pub user: UserId,
    /// The devices at all other gateways.
    pub devices: Vec<NodeDevice>,
    /// The latest activity of any device.
    pub last_activity: Option<UnixTime>,
    /// After a gateway died: until when the user may reconnect.
    pub pending_until: Option<WallTime>,
    pub declaration: Option<Declaration>,
    /// The last activity that other users could see.
    pub last_seen: Option<UnixTime>,
    pub hidden_since: Option<UnixTime>,
    pub public_version: u64,
    pub own_version: u64,
}

impl RemoteSessions {
    pub fn none(user: UserId) -> RemoteSessions {
        RemoteSessions {
            user,
            devices: Vec::new(),
            last_activity: None,
            pending_until: None,
            declaration: None,
            last_seen: None,
            hidden_since: None,
            public_version: 0,
            own_version: 0,
        }
    }

    /// After a gateway's entry expired, before the cluster has decided what became of the user: without other devices,
    /// the user is pending until then.
    pub fn wait_for_lost(&mut self, until: WallTime) {
        if self.devices.is_empty() {
            self.pending_until.get_or_insert(until);
        }
    }
}
