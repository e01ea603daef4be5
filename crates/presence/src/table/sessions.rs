//! Sessions start and end; flap damping.
//!
//! When the last connection of a user drops and the user returns within `flap_forget`, the flap level rises. From the
//! second level on, a dropped session lingers: it has ended, but is shown unchanged until the grace period is over or
//! the user returns, so watchers see no change. Each `flap_forget` that the user stays connected lowers the level by
//! one; an absence longer than that resets it.

use domain::UserId;

use super::Core;
use super::changes::Trigger;
use crate::device::DeviceId;
use crate::input::{Cause, ConnId, Effect, Hello, Refused};
use crate::policy::Policy;
use crate::session::{Kind, Session};
use crate::slab::NONE;
use crate::wall_time::MonotonicTime;

#[derive(Clone, Copy)]
pub(super) enum End {
    /// Closed by the device: it was active until now.
    Closed(Cause),
    Dropped,
    /// Timed out.
    Silent,
}

impl Core {
    /// Checks the limits of sessions and devices for one more session of this device.
    pub(super) fn check_limits(&self, user: UserId, device: &DeviceId) -> Result<(), Refused> {
        let Some(entry) = self.find(user).map(|slot| &self.users[slot]) else { return Ok(()) };
        if u32::from(entry.live) >= Policy::SESSIONS_MAX {
            return Err(Refused::TooManySessions { max: Policy::SESSIONS_MAX });
        }
        let live = || entry.sessions(&self.sessions).filter(|(_, session)| session.is_live());
        if live().any(|(_, session)| session.device == *device) {
            return Ok(());
        }
        let is_first = |slot: u32, device: &DeviceId| {
            live().find(|(_, other)| other.device == *device).is_some_and(|(it, _)| it == slot)
        };
        let here = live().filter(|(slot, session)| is_first(*slot, &session.device)).count();
        let remote = entry.remote_devices().iter();
        if remote.clone().any(|remote| remote.id == *device) {
            return Ok(());
        }
        let devices =
            here + remote.filter(|remote| !live().any(|(_, session)| session.device == remote.id)).count();
        let max = self.policy.devices_max;
        if devices < max as usize { Ok(()) } else { Err(Refused::TooManyDevices { max }) }
    }

    pub(super) fn begin(
        &mut self,
        now: MonotonicTime,
        user: UserId,
        (conn, hello): (Option<ConnId>, Hello),
        effects: &mut Vec<Effect>,
    ) -> u32 {
        let entry = self.find_or_add(user);
        let before = self.digest(entry);
        self.end_lingering(now, entry);
        if self.users[entry].live == 0 {
            self.first_session_started(now, entry, conn.is_some());
        }
        let cause = if conn.is_some() { Cause::Connect } else { Cause::Heartbeat };
        let trigger = Trigger::by(cause, hello.device.clone());
        let mut session = Session::new(entry, conn, hello, now, self.unix(now));
        session.next = self.users[entry].first;
        if conn.is_some() {
            self.counts.connections += 1;
            let spread = self.rng.u32(1..=self.policy.ping.0.max(1));
            session.ping_at_s = now.seconds().saturating_add(spread);
        } else {
            self.counts.without_connection += 1;
        }
        let slot = self.sessions.insert(session);
        self.users[entry].first = slot;
        self.users[entry].live += 1;
        self.apply_change(now, entry, before, trigger, effects);
        slot
    }

    fn first_session_started(&mut self, now: MonotonicTime, entry: u32, by_connection: bool) {
        let policy = &self.policy;
        let entry = &mut self.users[entry];
        let absent_s = now.seconds().saturating_sub(entry.left_at_s);
        if absent_s > policy.flap_forget.0 {
            entry.flap_level = 0;
        } else if entry.flags.dropped && by_connection && entry.remote().is_none() {
            entry.flap_level = policy.flap_level_above(entry.flap_level);
        }
        entry.flags.dropped = false;
        entry.up_since_s = now.seconds();
        entry.pending_until_s = 0;
    }

