//! What each input does.

use domain::UserId;

use super::Core;
use super::sessions::End;
use super::settling::Why;
use crate::device::{AppState, DeviceId};
use crate::input::{Cause, CloseCause, ConnId, Effect, Goodbye, Hello, Input, Refused};
use crate::machine::Phase;
use crate::moment::Steady;
use crate::session::Kind;
use crate::status::Declaration;

impl Core {
    /// Takes in what happened. A session that is new is to be looked at then.
    pub(super) fn handle(
        &mut self,
        now: Steady,
        user: UserId,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, Steady)>, Refused> {
        match input {
            Input::Connected { conn, hello } => return self.connected(now, user, (conn, hello), effects),
            Input::Heartbeat { hello } => return self.heartbeat(now, user, hello, effects),
            Input::Goodbye { device } => self.goodbye(now, user, &device, effects),
            Input::SignOut { device } => self.sign_out(now, user, device, effects),
            Input::Traffic { seeding, leeching } => self.traffic(now, user, (seeding, leeching), effects),
            Input::Heard { conn } => self.on(user, conn, |core, slot| core.heard(now, slot, effects)),
            Input::ProbeAnswered { conn } => self.on(user, conn, |core, slot| {
                core.sessions[slot].pulse.answered(now);
                core.remember_now_and_then(now, core.sessions[slot].person, effects);
            }),
            Input::ProbeFailed { conn } => {
                self.on(user, conn, |core, slot| core.probe_failed(now, slot, effects));
            }
            Input::App { conn, state } => {
                self.on(user, conn, |core, slot| core.app(now, slot, state, effects))
            }
            Input::Declare { conn, declaration } => {
                self.on(user, conn, |core, slot| core.declare(now, slot, declaration, effects));
            }
            Input::Closed { conn, how } => {
                if let Some(slot) = self.session_of(user, conn) {
                    self.closed(now, slot, how, effects);
                }
            }
        }
        Ok(None)
    }

    /// Does something to a connection's session, or counts that nobody knows it.
    fn on(&mut self, user: UserId, conn: ConnId, act: impl FnOnce(&mut Core, u32)) {
        match self.session_of(user, conn) {
            Some(slot) => act(self, slot),
            None => self.strays += 1,
        }
    }

    fn session_of(&self, user: UserId, conn: ConnId) -> Option<u32> {
        let person = &self.persons[self.find(user)?];
        let mut sessions = person.sessions(&self.sessions);
        sessions.find(|(_, session)| session.conn() == Some(conn)).map(|(slot, _)| slot)
    }

    fn connected(
        &mut self,
        now: Steady,
        user: UserId,
        (conn, hello): (ConnId, Hello),
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, Steady)>, Refused> {
        if self.session_of(user, conn).is_some() {
            self.strays += 1;
            return Ok(None);
        }
        self.check_room_for(user, &hello.device)?;
        let slot = self.begin(now, user, (Some(conn), hello), effects);
        Ok(Some((slot, self.first_look(slot, now))))
    }

    fn heartbeat(
        &mut self,
        now: Steady,
        user: UserId,
        hello: Hello,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, Steady)>, Refused> {
        let Some(slot) = self.heartbeats_of(user, &hello.device) else {
            self.check_room_for(user, &hello.device)?;
            let slot = self.begin(now, user, (None, hello), effects);
            return Ok(Some((slot, self.first_look(slot, now))));
        };
        let session = &self.sessions[slot];
        let person = session.person;
        let same =
            (session.platform, session.app, session.said) == (hello.platform, hello.app, hello.declared);
        if same && session.pulse.phase() == Phase::Online {
            self.sessions[slot].pulse.heard(now);
            self.remember_now_and_then(now, person, effects);
            return Ok(None);
        }
        let before = self.glimpse(person);
        let session = &mut self.sessions[slot];
        session.pulse.heard(now);
        (session.platform, session.app, session.said) = (hello.platform, hello.app, hello.declared);
        self.settle(now, person, before, Why::by(Cause::Heartbeat, hello.device), effects);
        self.remember_now_and_then(now, person, effects);
        Ok(None)
    }

