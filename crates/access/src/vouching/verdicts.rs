//! Answers that are remembered, each for its time, so many at the most.
//!
//! Read by every thread without a lock ([`Verdicts`]), written by one task ([`VerdictBook`]), which knows in which
//! order they came. When there is no more room the oldest answer goes; bad ones before good ones, so that whoever
//! invents passkeys by the million pushes out nobody but themselves.
//!
//! A good answer stays when its time is over, as long as there is room: it may be all that is left when nobody can be
//! asked.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::{Passkey, UnixTime, UserId};

use super::strangers::Strangers;

/// Who vouched for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voucher {
    Whitelist,
    Endpoint,
    /// The site's key `t:user:<passkey>`.
    SiteKey,
}

/// An answer: good if there is a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whose account it is, and who vouched for them.
    pub(super) vouched: Option<(UserId, Voucher)>,
    /// When to ask again.
    pub(super) until: UnixTime,
    /// Tells it from earlier answers about the same passkey.
    serial: u64,
}

impl Verdict {
    pub(super) fn is_fresh(&self, now: UnixTime) -> bool {
        now < self.until
    }
}

/// The answers, for readers.
#[derive(Debug, Default)]
pub(super) struct Verdicts(papaya::HashMap<Passkey, Verdict, foldhash::fast::RandomState>);

impl Verdicts {
    pub(super) fn get(&self, passkey: &Passkey) -> Option<Verdict> {
        self.0.pin().get(passkey).copied()
    }

    /// Ends the time of an answer.
    pub(super) fn expire(&self, passkey: &Passkey, now: UnixTime) {
        self.0.pin().update(*passkey, |verdict| Verdict { until: now.min(verdict.until), ..*verdict });
    }

    /// Forgets an answer, and tells which.
    pub(super) fn forget(&self, passkey: &Passkey) -> Option<Verdict> {
        self.0.pin().remove(passkey).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// All passkeys about which there is an answer.
    pub(super) fn passkeys(&self) -> Vec<Passkey> {
        self.0.pin().keys().copied().collect()
    }
}

/// The answers, for the one who writes them.
#[derive(Debug)]
pub(super) struct VerdictBook {
    strangers: Arc<Strangers>,
    entries_max: usize,
    good: Order,
    bad: Order,
    serial: u64,
}

/// Answers in the order in which they came. One that was replaced or forgotten since is void.
#[derive(Debug, Default)]
struct Order(VecDeque<(u64, Passkey)>);

impl VerdictBook {
    pub(super) fn new(strangers: Arc<Strangers>, entries_max: usize) -> Self {
        VerdictBook {
            strangers,
            entries_max: entries_max.max(1),
            good: Order::default(),
            bad: Order::default(),
            serial: 0,
        }
    }

    fn verdicts(&self) -> &Verdicts {
        self.strangers.verdicts()
    }

    pub(super) fn get(&self, passkey: &Passkey) -> Option<Verdict> {
        self.verdicts().get(passkey)
    }

    /// Notes down an answer.
    pub(super) fn write(&mut self, passkey: Passkey, vouched: Option<(UserId, Voucher)>, until: UnixTime) {
        self.serial += 1;
        let verdict = Verdict { vouched, until, serial: self.serial };
        self.verdicts().0.pin().insert(passkey, verdict);
        let order = if vouched.is_some() { &mut self.good } else { &mut self.bad };
        order.0.push_back((self.serial, passkey));
        while self.verdicts().len() > self.entries_max {
            if !self.evict_oldest() {
                break;
            }
        }
        self.drop_void();
        self.strangers.counters().cache_entries.set(self.verdicts().len());
    }

    /// Lets a good answer be asked for again, without forgetting whom it was about.
    pub(super) fn expire(&mut self, passkey: &Passkey, now: UnixTime) {
        let Some(verdict) = self.get(passkey).filter(|verdict| verdict.is_fresh(now)) else { return };
        if verdict.vouched.is_some() {
            self.write(*passkey, verdict.vouched, now);
        }
    }