    pub(super) fn end(&mut self, now: MonotonicTime, slot: u32, end: End, effects: &mut Vec<Effect>) {
        let entry = self.sessions[slot].user_slot;
        let before = self.digest(entry);
        let (cause, was_alive) = match end {
            End::Closed(cause) => (cause, true),
            End::Dropped => (Cause::Drop, false),
            End::Silent => (Cause::Silence, false),
        };
        if matches!(end, End::Dropped) && self.linger(now, slot) {
            let device = self.sessions[slot].device.clone();
            return self.apply_change(now, entry, before, Trigger::by(cause, device), effects);
        }
        let session = self.unlink(now, slot, was_alive);
        self.users[entry].flags.dropped = matches!(end, End::Dropped) && self.users[entry].live == 0;
        self.apply_change(now, entry, before, Trigger::by(cause, session.device), effects);
    }

    /// Starts the grace period of a flapping user whose last session dropped. Returns whether there is one.
    fn linger(&mut self, now: MonotonicTime, slot: u32) -> bool {
        let entry = self.sessions[slot].user_slot;
        // Users with remote sessions are shown anyway.
        if self.users[entry].live != 1 || self.users[entry].remote().is_some() {
            return false;
        }
        let level = self.level_after_stay(now, entry);
        let grace = self.policy.grace(level);
        if grace.0 == 0 {
            return false;
        }
        self.last_session_ended(now, entry);
        self.record_last_alive(slot, None);
        self.decrement_counts(slot);
        self.sessions[slot].kind = Kind::Lingering;
        let entry = &mut self.users[entry];
        entry.flags.dropped = true;
        entry.live = 0;
        entry.grace_until_s = now.plus(grace).seconds_up();
        true
    }

    fn level_after_stay(&self, now: MonotonicTime, entry: u32) -> u8 {
        let entry = &self.users[entry];
        let stay_s = now.seconds().saturating_sub(entry.up_since_s);
        let made_up = stay_s / self.policy.flap_forget.0.max(1);
        entry.flap_level.saturating_sub(u8::try_from(made_up).unwrap_or(u8::MAX))
    }

    fn last_session_ended(&mut self, now: MonotonicTime, entry: u32) {
        self.users[entry].flap_level = self.level_after_stay(now, entry);
        self.users[entry].left_at_s = now.seconds();
    }

    /// Removes a session from its user. It was active until now, or until its last activity.
    pub(super) fn unlink(&mut self, now: MonotonicTime, slot: u32, was_alive: bool) -> Session {
        let entry = self.sessions[slot].user_slot;
        self.record_last_alive(slot, was_alive.then_some(now));
        let next = self.sessions[slot].next;
        let mut sessions = self.users[entry].sessions(&self.sessions);
        match sessions.find(|(_, session)| session.next == slot) {
            Some((previous, _)) => self.sessions[previous].next = next,
            None => self.users[entry].first = next,
        }
        if self.sessions[slot].is_live() {
            self.decrement_counts(slot);
            self.users[entry].live -= 1;
            if self.users[entry].live == 0 {
                self.last_session_ended(now, entry);
            }
        }
        self.sessions.remove(slot)
    }

    /// Ends a lingering session. Returns whether there was one.
    pub(super) fn end_lingering(&mut self, now: MonotonicTime, entry: u32) -> bool {
        self.users[entry].grace_until_s = 0;
        let first = self.users[entry].first;
        let lingers = first != NONE && !self.sessions[first].is_live();
        if lingers {
            self.unlink(now, first, false);
        }
        lingers
    }

    fn record_last_alive(&mut self, slot: u32, at: Option<MonotonicTime>) {
        let session = &self.sessions[slot];
        let alive = self.unix(at.unwrap_or(session.heartbeat.last_activity()));
        let entry = &mut self.users[session.user_slot];
        entry.last_alive = entry.last_alive.max(alive);
    }

    fn decrement_counts(&mut self, slot: u32) {
        match self.sessions[slot].kind {
            Kind::Connection => self.counts.connections -= 1,
            Kind::Heartbeats => self.counts.without_connection -= 1,
            Kind::Lingering => {}
        }
    }
}
