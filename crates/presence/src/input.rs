//! What comes into a roster, and what comes out.

use domain::{UnixTime, UserId};

use crate::device::{AppState, DeviceId, Platform};
use crate::status::{Declaration, Declared, Status};

/// A connection, by a number that is unique in the process. It is used again only after its `Closed` was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u32);

/// What a device says when it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which device it is. Two tabs of a browser may be one device.
    pub device: DeviceId,
    /// What kind of device.
    pub platform: Platform,
    /// Whether somebody looks at it.
    pub app: AppState,
    /// A status that holds while this session lives.
    pub declared: Option<Declared>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goodbye {
    /// The client said goodbye, or we did.
    Clean,
    /// It broke.
    Dropped,
}

/// What a roster is told about a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A connection was accepted.
    Connected {
        /// The connection.
        conn: ConnId,
        /// What the device said.
        hello: Hello,
    },
    /// Any message of the client: a heartbeat.
    Heard {
        /// The connection.
        conn: ConnId,
    },
    /// The network stack of the device answered a probe.
    ProbeAnswered {
        /// The connection.
        conn: ConnId,
    },
    /// A probe could not be written.
    ProbeFailed {
        /// The connection.
        conn: ConnId,
    },
    /// The app came to the front, or left it. Also a heartbeat.
    App {
        /// The connection.
        conn: ConnId,
        /// The new state.
        state: AppState,
    },
    /// The person says something of themselves, or takes it back. Also a heartbeat.
    Declare {
        /// The connection it was said on.
        conn: ConnId,
        /// What was said; none takes back what the person and this connection said before.
        declaration: Option<Declaration>,
    },
    /// The connection is closed.
    Closed {
        /// The connection.
        conn: ConnId,
        /// How it ended.
        how: Goodbye,
    },
    /// A heartbeat over HTTP: its device has a session without a connection.
    Heartbeat {
        /// What the device says. It replaces what the device said before.
        hello: Hello,
    },
    /// The end of a session without a connection.
    Goodbye {
        /// Its device.
        device: DeviceId,
    },
    /// Ends every session of a device.
    SignOut {
        /// The device.
        device: DeviceId,
    },
    /// What the person's torrent clients do.
    Traffic {
        /// Torrents they seed.
        seeding: u32,
        /// Torrents they leech.
        leeching: u32,
    },
}

/// Why the roster has a connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseCause {
    /// It was silent for too long (3012).
    NoPong,
    /// Its device was signed out (3503).
    SignedOut,
}

/// Why a status changed; kept in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A connection was made.
    Connect,
    /// A connection was closed in good order.
    Close,
    /// A device without a connection said goodbye.
    Goodbye,
    /// A connection broke.
    Drop,
    /// A device was silent.
    Silence,
    /// A device was signed out.
    SignedOut,
    /// The person said so.
    Declared,
    /// The app came to the front, or left it.
    AppState,
    /// What was declared ended by itself.
    Until,
    /// The server was started again.
    Restart,
    /// Who was here before a restart did not come back.
    PendingOver,
    /// A device was heard.
    Heartbeat,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 12] = [
        Cause::Connect,
        Cause::Close,
        Cause::Goodbye,
        Cause::Drop,
        Cause::Silence,
        Cause::SignedOut,
        Cause::Declared,
        Cause::AppState,
        Cause::Until,
        Cause::Restart,
        Cause::PendingOver,
        Cause::Heartbeat,
    ];

    /// Its name, as the wire and the database have it.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Connect => "connect",
            Cause::Close => "close",
            Cause::Goodbye => "goodbye",
            Cause::Drop => "drop",
            Cause::Silence => "silence",
            Cause::SignedOut => "signed_out",
            Cause::Declared => "declared",
            Cause::AppState => "app_state",
            Cause::Until => "until",
            Cause::Restart => "restart",
            Cause::PendingOver => "pending_over",
            Cause::Heartbeat => "heartbeat",
        }
    }

    /// The cause of this name.
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the regular ping.
    Ping(ConnId),
    /// Send a probe: a ping control frame, which the device's network stack answers.
    Probe(ConnId),
    /// Close this connection. The roster has forgotten it already; its `Closed` may still come.
    Close {
        /// The connection.
        conn: ConnId,
        /// Why.
        cause: CloseCause,
    },
    /// A view has changed: read it now.
    Changed {
        /// Whose.
        user: UserId,
        /// The public view has.
        public: bool,
        /// The own view has.
        own: bool,
        /// Whether others should hear of it at once. One's own devices always should.
        urgent: bool,
    },
    /// The first session came, also if nobody may see it: for the site, not for friends.
    Arrived {
        /// Who.
        user: UserId,
        /// Why.
        cause: Cause,
        /// The device that came.
        device: Option<DeviceId>,
    },
    /// The last session went, also if nobody may have seen it.
    Left {
        /// Who.
        user: UserId,
        /// Their last sign of life, as far as it is known.
        last_seen: Option<UnixTime>,
        /// Why.
        cause: Cause,
        /// The device that went, if it is known.
        device: Option<DeviceId>,
    },
    /// The status in the own view changed: for the history.
    Transition {
        /// Whose.
        user: UserId,
        /// What it was.
        from: Status,
        /// What it is.
        to: Status,
        /// Why.
        cause: Cause,
        /// The device that was the cause.
        device: Option<DeviceId>,
    },
    /// What should be known after a crash has changed: store what the roster remembers of this person.
    Remember {
        /// Who.
        user: UserId,
    },
}

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The person has as many devices as one may have.
    #[error("no more than {max} devices at a time: sign one out")]
    TooManyDevices {
        /// How many one may have.
        max: u32,
    },
    /// The person has as many sessions as one may have.
    #[error("no more than {max} connections of one person at a time: close one")]
    TooManySessions {
        /// How many one may have.
        max: u32,
    },
}