    fn heartbeats_of(&self, user: UserId, device: &DeviceId) -> Option<u32> {
        let person = &self.persons[self.find(user)?];
        let mut sessions = person.sessions(&self.sessions);
        let found = sessions.find(|(_, other)| other.kind == Kind::Heartbeats && other.device == *device);
        found.map(|(slot, _)| slot)
    }

    fn goodbye(&mut self, now: Steady, user: UserId, device: &DeviceId, effects: &mut Vec<Effect>) {
        match self.heartbeats_of(user, device) {
            Some(slot) => self.end(now, slot, End::SaidSo(Cause::Goodbye), effects),
            None => self.strays += 1,
        }
    }

    fn sign_out(&mut self, now: Steady, user: UserId, device: DeviceId, effects: &mut Vec<Effect>) {
        let Some(person) = self.find(user) else { return };
        let before = self.glimpse(person);
        loop {
            let mut sessions = self.persons[person].sessions(&self.sessions);
            let Some((slot, session)) = sessions.find(|(_, session)| session.device == device) else { break };
            if let Some(conn) = session.conn() {
                effects.push(Effect::Close { conn, cause: CloseCause::SignedOut });
            }
            self.unlink(now, slot, false);
        }
        self.settle(now, person, before, Why::by(Cause::SignedOut, device), effects);
    }

    fn traffic(
        &mut self,
        now: Steady,
        user: UserId,
        (seeding, leeching): (u32, u32),
        effects: &mut Vec<Effect>,
    ) {
        let Some(person) = self.find(user) else { return };
        let before = self.glimpse(person);
        self.persons[person].seeding = seeding;
        self.persons[person].leeching = leeching;
        self.settle(now, person, before, Why::of(Cause::Declared), effects);
    }

    fn heard(&mut self, now: Steady, slot: u32, effects: &mut Vec<Effect>) {
        if self.sessions[slot].pulse.phase() == Phase::Online {
            self.sessions[slot].pulse.heard(now);
            self.remember_now_and_then(now, self.sessions[slot].person, effects);
            return;
        }
        self.change(now, slot, Cause::Heartbeat, effects, |core| core.sessions[slot].pulse.heard(now));
    }

    fn probe_failed(&mut self, now: Steady, slot: u32, effects: &mut Vec<Effect>) {
        let session = &self.sessions[slot];
        let mut pulse = session.pulse;
        if !pulse.failed(&self.policy, session.rule(&self.policy), now) {
            self.sessions[slot].pulse = pulse;
            return;
        }
        effects.extend(session.conn().map(|conn| Effect::Close { conn, cause: CloseCause::NoPong }));
        self.end(now, slot, End::Silent, effects);
    }

    fn app(&mut self, now: Steady, slot: u32, state: AppState, effects: &mut Vec<Effect>) {
        self.change(now, slot, Cause::AppState, effects, |core| {
            core.sessions[slot].pulse.heard(now);
            core.sessions[slot].app = state;
        });
    }

    fn declare(
        &mut self,
        now: Steady,
        slot: u32,
        declaration: Option<Declaration>,
        effects: &mut Vec<Effect>,
    ) {
        let over = self.unix(now);
        let declaration = declaration.filter(|said| said.until.is_none_or(|until| until > over));
        self.change(now, slot, Cause::Declared, effects, |core| {
            core.sessions[slot].pulse.heard(now);
            core.sessions[slot].said = None;
            let person = core.sessions[slot].person;
            core.persons[person].declare(declaration);
            core.persons[person].flags.informed = true;
        });
    }

    /// Changes something of a session that may change what is shown.
    fn change(
        &mut self,
        now: Steady,
        slot: u32,
        cause: Cause,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Core),
    ) {
        let person = self.sessions[slot].person;
        let before = self.glimpse(person);
        act(self);
        let device = self.sessions[slot].device.clone();
        self.settle(now, person, before, Why::by(cause, device), effects);
        self.remember_now_and_then(now, person, effects);
    }

    fn closed(&mut self, now: Steady, slot: u32, how: Goodbye, effects: &mut Vec<Effect>) {
        match how {
            Goodbye::Clean => self.end(now, slot, End::SaidSo(Cause::Close), effects),
            Goodbye::Dropped => self.end(now, slot, End::Dropped, effects),
        }
    }
}
