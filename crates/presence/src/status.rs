//! Statuses (P1), and what a user can declare.

use domain::UnixTime;

/// The status of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    #[default]
    Offline,
    /// Was online before a restart, and has time to reconnect.
    Pending,
    /// Online, but no device is in use.
    Away,
    Online,
    /// Online, not to be disturbed.
    Busy,
    /// Online and hidden. Only the user's own devices see this; for others it is [`Status::Offline`].
    Invisible,
}

impl Status {
    pub const ALL: [Status; 6] =
        [Status::Offline, Status::Pending, Status::Away, Status::Online, Status::Busy, Status::Invisible];

    /// The name on the wire and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Offline => "offline",
            Status::Pending => "pending",
            Status::Away => "away",
            Status::Online => "online",
            Status::Busy => "busy",
            Status::Invisible => "invisible",
        }
    }

    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    pub const fn to_others(self) -> Status {
        match self {
            Status::Invisible => Status::Offline,
            shown => shown,
        }
    }
}

/// What a user can declare. It takes precedence over the automatic status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Declared {
    /// The automatic status: online, or away when no device is in use.
    Online,
    /// Away, although a device is in use.
    Away,
    /// Not to be disturbed.
    Busy,
    Invisible,
}

impl Declared {
    pub const ALL: [Declared; 4] = [Declared::Online, Declared::Away, Declared::Busy, Declared::Invisible];

    /// The name on the wire and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Declared::Online => "online",
            Declared::Away => "away",
            Declared::Busy => "busy",
            Declared::Invisible => "invisible",
        }
    }

    pub fn from_name(name: &str) -> Option<Declared> {
        Declared::ALL.into_iter().find(|declared| declared.name() == name)
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
