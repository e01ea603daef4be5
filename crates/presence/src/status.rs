//! What can be said of a person (P1), and what a person can say of themselves.

use domain::UnixTime;

/// What is shown of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not here, as far as the one who looks may know.
    #[default]
    Offline,
    /// Was here before a restart, and has a while to come back.
    Pending,
    /// Here, but not at the device.
    Away,
    /// Here.
    Online,
    /// Here, and not to be disturbed.
    Busy,
    /// Here and hidden. Only one's own devices see this; to others it is [`Status::Offline`].
    Invisible,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 6] =
        [Status::Offline, Status::Pending, Status::Away, Status::Online, Status::Busy, Status::Invisible];

    /// Its name, as the wire and the database have it.
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

    /// The status of this name.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// What others see.
    pub const fn to_others(self) -> Status {
        match self {
            Status::Invisible => Status::Offline,
            shown => shown,
        }
    }
}

/// What a person can declare. It beats what follows from their devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Declared {
    /// Whatever follows from the devices: online, or away when none is in use.
    Online,
    /// Away, although a device is in use.
    Away,
    /// Not to be disturbed.
    Busy,
    /// Hidden.
    Invisible,
}

impl Declared {
    /// Everything that can be declared.
    pub const ALL: [Declared; 4] = [Declared::Online, Declared::Away, Declared::Busy, Declared::Invisible];

    /// Its name, as the wire and the database have it.
    pub const fn name(self) -> &'static str {
        match self {
            Declared::Online => "online",
            Declared::Away => "away",
            Declared::Busy => "busy",
            Declared::Invisible => "invisible",
        }
    }

    /// What is declared by this name.
    pub fn from_name(name: &str) -> Option<Declared> {
        Declared::ALL.into_iter().find(|declared| declared.name() == name)
    }
}

/// What a person says of themselves: a status, perhaps a text, perhaps until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The status.
    pub status: Declared,
    /// A text beside it.
    pub text: Option<Box<str>>,
    /// When it ends by itself.
    pub until: Option<UnixTime>,
}

impl Declaration {
    /// Whether it hides the person.
    pub fn hides(&self) -> bool {
        self.status == Declared::Invisible
    }
}
