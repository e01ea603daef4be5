//! A person's record comes in.

use std::time::Duration;

use domain::UserId;
use presence::{Cause, Effect, Elsewhere, Moment};
use register::{NodeName, Record, Watched};

use super::Sharing;
use super::book::{Mark, Remote, after};
use crate::hub::shard::{After, Outside, Shard};

impl Shard {
    /// Takes in a record, if somebody here wants to know and it is newer than what was taken in before.
    pub(crate) fn hear(&mut self, now: Moment, record: Record, outside: &Outside) -> After {
        let (Some(book), Some(sharing)) = (&mut self.book, &outside.sharing) else { return After::default() };
        let counters = &outside.counters.sharing;
        let Some(known) = book.known.get_mut(&record.user) else {
            counters.unwanted.increment();
            return After::default();
        };
        let user = record.user;
        known.is_answered |= record.own_version >= known.version;
        if record.own_version < known.version || (record.own_version == known.version && known.version > 0) {
            if record.own_version == known.version {
                known.remotes = remotes(now, &record, &known.remotes, sharing);
            }
            counters.stale.increment();
            return self.let_lapse(now, user, outside);
        }
        counters.applied.increment();
        (known.version, known.public_version) = (record.own_version, record.public_version);
        // An answer that was on its way meanwhile is older, and counts by its version again.
        known.is_doubtful = false;
        known.remotes = remotes(now, &record, &known.remotes, sharing);
        let has_lapsed = lapse(now, &mut known.remotes);
        let mut elsewhere = elsewhere(now, &record, &known.remotes);
        if has_lapsed {
            known.version = known.version.saturating_sub(1);
            elsewhere.wait_for_lost(self.roster.pending_end(now));
        }
        let has_own_part = record.parts.iter().any(|part| part.node == sharing.register.node());
        let declared_here = self.roster.remembered(user).and_then(|kept| kept.declaration);
        if book.has_word(user) && elsewhere.declaration != declared_here {
            // What was declared here a moment ago is newer, as far as anybody knows. If the register took it for older,
            // this record is right: it is taken in again when the register has answered (`Shard::end_word`).
            elsewhere.declaration = declared_here;
            if let Some(known) = book.known.get_mut(&user) {
                (known.version, known.is_overruled) = (known.version.saturating_sub(1), true);
            }
        }
        let after = self.hear_elsewhere(now, elsewhere, outside);
        self.ask_again_later(now, user, outside);
        if !has_own_part {
            self.mend_part(now, user, outside);
        }
        after
    }

    /// The register has answered to what was declared here. What was heard meanwhile was not believed in this: it is
    /// asked for again.
    pub(crate) fn end_word(&mut self, now: Moment, user: UserId) {
        let Some(book) = self.book.as_mut().filter(|book| !book.has_word(user)) else { return };
        let Some(known) = book.known.get_mut(&user) else { return };
        if std::mem::take(&mut known.is_overruled) {
            book.ask_at(user, now);
        }
    }

    /// The register does not have what was published of somebody. If they are still here, they are published again.
    fn mend_part(&mut self, now: Moment, user: UserId, outside: &Outside) {
        let (Some(book), Some(sharing)) = (&mut self.book, &outside.sharing) else { return };
        if !book.is_told(user) || book.is_marked(user) {
            return;
        }
        // Who was silent for too long was rightly taken out.
        let is_alive = |part: presence::Part| (part.last_sign.0 + part.gone_in.0) > now.seconds().0;
        if self.roster.part(user, sharing.heard_since()).is_some_and(is_alive) {
            outside.counters.sharing.mended.increment();
            book.tell_again(user, now);
            sharing.marked.notify_one();
        }
    }

    /// What the register answered about somebody.
    pub(crate) fn answer(&mut self, now: Moment, user: UserId, watched: Watched, outside: &Outside) -> After {
        match watched {
            Watched::Record(record) => {
                let known = self.book.as_mut().and_then(|book| book.known.get_mut(&user));
                if let Some(known) = known.filter(|known| known.is_doubtful) {
                    (known.version, known.is_doubtful) = (0, false);
                }
                return self.hear(now, *record, outside);
            }
            Watched::Same { remaining } => self.believe_longer(now, user, &remaining),
            Watched::Unknown => {
                if let Some(known) = self.book.as_mut().and_then(|book| book.known.get_mut(&user)) {
                    known.is_answered = true;
                }
                self.mend_part(now, user, outside);
            }
        }
        self.let_lapse(now, user, outside)
    }

    fn believe_longer(&mut self, now: Moment, user: UserId, remaining: &[(NodeName, Duration)]) {
        let Some(known) = self.book.as_mut().and_then(|book| book.known.get_mut(&user)) else { return };
        known.is_answered = true;
        for remote in &mut known.remotes {
            let said = remaining.iter().find(|(node, _)| *node == remote.node);
            // What has run out is believed no longer, however often it is said.
            if let Some((_, left)) = said.filter(|(_, left)| !left.is_zero()) {
                remote.until = remote.until.max(after(now, *left + OWN_WORD));
            }
        }
    }

