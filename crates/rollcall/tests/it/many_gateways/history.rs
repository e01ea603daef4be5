//! What happened: connections, declared statuses, what watchers were shown, and faults.
//!
//! Times are those of one monotonic clock, the crowd's. Everything here is what clients know; nothing was asked of the
//! servers.

use crate::many_gateways::spans::Ms;

/// Which gateway.
pub type Gateway = usize;
/// Something that has not ended.
pub const OPEN: Ms = Ms::MAX;

/// A connected device that answers.
#[derive(Clone, Debug)]
pub struct DeviceSession {
    pub user: u64,
    pub device: u32,
    pub gateway: Gateway,
    pub from: Ms,
    pub to: Ms,
    pub end: End,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has not.
    Open,
    /// Closed, with or without `disconnect`: the gateway's kernel sees the end of the connection.
    Closed,
    /// The device does not answer any more.
    Silent,
    /// The gateway ended it, or died.
    ByGateway,
}

/// A declared status.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub user: u64,
    pub gateway: Gateway,
    /// None clears the declared status.
    pub what: Option<&'static str>,
    pub sent: Ms,
    /// When it was confirmed; never, if that never came.
    pub confirmed: Ms,
}

/// One connection of a watcher, and what was shown on it.
#[derive(Clone, Debug)]
pub struct WatchSession {
    pub viewer: u64,
    pub gateway: Gateway,
    pub from: Ms,
    pub to: Ms,
    pub shown: Vec<Shown>,
}

/// A state shown to a watcher.
#[derive(Clone, Debug)]
pub struct Shown {
    pub at: Ms,
    pub user: u64,
    pub status: String,
    pub version: u64,
    /// Whether it came as a change, and not with the snapshot.
    pub is_change: bool,
}

/// Something that was broken for a while.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// The affected gateway; none: all.
    pub gateway: Option<Gateway>,
    pub from: Ms,
    pub to: Ms,
}

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The gateway did not run.
    Dead,
    /// The gateway was suspended.
    Frozen,
    /// The gateway could not reach Redis, or Redis was not there.
    NoRedis,
    /// The machine itself was stalled: no timing can be judged.
    Stall,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub device_sessions: Vec<DeviceSession>,
    pub declarations: Vec<Declaration>,
    pub watch_sessions: Vec<WatchSession>,
    pub faults: Vec<Fault>,
    /// When it ended.
    pub end: Ms,
}

impl History {
    /// A device is connected.
    pub fn device_connected(&mut self, user: u64, device: u32, gateway: Gateway, at: Ms) {
        self.device_sessions.push(DeviceSession {
            user,
            device,
            gateway,
            from: at,
            to: OPEN,
            end: End::Open,
        });
    }

    /// Ends a device's stay, unless it has ended.
    pub fn device_ended(&mut self, user: u64, device: u32, at: Ms, end: End) {
        let open = |stay: &&mut DeviceSession| stay.to == OPEN && (stay.user, stay.device) == (user, device);
        if let Some(stay) = self.device_sessions.iter_mut().rev().find(open) {
            (stay.to, stay.end) = (at, end);
        }
    }

    /// What a watcher receives on its current connection.
    pub fn watch_session_of(&mut self, viewer: u64) -> Option<&mut WatchSession> {
        self.watch_sessions.iter_mut().rev().find(|look| look.viewer == viewer && look.to == OPEN)
    }

    /// Returns its index, for [`History::fault_ended`].
    pub fn fault_started(&mut self, kind: FaultKind, gateway: Option<Gateway>, at: Ms) -> usize {
        self.faults.push(Fault { kind, gateway, from: at, to: OPEN });
        self.faults.len() - 1
    }

    pub fn fault_ended(&mut self, fault: usize, at: Ms) {
        self.faults[fault].to = at;
    }

    /// Ends the history.
    pub fn finish(&mut self, at: Ms) {
        self.end = at;
        self.device_sessions.iter_mut().for_each(|stay| stay.to = stay.to.min(at));
        self.watch_sessions.iter_mut().for_each(|look| look.to = look.to.min(at));
        self.faults.iter_mut().for_each(|fault| fault.to = fault.to.min(at));
    }
}
