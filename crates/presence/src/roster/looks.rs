//! What happens by itself: pings, probes, silence, and what was said to end.

use super::Core;
use super::sessions::End;
use super::settling::Why;
use crate::input::{Cause, CloseCause, Effect};
use crate::moment::Steady;

impl Core {
    /// When to look at a new session for the first time.
    pub(super) fn first_look(&self, slot: u32, now: Steady) -> Steady {
        let ping_at = Steady(u64::from(self.sessions[slot].ping_at_s) * 1000);
        ping_at.min(now.plus(self.policy.look()))
    }

    /// Looks at a session. When to look again; none if there is nothing to look at any more.
    pub(super) fn look(&mut self, slot: u32, now: Steady, effects: &mut Vec<Effect>) -> Option<Steady> {
        let session = self.sessions.get(slot).filter(|session| session.is_live())?;
        let (person, rule) = (session.person, session.rule(&self.policy));
        let mut pulse = session.pulse;
        let look = pulse.look(&self.policy, rule, now);
        let conn = session.conn();
        if look.gone {
            effects.extend(conn.map(|conn| Effect::Close { conn, cause: CloseCause::NoPong }));
            self.end(now, slot, End::Silent, effects);
            return None;
        }
        effects.extend(conn.filter(|_| look.ask).map(Effect::Probe));
        if pulse.phase() == session.pulse.phase() {
            self.sessions[slot].pulse = pulse;
        } else {
            let before = self.glimpse(person);
            self.sessions[slot].pulse = pulse;
            let why = Why::by(Cause::Silence, self.sessions[slot].device.clone());
            self.settle(now, person, before, why, effects);
        }
        let ping_at = self.ping(slot, now, effects);
        Some(look.again.min(ping_at).min(now.plus(self.policy.look())))
    }

    /// Sends the regular ping if it is time. When the next one is.
    fn ping(&mut self, slot: u32, now: Steady, effects: &mut Vec<Effect>) -> Steady {
        let every = self.policy.ping.0.max(1);
        let session = &mut self.sessions[slot];
        if let Some(conn) = session.conn()
            && session.ping_at_s <= now.seconds()
        {
            effects.push(Effect::Ping(conn));
            session.ping_at_s = now.seconds().saturating_add(every);
        }
        Steady(u64::from(session.ping_at_s) * 1000)
    }

    /// The last sign of life of who is here moves all the time: it is stored when there is one, but not each time. So what
    /// a crash leaves is the last sign but for that much.
    pub(super) fn remember_now_and_then(&mut self, now: Steady, person: u32, effects: &mut Vec<Effect>) {
        let every = self.policy.remember.0;
        let person = &mut self.persons[person];
        let age_s = now.seconds().saturating_sub(person.remembered_at_s);
        if every > 0 && age_s >= every && person.hidden_since.get().is_none() {
            person.remembered_at_s = now.seconds();
            effects.push(Effect::Remember { user: person.user });
        }
    }

    /// Does what is due for persons.
    pub(super) fn do_what_is_due(&mut self, now: Steady, effects: &mut Vec<Effect>) {
        if self.agenda.first().is_none_or(|(at, _)| *at > now.seconds()) {
            return;
        }
        let later = self.agenda.split_off(&(now.seconds().saturating_add(1), 0));
        let due = std::mem::replace(&mut self.agenda, later);
        for (_, person) in due {
            self.persons[person].due_s = 0;
            self.end_declaration(now, person, effects);
            self.end_grace(now, person, effects);
            self.end_pending(now, person, effects);
            if self.forgets_at_s(person).is_some_and(|at| at <= now.seconds()) {
                self.remove_person(person);
            } else {
                self.plan(person);
            }
        }
    }

    fn end_declaration(&mut self, now: Steady, person: u32, effects: &mut Vec<Effect>) {
        let until = self.persons[person].declaration().and_then(|said| said.until);
        if until.is_some_and(|until| until <= self.unix(now)) {
            let before = self.glimpse(person);
            self.persons[person].declare(None);
            self.settle(now, person, before, Why::of(Cause::Until), effects);
        }
    }

    fn end_grace(&mut self, now: Steady, person: u32, effects: &mut Vec<Effect>) {
        let until_s = self.persons[person].grace_until_s;
        if until_s > 0 && until_s <= now.seconds() {
            let before = self.glimpse(person);
            let first = self.persons[person].first;
            let device = self.sessions.get(first).map(|session| session.device.clone());
            self.end_lingering(now, person);
            self.settle(now, person, before, Why { cause: Cause::Drop, device }, effects);
        }
    }

    fn end_pending(&mut self, now: Steady, person: u32, effects: &mut Vec<Effect>) {
        let until_s = self.persons[person].pending_until_s;
        if until_s > 0 && until_s <= now.seconds() {
            let before = self.glimpse(person);
            self.persons[person].pending_until_s = 0;
            self.persons[person].left_at_s = now.seconds();
            self.settle(now, person, before, Why::of(Cause::PendingOver), effects);
        }
    }
}
