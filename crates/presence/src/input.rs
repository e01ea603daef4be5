//! Inputs and effects of a presence table.

use domain::named;
use domain::{UnixTime, UserId, counted};

use crate::device::{AppState, DeviceId, Platform};
use crate::status::{Declaration, Declared, Status};

/// Unique in the process. Reused only after its `Closed` was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u32);

/// What a device sends when it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Two tabs of a browser may be one device.
    pub device: DeviceId,
    pub platform: Platform,
    pub app: AppState,
    /// A status that holds while this session lives.
    pub declared: Option<Declared>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseKind {
    /// Closed by the client or by us.
    Clean,
    /// The connection broke.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Connected {
        conn: ConnId,
        hello: Hello,
    },
    /// Any message of the client; counts as a heartbeat.
    Message {
        conn: ConnId,
    },
    /// The network stack of the device answered a probe.
    ProbeAnswered {
        conn: ConnId,
    },
    /// A probe could not be written.
    ProbeFailed {
        conn: ConnId,
    },
    /// The app changed its state. Also a heartbeat.
    App {
        conn: ConnId,
        state: AppState,
    },
    /// The user declares a status or clears it. Also a heartbeat.
    Declare {
        conn: ConnId,
        /// None clears what the user and this connection declared before.
        declaration: Option<Declaration>,
    },
    Closed {
        conn: ConnId,
        how: CloseKind,
    },
    /// A heartbeat over HTTP: its device has a session without a connection.
    Heartbeat {
        /// Replaces the previous values of the device.
        hello: Hello,
    },
    /// Ends a session without a connection.
    Goodbye {
        device: DeviceId,
    },
    /// Ends every session of a device.
    SignOut {
        device: DeviceId,
    },
    /// The user's torrent activity.
    TorrentCounts {
        /// Torrents the user seeds.
        seeding: u32,
        /// Torrents the user leeches.
        leeching: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseCause {
    /// No answer within the timeout (close code 3012).
    NoPong,
    /// The device was signed out (close code 3503).
    SignedOut,
}

named! {
    /// Recorded with each status change in the history.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Cause {
        Connect = "connect",
        Close = "close",
        /// A device without a connection ended its session.
        Goodbye = "goodbye",
        Drop = "drop",
        Silence = "silence",
        SignedOut = "signed_out",
        /// The user declared a status.
        Declared = "declared",
        /// The app changed its state.
        AppState = "app_state",
        /// A declaration reached its end.
        Until = "until",
        Restart = "restart",
        /// A user that was online before a restart did not reconnect in time.
        PendingOver = "pending_over",
        Heartbeat = "heartbeat",
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What the owner of the table has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Ping(ConnId),
    /// Send a probe: a ping control frame, which the device's network stack answers.
    Probe(ConnId),
    /// Close this connection. The table has removed it already; its `Closed` may still arrive.
    Close {
        conn: ConnId,
        cause: CloseCause,
    },
    /// A view has changed: read it now.
    Changed {
        user: UserId,
        public: bool,
        own: bool,
        /// Whether friends should receive it at once. The user's own devices always do.
        urgent: bool,
    },
    /// The first session started, also of an invisible user: for the site, not for friends.
    Arrived {
        user: UserId,
        cause: Cause,
        device: Option<DeviceId>,
    },
    /// The last session ended, also of an invisible user.
    Left {
        user: UserId,
        last_seen: Option<UnixTime>,
        cause: Cause,
        device: Option<DeviceId>,
    },
    /// The status in the own view changed: for the history.
    Transition {
        user: UserId,
        from: Status,
        to: Status,
        cause: Cause,
        device: Option<DeviceId>,
    },
    /// The stored presence has changed: write [`crate::PresenceTable::stored_presence`].
    Store {
        user: UserId,
    },
}

/// A session was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The user has the maximum number of devices.
    #[error("at most {} per user: sign one out", counted(*max, "device"))]
    TooManyDevices {
        /// How many one may have.
        max: u32,
    },
    /// The user has the maximum number of sessions.
    #[error("at most {} per user: close one", counted(*max, "connection"))]
    TooManySessions {
        /// How many one may have.
        max: u32,
    },
}
