//! How sessions begin and end, and what remains of a connection that keeps breaking.
//!
//! A drop of the last connection raises the person's flap level once they are back within `flap_forget`; from the second
//! level on, the session that broke lingers: it is over, but shown as it was until the grace period ends or somebody comes.
//! So nothing changes for anybody who watches, and nothing is told. Each `flap_forget` that the person stays takes a level
//! off; an absence of more than that takes them all.

use domain::UserId;

use super::Core;
use super::settling::Why;
use crate::device::DeviceId;
use crate::input::{Cause, ConnId, Effect, Hello, Refused};
use crate::moment::Steady;
use crate::policy::Policy;
use crate::session::{Kind, Session};
use crate::slots::NONE;

/// How a session ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The device took its leave: it was alive until now.
    SaidSo(Cause),
    /// The connection broke.
    Dropped,
    /// It was given up.
    Silent,
}

impl Core {
    /// Whether one more session of this device fits.
    pub(super) fn check_room_for(&self, user: UserId, device: &DeviceId) -> Result<(), Refused> {
        let Some(person) = self.find(user).map(|slot| &self.persons[slot]) else { return Ok(()) };
        if u32::from(person.live) >= Policy::SESSIONS_MAX {
            return Err(Refused::TooManySessions { max: Policy::SESSIONS_MAX });
        }
        let live = || person.sessions(&self.sessions).filter(|(_, session)| session.is_live());
        if live().any(|(_, session)| session.device == *device) {
            return Ok(());
        }
        let is_first = |slot: u32, device: &DeviceId| {
            live().find(|(_, other)| other.device == *device).is_some_and(|(it, _)| it == slot)
        };
        let here = live().filter(|(slot, session)| is_first(*slot, &session.device)).count();
        let afar = person.devices_afar().iter();
        if afar.clone().any(|afar| afar.id == *device) {
            return Ok(());
        }
        let devices =
            here + afar.filter(|afar| !live().any(|(_, session)| session.device == afar.id)).count();
        let max = self.policy.devices_max;
        if devices < max as usize { Ok(()) } else { Err(Refused::TooManyDevices { max }) }
    }

    /// Begins a session.
    pub(super) fn begin(
        &mut self,
        now: Steady,
        user: UserId,
        (conn, hello): (Option<ConnId>, Hello),
        effects: &mut Vec<Effect>,
    ) -> u32 {
        let person = self.find_or_add(user);
        let before = self.glimpse(person);
        self.end_lingering(now, person);
        if self.persons[person].live == 0 {
            self.came(now, person, conn.is_some());
        }
        let cause = if conn.is_some() { Cause::Connect } else { Cause::Heartbeat };
        let why = Why::by(cause, hello.device.clone());
        let mut session = Session::new(person, conn, hello, now, self.unix(now));
        session.next = self.persons[person].first;
        if conn.is_some() {
            self.tally.connections += 1;
            let spread = self.dice.u32(1..=self.policy.ping.0.max(1));
            session.ping_at_s = now.seconds().saturating_add(spread);
        } else {
            self.tally.without_connection += 1;
        }
        let slot = self.sessions.insert(session);
        self.persons[person].first = slot;
        self.persons[person].live += 1;
        self.settle(now, person, before, why, effects);
        slot
    }

    /// The first session after none.
    fn came(&mut self, now: Steady, person: u32, by_connection: bool) {
        let policy = &self.policy;
        let person = &mut self.persons[person];
        let absent_s = now.seconds().saturating_sub(person.left_at_s);
        if absent_s > policy.flap_forget.0 {
            person.flap_level = 0;
        } else if person.flags.dropped && by_connection && person.afar().is_none() {
            person.flap_level = policy.flap_level_above(person.flap_level);
        }
        person.flags.dropped = false;
        person.up_since_s = now.seconds();
        person.pending_until_s = 0;
    }

