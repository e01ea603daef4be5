use domain::UserId;

use super::Core;
use super::changes::Trigger;
use super::sessions::End;
use crate::device::{AppState, DeviceId};
use crate::input::{Cause, CloseCause, CloseKind, ConnId, Effect, Hello, Input, Refused};
use crate::session::Kind;
use crate::state_machine::SessionState;
use crate::status::Declaration;
use crate::wall_time::MonotonicTime;

impl Core {
    /// Returns the slot of a new session and when to check it first.
    pub(super) fn handle(
        &mut self,
        now: MonotonicTime,
        user: UserId,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, MonotonicTime)>, Refused> {
        match input {
            Input::Connected { conn, hello } => return self.connected(now, user, (conn, hello), effects),
            Input::Heartbeat { hello } => return self.heartbeat(now, user, hello, effects),
            Input::Goodbye { device } => self.goodbye(now, user, &device, effects),
            Input::SignOut { device } => self.sign_out(now, user, device, effects),
            Input::TorrentCounts { seeding, leeching } => {
                self.traffic(now, user, (seeding, leeching), effects)
            }
            Input::Message { conn } => {
                self.with_session(user, conn, |core, slot| core.message(now, slot, effects))
            }
            Input::ProbeAnswered { conn } => self.with_session(user, conn, |core, slot| {
                core.sessions[slot].heartbeat.probe_answered(now);
                core.store_periodically(now, core.sessions[slot].user_slot, effects);
            }),
            Input::ProbeFailed { conn } => {
                self.with_session(user, conn, |core, slot| core.probe_failed(now, slot, effects));
            }
            Input::App { conn, state } => {
                self.with_session(user, conn, |core, slot| core.app(now, slot, state, effects))
            }
            Input::Declare { conn, declaration } => {
                self.with_session(user, conn, |core, slot| core.declare(now, slot, declaration, effects));
            }
            Input::Closed { conn, how } => {
                if let Some(slot) = self.session_of(user, conn) {
                    self.closed(now, slot, how, effects);
                }
            }
        }
        Ok(None)
    }

    /// Acts on the session of a connection, or counts an unknown connection.
    fn with_session(&mut self, user: UserId, conn: ConnId, act: impl FnOnce(&mut Core, u32)) {
        match self.session_of(user, conn) {
            Some(slot) => act(self, slot),
            None => self.unknown_inputs += 1,
        }
    }

    fn session_of(&self, user: UserId, conn: ConnId) -> Option<u32> {
        let entry = &self.users[self.find(user)?];
        let mut sessions = entry.sessions(&self.sessions);
        sessions.find(|(_, session)| session.conn() == Some(conn)).map(|(slot, _)| slot)
    }

    fn connected(
        &mut self,
        now: MonotonicTime,
        user: UserId,
        (conn, hello): (ConnId, Hello),
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, MonotonicTime)>, Refused> {
        if self.session_of(user, conn).is_some() {
            self.unknown_inputs += 1;
            return Ok(None);
        }
        self.check_limits(user, &hello.device)?;
        let slot = self.begin(now, user, (Some(conn), hello), effects);
        Ok(Some((slot, self.first_check(slot, now))))
    }

