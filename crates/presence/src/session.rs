//! One session: a connection, or the HTTP heartbeats of one device.
//!
//! Kept small, since there are a hundred thousand of them.

use domain::UnixTime;

use crate::device::{AppState, DeviceId, Platform};
use crate::heartbeat_state::HeartbeatState;
use crate::input::{ConnId, Hello};
use crate::policy::{Policy, Rule};
use crate::state_machine::SessionState;
use crate::status::{Declared, Status};
use crate::view::SessionView;
use crate::wall_time::{MonotonicClock, MonotonicTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Connection,
    /// Heartbeats over HTTP.
    Heartbeats,
    /// Ended, and only shown until the grace period is over.
    Lingering,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// The slot of its user.
    pub user_slot: u32,
    /// The slot of the user's next session.
    pub next: u32,
    pub kind: Kind,
    /// Valid for [`Kind::Connection`] only.
    conn: ConnId,
    pub since: UnixTime,
    /// When to send the next ping, in monotonic seconds.
    pub ping_at_s: u32,
    pub heartbeat: HeartbeatState,
    pub device: DeviceId,
    pub platform: Platform,
    pub app: AppState,
    /// Declared at connect; holds while the session lives.
    pub declared: Option<Declared>,
}

impl Session {
    /// With a connection, or with heartbeats over HTTP.
    pub fn new(
        entry: u32,
        conn: Option<ConnId>,
        hello: Hello,
        now: MonotonicTime,
        since: UnixTime,
    ) -> Session {
        Session {
            user_slot: entry,
            next: crate::slab::NONE,
            kind: if conn.is_some() { Kind::Connection } else { Kind::Heartbeats },
            conn: conn.unwrap_or(ConnId(u32::MAX)),
            since,
            ping_at_s: u32::MAX,
            heartbeat: HeartbeatState::new(now),
            device: hello.device,
            platform: hello.platform,
            app: hello.app,
            declared: hello.declared,
        }
    }

    pub fn conn(&self) -> Option<ConnId> {
        (self.kind == Kind::Connection).then_some(self.conn)
    }

    pub fn is_live(&self) -> bool {
        self.kind != Kind::Lingering
    }

    pub fn rule(&self, policy: &Policy) -> Rule {
        policy.rule(self.conn().is_some(), self.app)
    }

    /// Automatically online; otherwise away.
    pub fn is_online(&self) -> bool {
        self.app != AppState::Inactive && self.heartbeat.state() == SessionState::Online
    }

    /// Online counts only if the session is online.
    pub fn effective_declared(&self) -> Option<Declared> {
        self.declared.filter(|declared| *declared != Declared::Online || self.is_online())
    }

    pub fn status(&self) -> Status {
        if self.is_online() { Status::Online } else { Status::Away }
    }

    pub fn view(&self, clock: &MonotonicClock) -> SessionView {
        SessionView {
            conn: self.conn(),
            device: self.device.clone(),
            platform: self.platform,
            app: self.app,
            status: self.status(),
            since: self.since,
            heartbeats: self.heartbeat.heartbeats().map(|at| clock.wall_time(at)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wall_time::WallTime;

    #[test]
    fn p10_the_last_ten_heartbeats_are_kept() {
        let device = DeviceId::new("phone").unwrap();
        let hello = Hello { device, platform: Platform::Phone, app: AppState::Foreground, declared: None };
        let mut clock = MonotonicClock::new(WallTime(1_000_000));
        let mut session = Session::new(0, None, hello, MonotonicTime(1_000_000), UnixTime(1000));
        assert_eq!(session.view(&clock).heartbeats, [WallTime(1_000_000)]);
        for beat in 1..=12 {
            session.heartbeat.record(clock.at(WallTime(1_000_000 + beat * 25_001)));
        }
        let expected: Vec<WallTime> =
            (3..=12).rev().map(|beat| WallTime(1_000_000 + beat * 25_001)).collect();
        assert_eq!(session.view(&clock).heartbeats, expected);
        session.heartbeat.record(clock.at(WallTime(1_000_000_000)));
        assert_eq!(session.view(&clock).heartbeats.len(), 10);
    }
}
