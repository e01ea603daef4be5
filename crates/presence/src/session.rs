//! One session: a connection, or the HTTP heartbeats of one device.
//!
//! A hundred thousand of these lie in memory, so they are kept small.

use domain::UnixTime;

use crate::device::{AppState, DeviceId, Platform};
use crate::input::{ConnId, Hello};
use crate::machine::Phase;
use crate::moment::{Steady, Timeline};
use crate::policy::{Policy, Rule};
use crate::pulse::Pulse;
use crate::status::{Declared, Status};
use crate::view::SessionView;

/// What keeps a session alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A connection.
    Connection,
    /// Heartbeats over HTTP.
    Heartbeats,
    /// Nothing any more: it is over, and only shown until the grace period ends.
    Lingering,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// The slot of its person.
    pub person: u32,
    /// The slot of the person's next session.
    pub next: u32,
    pub kind: Kind,
    /// The connection, if it is one.
    conn: ConnId,
    pub since: UnixTime,
    /// When the next regular ping goes out, in steady seconds.
    pub ping_at_s: u32,
    pub pulse: Pulse,
    pub device: DeviceId,
    pub platform: Platform,
    pub app: AppState,
    /// What was said at connect and holds while the session lives.
    pub said: Option<Declared>,
}

impl Session {
    /// A session that begins now: of a connection, or of heartbeats over HTTP.
    pub fn new(person: u32, conn: Option<ConnId>, hello: Hello, now: Steady, since: UnixTime) -> Session {
        Session {
            person,
            next: crate::slots::NONE,
            kind: if conn.is_some() { Kind::Connection } else { Kind::Heartbeats },
            conn: conn.unwrap_or(ConnId(u32::MAX)),
            since,
            ping_at_s: u32::MAX,
            pulse: Pulse::new(now),
            device: hello.device,
            platform: hello.platform,
            app: hello.app,
            said: hello.declared,
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

    /// Whether it is automatically online; otherwise away.
    pub fn is_online(&self) -> bool {
        self.app != AppState::Inactive && self.pulse.phase() == Phase::Online
    }

    /// What it says, if that counts: online only if it is.
    pub fn counts(&self) -> Option<Declared> {
        self.said.filter(|said| *said != Declared::Online || self.is_online())
    }

    /// Online or away, by what the device does.
    pub fn status(&self) -> Status {
        if self.is_online() { Status::Online } else { Status::Away }
    }

    pub fn view(&self, timeline: &Timeline) -> SessionView {
        SessionView {
            conn: self.conn(),
            device: self.device.clone(),
            platform: self.platform,
            app: self.app,
            status: self.status(),
            since: self.since,
            heartbeats: self.pulse.heartbeats().map(|at| timeline.moment(at)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;

    #[test]
    fn p10_the_last_ten_heartbeats_are_kept() {
        let device = DeviceId::new("phone").unwrap();
        let hello = Hello { device, platform: Platform::Phone, app: AppState::Foreground, declared: None };
        let mut timeline = Timeline::new(Moment(1_000_000));
        let mut session = Session::new(0, None, hello, Steady(1_000_000), UnixTime(1000));
        assert_eq!(session.view(&timeline).heartbeats, [Moment(1_000_000)]);
        for beat in 1..=12 {
            session.pulse.heard(timeline.at(Moment(1_000_000 + beat * 25_001)));
        }
        let expected: Vec<Moment> = (3..=12).rev().map(|beat| Moment(1_000_000 + beat * 25_001)).collect();
        assert_eq!(session.view(&timeline).heartbeats, expected);
        session.pulse.heard(timeline.at(Moment(1_000_000_000)));
        assert_eq!(session.view(&timeline).heartbeats.len(), 10);
    }
}