    fn heartbeat(
        &mut self,
        now: MonotonicTime,
        user: UserId,
        hello: Hello,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<(u32, MonotonicTime)>, Refused> {
        let Some(slot) = self.heartbeats_of(user, &hello.device) else {
            self.check_limits(user, &hello.device)?;
            let slot = self.begin(now, user, (None, hello), effects);
            return Ok(Some((slot, self.first_check(slot, now))));
        };
        let session = &self.sessions[slot];
        let entry = session.user_slot;
        let same =
            (session.platform, session.app, session.declared) == (hello.platform, hello.app, hello.declared);
        if same && session.heartbeat.state() == SessionState::Online {
            self.sessions[slot].heartbeat.record(now);
            self.store_periodically(now, entry, effects);
            return Ok(None);
        }
        let before = self.digest(entry);
        let session = &mut self.sessions[slot];
        session.heartbeat.record(now);
        (session.platform, session.app, session.declared) = (hello.platform, hello.app, hello.declared);
        self.apply_change(now, entry, before, Trigger::by(Cause::Heartbeat, hello.device), effects);
        self.store_periodically(now, entry, effects);
        Ok(None)
    }

    fn heartbeats_of(&self, user: UserId, device: &DeviceId) -> Option<u32> {
        let entry = &self.users[self.find(user)?];
        let mut sessions = entry.sessions(&self.sessions);
        let found = sessions.find(|(_, other)| other.kind == Kind::Heartbeats && other.device == *device);
        found.map(|(slot, _)| slot)
    }

    fn goodbye(&mut self, now: MonotonicTime, user: UserId, device: &DeviceId, effects: &mut Vec<Effect>) {
        match self.heartbeats_of(user, device) {
            Some(slot) => self.end(now, slot, End::Closed(Cause::Goodbye), effects),
            None => self.unknown_inputs += 1,
        }
    }

    fn sign_out(&mut self, now: MonotonicTime, user: UserId, device: DeviceId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.find(user) else { return };
        let before = self.digest(entry);
        loop {
            let mut sessions = self.users[entry].sessions(&self.sessions);
            let Some((slot, session)) = sessions.find(|(_, session)| session.device == device) else { break };
            if let Some(conn) = session.conn() {
                effects.push(Effect::Close { conn, cause: CloseCause::SignedOut });
            }
            self.unlink(now, slot, false);
        }
        self.apply_change(now, entry, before, Trigger::by(Cause::SignedOut, device), effects);
    }

    fn traffic(
        &mut self,
        now: MonotonicTime,
        user: UserId,
        (seeding, leeching): (u32, u32),
        effects: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.find(user) else { return };
        let before = self.digest(entry);
        self.users[entry].seeding = seeding;
        self.users[entry].leeching = leeching;
        self.apply_change(now, entry, before, Trigger::of(Cause::Declared), effects);
    }

    fn message(&mut self, now: MonotonicTime, slot: u32, effects: &mut Vec<Effect>) {
        if self.sessions[slot].heartbeat.state() == SessionState::Online {
            self.sessions[slot].heartbeat.record(now);
            self.store_periodically(now, self.sessions[slot].user_slot, effects);
            return;
        }
        self.change(now, slot, Cause::Heartbeat, effects, |core| core.sessions[slot].heartbeat.record(now));
    }

    fn probe_failed(&mut self, now: MonotonicTime, slot: u32, effects: &mut Vec<Effect>) {
        let session = &self.sessions[slot];
        let mut heartbeat = session.heartbeat;
        if !heartbeat.probe_failed(&self.policy, session.rule(&self.policy), now) {
            self.sessions[slot].heartbeat = heartbeat;
            return;
        }
        effects.extend(session.conn().map(|conn| Effect::Close { conn, cause: CloseCause::NoPong }));
        self.end(now, slot, End::Silent, effects);
    }

    fn app(&mut self, now: MonotonicTime, slot: u32, state: AppState, effects: &mut Vec<Effect>) {
        self.change(now, slot, Cause::AppState, effects, |core| {
            core.sessions[slot].heartbeat.record(now);
            core.sessions[slot].app = state;
        });
    }

    fn declare(
        &mut self,
        now: MonotonicTime,
        slot: u32,
        declaration: Option<Declaration>,
        effects: &mut Vec<Effect>,
    ) {
        let over = self.unix(now);
        let declaration = declaration.filter(|declared| declared.until.is_none_or(|until| until > over));
        self.change(now, slot, Cause::Declared, effects, |core| {
            core.sessions[slot].heartbeat.record(now);
            core.sessions[slot].declared = None;
            let entry = core.sessions[slot].user_slot;
            core.users[entry].declare(declaration);
            core.users[entry].flags.loaded = true;
        });
    }

    /// A change of a session that may change the user's status.
    fn change(
        &mut self,
        now: MonotonicTime,
        slot: u32,
        cause: Cause,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Core),
    ) {
        let entry = self.sessions[slot].user_slot;
        let before = self.digest(entry);
        act(self);
        let device = self.sessions[slot].device.clone();
        self.apply_change(now, entry, before, Trigger::by(cause, device), effects);
        self.store_periodically(now, entry, effects);
    }

    fn closed(&mut self, now: MonotonicTime, slot: u32, how: CloseKind, effects: &mut Vec<Effect>) {
        match how {
            CloseKind::Clean => self.end(now, slot, End::Closed(Cause::Close), effects),
            CloseKind::Dropped => self.end(now, slot, End::Dropped, effects),
        }
    }
}
