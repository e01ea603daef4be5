//! A person's sessions at other gateways, as far as they are known here.
//!
//! Each gateway says what it sees of a person: its [`Part`]. What all others say, and what belongs to the person, is
//! [`Elsewhere`]. Both are state, not events: a newer one replaces the one before.
//!
//! # Guarantees
//!
//! - What is shown of a person is the same function of all their devices, wherever those are connected.
//!
//! # Deliberately absent
//!
//! Where the others are, how they are heard of, and how old a word may be: the owner of the roster says when to stop
//! believing it ([`crate::Roster::lose_elsewhere`]).

use domain::{Seconds, UnixTime, UserId};

use crate::device::{AppState, DeviceId, Platform};
use crate::moment::Moment;
use crate::status::{Declaration, Declared};

/// One device as one gateway sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartDevice {
    /// Its name.
    pub id: DeviceId,
    /// What kind it is.
    pub platform: Platform,
    /// Whether somebody looks at it: of several sessions, the best.
    pub app: AppState,
    /// Whether any of its sessions is automatically online.
    pub online: bool,
    /// What counts of what its sessions say: the best. Online only if one that says so is.
    pub said: Option<Declared>,
}

/// What one gateway says of a person who has sessions there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The devices, in the order of their names, each once.
    pub devices: Vec<PartDevice>,
    /// The latest sign of life of any of them.
    pub last_sign: UnixTime,
    /// They are gone when silent for this long since then: the most patient rule of them.
    pub gone_in: Seconds,
}

/// What is known of a person beside this gateway's own part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Who.
    pub user: UserId,
    /// The devices at all other gateways.
    pub devices: Vec<PartDevice>,
    /// The latest sign of life of any of them.
    pub last_sign: Option<UnixTime>,
    /// Until when they may come back, if they were here and a gateway died.
    pub pending_until: Option<Moment>,
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

impl Elsewhere {
    /// Nothing known of anybody elsewhere.
    pub fn nothing(user: UserId) -> Elsewhere {
        Elsewhere {
            user,
            devices: Vec::new(),
            last_sign: None,
            pending_until: None,
            declaration: None,
            last_seen: None,
            hidden_since: None,
            public_version: 0,
            own_version: 0,
        }
    }

    /// What another gateway said is not believed any more, and nobody has said yet what became of the person: if they are
    /// nowhere else, they may come back until then.
    pub fn wait_for_lost(&mut self, until: Moment) {
        if self.devices.is_empty() {
            self.pending_until.get_or_insert(until);
        }
    }
}