    /// Ends a session and says what follows from it.
    pub(super) fn end(&mut self, now: Steady, slot: u32, end: End, effects: &mut Vec<Effect>) {
        let person = self.sessions[slot].person;
        let before = self.glimpse(person);
        let (cause, was_alive) = match end {
            End::SaidSo(cause) => (cause, true),
            End::Dropped => (Cause::Drop, false),
            End::Silent => (Cause::Silence, false),
        };
        if matches!(end, End::Dropped) && self.linger(now, slot) {
            let device = self.sessions[slot].device.clone();
            return self.settle(now, person, before, Why::by(cause, device), effects);
        }
        let session = self.unlink(now, slot, was_alive);
        self.persons[person].flags.dropped = matches!(end, End::Dropped) && self.persons[person].live == 0;
        self.settle(now, person, before, Why::by(cause, session.device), effects);
    }

    /// Lets the last session of a person linger whose connection keeps breaking. Whether it does.
    fn linger(&mut self, now: Steady, slot: u32) -> bool {
        let person = self.sessions[slot].person;
        // Who is elsewhere too is shown anyway.
        if self.persons[person].live != 1 || self.persons[person].afar().is_some() {
            return false;
        }
        let level = self.level_after_stay(now, person);
        let grace = self.policy.grace(level);
        if grace.0 == 0 {
            return false;
        }
        self.went(now, person);
        self.note_alive(slot, None);
        self.uncount(slot);
        self.sessions[slot].kind = Kind::Lingering;
        let person = &mut self.persons[person];
        person.flags.dropped = true;
        person.live = 0;
        person.grace_until_s = now.plus(grace).seconds_up();
        true
    }

    fn level_after_stay(&self, now: Steady, person: u32) -> u8 {
        let person = &self.persons[person];
        let stay_s = now.seconds().saturating_sub(person.up_since_s);
        let made_up = stay_s / self.policy.flap_forget.0.max(1);
        person.flap_level.saturating_sub(u8::try_from(made_up).unwrap_or(u8::MAX))
    }

    /// The last live session is over.
    fn went(&mut self, now: Steady, person: u32) {
        self.persons[person].flap_level = self.level_after_stay(now, person);
        self.persons[person].left_at_s = now.seconds();
    }

    /// Takes a session out of its person. It was alive until now, or until its last sign of life.
    pub(super) fn unlink(&mut self, now: Steady, slot: u32, was_alive: bool) -> Session {
        let person = self.sessions[slot].person;
        self.note_alive(slot, was_alive.then_some(now));
        let next = self.sessions[slot].next;
        let mut sessions = self.persons[person].sessions(&self.sessions);
        match sessions.find(|(_, session)| session.next == slot) {
            Some((previous, _)) => self.sessions[previous].next = next,
            None => self.persons[person].first = next,
        }
        if self.sessions[slot].is_live() {
            self.uncount(slot);
            self.persons[person].live -= 1;
            if self.persons[person].live == 0 {
                self.went(now, person);
            }
        }
        self.sessions.remove(slot)
    }

    /// Ends what only a grace period kept. Whether there was something.
    pub(super) fn end_lingering(&mut self, now: Steady, person: u32) -> bool {
        self.persons[person].grace_until_s = 0;
        let first = self.persons[person].first;
        let lingers = first != NONE && !self.sessions[first].is_live();
        if lingers {
            self.unlink(now, first, false);
        }
        lingers
    }

    fn note_alive(&mut self, slot: u32, at: Option<Steady>) {
        let session = &self.sessions[slot];
        let alive = self.unix(at.unwrap_or(session.pulse.sign()));
        let person = &mut self.persons[session.person];
        person.last_alive = person.last_alive.max(alive);
    }

    fn uncount(&mut self, slot: u32) {
        match self.sessions[slot].kind {
            Kind::Connection => self.tally.connections -= 1,
            Kind::Heartbeats => self.tally.without_connection -= 1,
            Kind::Lingering => {}
        }
    }
}