    /// What is too old to be believed is believed no more.
    pub(super) fn let_lapse(&mut self, now: Moment, user: UserId, outside: &Outside) -> After {
        let Some(known) = self.book.as_mut().and_then(|book| book.known.get_mut(&user)) else {
            return After::default();
        };
        if !lapse(now, &mut known.remotes) {
            self.ask_again_later(now, user, outside);
            return After::default();
        }
        outside.counters.sharing.lost.increment();
        // The same version says more than is believed now: it is to be taken in again.
        known.version = known.version.saturating_sub(1);
        let mut effects = Vec::new();
        let kept = self.roster.remembered(user);
        let is_somewhere = !known.remotes.is_empty();
        match kept.filter(|_| is_somewhere) {
            None => self.roster.lose_elsewhere(now, user, &mut effects),
            Some(kept) => {
                let elsewhere = Elsewhere {
                    devices: devices(&known.remotes),
                    last_sign: known.remotes.iter().map(|remote| remote.last_sign).max(),
                    declaration: kept.declaration,
                    last_seen: kept.last_seen.filter(|_| kept.hidden_since.is_some()),
                    hidden_since: kept.hidden_since,
                    public_version: kept.public_version,
                    own_version: kept.own_version,
                    ..Elsewhere::nothing(user)
                };
                self.roster.hear_elsewhere(now, elsewhere, &mut effects);
            }
        }
        let after = self.carry_out(now, effects, outside);
        self.ask_again_later(now, user, outside);
        after
    }

    fn hear_elsewhere(&mut self, now: Moment, elsewhere: Elsewhere, outside: &Outside) -> After {
        let user = elsewhere.user;
        let had_part = self.roster.has_part(user);
        let mut effects: Vec<Effect> = Vec::new();
        self.roster.hear_elsewhere(now, elsewhere, &mut effects);
        // What lingered here has ended, since they came back elsewhere.
        if had_part && !self.roster.has_part(user) {
            self.mark(user, Mark { cause: Cause::Drop, device: None, declared: None }, outside);
        }
        self.carry_out(now, effects, outside)
    }

    /// Plans when to ask again: before anything that is believed is too old.
    pub(super) fn ask_again_later(&mut self, now: Moment, user: UserId, outside: &Outside) {
        let (Some(book), Some(sharing)) = (&mut self.book, &outside.sharing) else { return };
        book.sort_out(user);
        let Some(known) = book.known.get(&user) else { return };
        let settings = &sharing.settings;
        let at = match known.first_until() {
            None => after(now, settings.ask_absent),
            // A quarter of the time is left for asking, and for asking once more.
            Some(until) => {
                let left_ms = until.0.saturating_sub(now.0);
                Moment(now.0 + (left_ms - left_ms / 4)).min(after(now, settings.ask_present))
            }
        };
        // Somebody at whom nothing was heard is asked about soon.
        let at = if known.is_answered { at } else { after(now, Duration::from_secs(1)).min(at) };
        book.ask_at(user, at);
    }
}

/// When a device was silent for too long, its gateway says so, and that word takes its time.
const OWN_WORD: Duration = Duration::from_secs(2);

/// What other gateways say. What has run out is believed no longer than it was `before`.
pub(super) fn remotes(now: Moment, record: &Record, before: &[Remote], sharing: &Sharing) -> Vec<Remote> {
    let others = record.parts.iter().filter(|part| !sharing.is_own(&part.node));
    let believed_until = |part: &register::PartOf| match part.remaining.is_zero() {
        false => after(now, part.remaining + OWN_WORD),
        true => before.iter().find(|known| known.node == part.node).map_or(now, |known| known.until),
    };
    let remote = |part: &register::PartOf| Remote {
        node: part.node.clone(),
        devices: part.part.devices.clone(),
        last_sign: part.part.last_sign,
        until: believed_until(part),
    };
    others.map(remote).collect()
}

/// Takes out what is too old to be believed. Whether there was any.
pub(super) fn lapse(now: Moment, remotes: &mut Vec<Remote>) -> bool {
    let before = remotes.len();
    remotes.retain(|remote| remote.until > now);
    remotes.len() < before
}

fn devices(remotes: &[Remote]) -> Vec<presence::PartDevice> {
    remotes.iter().flat_map(|remote| remote.devices.iter().cloned()).collect()
}

/// What a record says of somebody, of which `remotes` are believed.
pub(super) fn elsewhere(now: Moment, record: &Record, remotes: &[Remote]) -> Elsewhere {
    Elsewhere {
        user: record.user,
        devices: devices(remotes),
        last_sign: remotes.iter().map(|remote| remote.last_sign).max(),
        pending_until: record.pending.map(|remaining| after(now, remaining)),
        declaration: record.declaration.clone(),
        last_seen: record.last_seen,
        hidden_since: record.hidden_since,
        public_version: record.public_version,
        own_version: record.own_version,
    }
}
