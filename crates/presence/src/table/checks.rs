//! Timed actions: pings, probes, timeouts, ends of declarations.

use super::Core;
use super::changes::Trigger;
use super::sessions::End;
use crate::input::{Cause, CloseCause, Effect};
use crate::wall_time::MonotonicTime;

impl Core {
    pub(super) fn first_check(&self, slot: u32, now: MonotonicTime) -> MonotonicTime {
        let ping_at = MonotonicTime(u64::from(self.sessions[slot].ping_at_s) * 1000);
        ping_at.min(now.plus(self.policy.check_interval()))
    }

    /// Checks a session. Returns when to check it next; none if it has ended.
    pub(super) fn check(
        &mut self,
        slot: u32,
        now: MonotonicTime,
        effects: &mut Vec<Effect>,
    ) -> Option<MonotonicTime> {
        let session = self.sessions.get(slot).filter(|session| session.is_live())?;
        let (entry, rule) = (session.user_slot, session.rule(&self.policy));
        let mut heartbeat = session.heartbeat;
        let check = heartbeat.check(&self.policy, rule, now);
        let conn = session.conn();
        if check.expired {
            effects.extend(conn.map(|conn| Effect::Close { conn, cause: CloseCause::NoPong }));
            self.end(now, slot, End::Silent, effects);
            return None;
        }
        effects.extend(conn.filter(|_| check.probe).map(Effect::Probe));
        if heartbeat.state() == session.heartbeat.state() {
            self.sessions[slot].heartbeat = heartbeat;
        } else {
            let before = self.digest(entry);
            self.sessions[slot].heartbeat = heartbeat;
            let trigger = Trigger::by(Cause::Silence, self.sessions[slot].device.clone());
            self.apply_change(now, entry, before, trigger, effects);
        }
        let ping_at = self.ping(slot, now, effects);
        Some(check.next_at.min(ping_at).min(now.plus(self.policy.check_interval())))
    }

    /// Sends the ping if it is due. Returns when the next one is.
    fn ping(&mut self, slot: u32, now: MonotonicTime, effects: &mut Vec<Effect>) -> MonotonicTime {
        let every = self.policy.ping.0.max(1);
        let session = &mut self.sessions[slot];
        if let Some(conn) = session.conn()
            && session.ping_at_s <= now.seconds()
        {
            effects.push(Effect::Ping(conn));
            session.ping_at_s = now.seconds().saturating_add(every);
        }
        MonotonicTime(u64::from(session.ping_at_s) * 1000)
    }

    /// The last activity of an online user changes all the time, so it is stored at intervals. After a crash the stored
    /// value lags by at most that interval.
    pub(super) fn store_periodically(&mut self, now: MonotonicTime, entry: u32, effects: &mut Vec<Effect>) {
        let every = self.policy.store_interval.0;
        let entry = &mut self.users[entry];
        let age_s = now.seconds().saturating_sub(entry.stored_at_s);
        if every > 0 && age_s >= every && entry.hidden_since.get().is_none() {
            entry.stored_at_s = now.seconds();
            effects.push(Effect::Store { user: entry.user });
        }
    }

    pub(super) fn run_deadlines(&mut self, now: MonotonicTime, effects: &mut Vec<Effect>) {
        if self.deadlines.first().is_none_or(|(at, _)| *at > now.seconds()) {
            return;
        }
        let later = self.deadlines.split_off(&(now.seconds().saturating_add(1), 0));
        let due = std::mem::replace(&mut self.deadlines, later);
        for (_, entry) in due {
            self.users[entry].due_s = 0;
            self.end_declaration(now, entry, effects);
            self.end_grace(now, entry, effects);
            self.end_pending(now, entry, effects);
            if self.removal_at_s(entry).is_some_and(|at| at <= now.seconds()) {
                self.remove_user(entry);
            } else {
                self.schedule(entry);
            }
        }
    }

    fn end_declaration(&mut self, now: MonotonicTime, entry: u32, effects: &mut Vec<Effect>) {
        let until = self.users[entry].declaration().and_then(|declared| declared.until);
        if until.is_some_and(|until| until <= self.unix(now)) {
            let before = self.digest(entry);
            self.users[entry].declare(None);
            self.apply_change(now, entry, before, Trigger::of(Cause::Until), effects);
        }
    }

    fn end_grace(&mut self, now: MonotonicTime, entry: u32, effects: &mut Vec<Effect>) {
        let until_s = self.users[entry].grace_until_s;
        if until_s > 0 && until_s <= now.seconds() {
            let before = self.digest(entry);
            let first = self.users[entry].first;
            let device = self.sessions.get(first).map(|session| session.device.clone());
            self.end_lingering(now, entry);
            self.apply_change(now, entry, before, Trigger { cause: Cause::Drop, device }, effects);
        }
    }

    fn end_pending(&mut self, now: MonotonicTime, entry: u32, effects: &mut Vec<Effect>) {
        let until_s = self.users[entry].pending_until_s;
        if until_s > 0 && until_s <= now.seconds() {
            let before = self.digest(entry);
            self.users[entry].pending_until_s = 0;
            self.users[entry].left_at_s = now.seconds();
            self.apply_change(now, entry, before, Trigger::of(Cause::PendingOver), effects);
        }
    }
}