    /// Forgets an answer, and tells which.
    pub(super) fn forget(&mut self, passkey: &Passkey) -> Option<Verdict> {
        let forgotten = self.verdicts().forget(passkey);
        self.strangers.counters().cache_entries.set(self.verdicts().len());
        forgotten
    }

    /// Forgets bad answers whose time is over.
    pub(super) fn forget_old(&mut self, now: UnixTime) {
        while let Some((serial, passkey)) = self.bad.0.front().copied() {
            match self.get(&passkey) {
                Some(verdict) if verdict.serial == serial && verdict.is_fresh(now) => break,
                Some(verdict) if verdict.serial == serial => drop(self.verdicts().forget(&passkey)),
                _ => {}
            }
            self.bad.0.pop_front();
        }
        self.strangers.counters().cache_entries.set(self.verdicts().len());
    }

    /// Takes out one answer; false if there is none to take.
    fn evict_oldest(&mut self) -> bool {
        loop {
            let oldest = self.bad.0.pop_front().or_else(|| self.good.0.pop_front());
            let Some((serial, passkey)) = oldest else { return false };
            if self.get(&passkey).is_some_and(|verdict| verdict.serial == serial) {
                self.verdicts().forget(&passkey);
                self.strangers.counters().cache_evictions.increment();
                return true;
            }
        }
    }

    /// Keeps the orders from growing by answers that were replaced.
    fn drop_void(&mut self) {
        let room = 2 * self.entries_max + 64;
        let verdicts = self.strangers.verdicts();
        for order in [&mut self.good, &mut self.bad] {
            if order.0.len() > room {
                order.0.retain(|(serial, passkey)| {
                    verdicts.get(passkey).is_some_and(|verdict| verdict.serial == *serial)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Seconds;

    use super::*;

    const NOW: UnixTime = UnixTime(1000);

    fn passkey(number: u64) -> Passkey {
        format!("{number:032x}").parse().expect("32 digits")
    }

    fn good() -> Option<(UserId, Voucher)> {
        UserId::new(7).map(|user| (user, Voucher::Whitelist))
    }

    fn book(entries_max: usize) -> VerdictBook {
        let (strangers, _) = Strangers::new(std::time::Duration::from_secs(1));
        VerdictBook::new(strangers, entries_max)
    }

    #[test]
    fn w4_bad_answers_make_room_before_good_ones() {
        let mut book = book(3);
        let until = NOW + Seconds(10);
        book.write(passkey(1), good(), until);
        book.write(passkey(2), None, until);
        book.write(passkey(3), good(), until);
        for number in 100..200 {
            book.write(passkey(number), None, until);
        }
        assert!(book.get(&passkey(1)).is_some() && book.get(&passkey(3)).is_some());
        assert!(book.get(&passkey(2)).is_none());
        assert_eq!(book.verdicts().len(), 3);
        book.write(passkey(4), good(), until);
        book.write(passkey(5), good(), until);
        assert!(book.get(&passkey(1)).is_none(), "the oldest of the good ones");
        assert_eq!(book.strangers.counters().cache_evictions.get(), 102);
    }

    #[test]
    fn an_answer_given_again_is_as_young_as_its_last_time() {
        let mut book = book(2);
        book.write(passkey(1), good(), NOW);
        book.write(passkey(2), good(), NOW);
        book.write(passkey(1), good(), NOW);
        book.write(passkey(3), good(), NOW);
        assert!(book.get(&passkey(1)).is_some());
        assert!(book.get(&passkey(2)).is_none());
    }

    #[test]
    fn the_same_answer_for_ever_takes_no_more_room() {
        let mut book = book(2);
        for _ in 0..10_000 {
            book.write(passkey(1), good(), NOW);
        }
        assert!(book.good.0.len() <= 2 * 2 + 64);
    }

    #[test]
    fn old_bad_answers_go_by_themselves_and_good_ones_stay() {
        let mut book = book(100);
        book.write(passkey(1), good(), NOW);
        book.write(passkey(2), None, NOW);
        book.write(passkey(3), None, NOW + Seconds(5));
        book.forget_old(NOW + Seconds(1));
        let known = [1, 2, 3].map(|number| book.get(&passkey(number)).is_some());
        assert_eq!(known, [true, false, true]);
    }
}
