//! Statuses (P1), and what a user can declare.

use domain::UnixTime;
use domain::named;

named! {
    /// The status of a user.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Status {
        #[default]
        Offline = "offline",
        /// Was online before a restart, and has time to reconnect.
        Pending = "pending",
        /// Online, but no device is in use.
        Away = "away",
        Online = "online",
        /// Online, not to be disturbed.
        Busy = "busy",
        /// Online and hidden. Only the user's own devices see this; for others it is [`Status::Offline`].
        Invisible = "invisible",
    }
}

impl Status {
    pub const fn to_others(self) -> Status {
        match self {
            Status::Invisible => Status::Offline,
            shown => shown,
        }
    }
}

named! {
    /// What a user can declare. It takes precedence over the automatic status.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Declared {
        /// The automatic status: online, or away when no device is in use.
        Online = "online",
        /// Away, although a device is in use.
        Away = "away",
        /// Not to be disturbed.
        Busy = "busy",
        Invisible = "invisible",
    }
}

/// A status that a user declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub status: Declared,
    pub text: Option<Box<str>>,
    /// When the declaration expires.
    pub until: Option<UnixTime>,
}

impl Declaration {
    pub fn hides(&self) -> bool {
        self.status == Declared::Invisible
    }
}
