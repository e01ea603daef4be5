//! Which passkeys are written to the whitelist because the endpoint vouched for them, and which are taken out again
//! because a change of the whitelist overtook the writing.
//!
//! # Guarantees
//!
//! - One errand at a time, so that what we put in and take out of the whitelist happens in this order.
//! - What was written stays under watch until the news of a while later is known. A removal that is heard of meanwhile
//!   may have come before the writing: the passkey is taken out again.
//! - Whoever is put in again by the site after that is put in again by us, too, or our removal might be the last word.
//! - Bounded: where there is no room to watch a passkey it is not written. The endpoint is asked again instead.
//!
//! Time is what has passed since some start, and comes in as an argument.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use domain::Passkey;

/// Passkeys that may wait to be written or be under watch; as many may wait to be taken out.
const PASSKEYS_MAX: usize = 10_000;
/// Passkeys in one errand.
const ERRAND_MAX: usize = 500;
/// How old the news must be at least before a written passkey is no longer watched: whoever removes one tells of it a
/// little later.
const WATCHED_FOR: Duration = Duration::from_secs(10);

/// Something to be done at the whitelist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    Add(Vec<Passkey>),
    Remove(Vec<Passkey>),
}

/// Passkeys, and when something was done with them.
type Lately = HashMap<Passkey, Duration, foldhash::fast::RandomState>;

/// What is to be written and taken out, and what was lately.
#[derive(Debug, Default)]
pub(super) struct WriteBacks {
    to_add: VecDeque<Passkey>,
    to_remove: BTreeSet<Passkey>,
    under_way: Option<Errand>,
    added: Lately,
    removed: Lately,
}

impl WriteBacks {
    /// Asks for a passkey to be written. False if there is no room.
    pub(super) fn add(&mut self, passkey: Passkey) -> bool {
        let has_room = self.to_add.len() + self.added.len() < PASSKEYS_MAX;
        if has_room {
            self.to_add.push_back(passkey);
        }
        has_room
    }

    /// Asks for a passkey to be taken out. False if there is no room.
    pub(super) fn remove(&mut self, passkey: Passkey) -> bool {
        self.to_add.retain(|waiting| *waiting != passkey);
        self.added.remove(&passkey);
        let has_room = self.to_remove.len() < PASSKEYS_MAX || self.to_remove.contains(&passkey);
        if has_room {
            self.to_remove.insert(passkey);
        }
        has_room
    }

    /// The next errand, unless one is under way. What must go goes first.
    pub(super) fn next(&mut self) -> Option<Errand> {
        if self.under_way.is_some() {
            return None;
        }
        let to_remove: Vec<Passkey> =
            std::iter::from_fn(|| self.to_remove.pop_first()).take(ERRAND_MAX).collect();
        self.under_way = if to_remove.is_empty() {
            let count = self.to_add.len().min(ERRAND_MAX);
            (count > 0).then(|| Errand::Add(self.to_add.drain(..count).collect()))
        } else {
            Some(Errand::Remove(to_remove))
        };
        self.under_way.clone()
    }

    /// The errand has ended, well or not: one that failed may have been done all the same.
    pub(super) fn end(&mut self, now: Duration) -> Option<Errand> {
        let ended = self.under_way.take();
        match &ended {
            Some(Errand::Add(passkeys)) => self.added.extend(passkeys.iter().map(|one| (*one, now))),
            Some(Errand::Remove(passkeys)) => {
                let room = PASSKEYS_MAX.saturating_sub(self.removed.len());
                self.removed.extend(passkeys.iter().take(room).map(|one| (*one, now)));
            }
            None => {}
        }
        ended
    }

    /// Somebody took a passkey out. False if it must be taken out again and there is no room for that.
    pub(super) fn hear_removal(&mut self, passkey: &Passkey) -> bool {
        self.to_add.retain(|waiting| waiting != passkey);
        let may_be_back = self.added.contains_key(passkey) || self.adds_now().contains(passkey);
        !may_be_back || self.remove(*passkey)
    }

    /// Somebody put a passkey in.
    pub(super) fn hear_addition(&mut self, passkey: &Passkey) {
        if self.to_remove.remove(passkey) {
            return;
        }
        if self.removed.remove(passkey).is_some() || self.is_leaving(passkey) {
            self.add(*passkey);
        }
    }

    /// All was replaced: nothing is written that was to be, and what was written lately may be what the new list left
    /// out. Tells whom that concerns.
    pub(super) fn hear_replacement(&mut self) -> Vec<Passkey> {
        self.to_add.clear();
        let mut concerned: Vec<Passkey> = self.adds_now().to_vec();
        concerned.extend(self.added.keys());
        concerned
    }

    /// All that happened up to `moment` is known, and most that happened a little earlier was told by then.
    pub(super) fn know_news_until(&mut self, moment: Duration) {
        let is_young = |when: &Duration| *when + WATCHED_FOR >= moment;
        self.added.retain(|_, when| is_young(when));
        self.removed.retain(|_, when| is_young(when));
    }

    /// Whether a passkey is about to be taken out: that it is still in means nothing.
    pub(super) fn is_leaving(&self, passkey: &Passkey) -> bool {
        let leaves_now = matches!(&self.under_way, Some(Errand::Remove(going)) if going.contains(passkey));
        leaves_now || self.to_remove.contains(passkey)
    }

    /// What is being written.
    fn adds_now(&self) -> &[Passkey] {
        match &self.under_way {
            Some(Errand::Add(passkeys)) => passkeys,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn passkey(number: u64) -> Passkey {
        format!("{number:032x}").parse().expect("32 digits")
    }

    fn written(numbers: &[u64]) -> WriteBacks {
        let mut write_backs = WriteBacks::default();
        assert!(numbers.iter().all(|number| write_backs.add(passkey(*number))));
        assert!(write_backs.next().is_some());
        write_backs.end(at(1));
        write_backs
    }

    #[test]
    fn w4_a_removal_stops_what_waits_and_undoes_what_is_under_way_or_was_written() {
        let mut write_backs = written(&[1]);
        write_backs.add(passkey(2));
        assert_eq!(write_backs.next(), Some(Errand::Add(vec![passkey(2)])));
        write_backs.add(passkey(3));
        for number in 1..=4 {
            assert!(write_backs.hear_removal(&passkey(number)));
            assert!(write_backs.hear_removal(&passkey(number)), "told twice is told once");
        }
        assert_eq!(write_backs.next(), None, "one errand at a time");
        assert!(write_backs.is_leaving(&passkey(1)) && !write_backs.is_leaving(&passkey(3)));
        write_backs.end(at(2));
        assert_eq!(write_backs.next(), Some(Errand::Remove(vec![passkey(1), passkey(2)])));
        assert!(write_backs.is_leaving(&passkey(1)));
        write_backs.end(at(3));
        assert!(!write_backs.is_leaving(&passkey(1)));
        assert_eq!(write_backs.next(), None);
    }

    #[test]
    fn w4_what_was_written_is_watched_until_later_news_is_known() {
        let mut write_backs = written(&[1, 2]);
        write_backs.know_news_until(at(11));
        write_backs.hear_removal(&passkey(1));
        write_backs.know_news_until(at(12));
        write_backs.hear_removal(&passkey(2));
        assert_eq!(write_backs.next(), Some(Errand::Remove(vec![passkey(1)])));
    }

    #[test]
    fn w4_whoever_is_put_in_again_is_in_at_the_end() {
        let mut write_backs = written(&[1]);
        write_backs.hear_removal(&passkey(1));
        write_backs.hear_addition(&passkey(1));
        assert_eq!(write_backs.next(), None, "it was still in");
        let mut write_backs = written(&[1, 2]);
        write_backs.hear_removal(&passkey(1));
        assert!(write_backs.next().is_some());
        write_backs.hear_addition(&passkey(1));
        write_backs.end(at(2));
        assert_eq!(write_backs.next(), Some(Errand::Add(vec![passkey(1)])));
        write_backs.end(at(2));
        write_backs.hear_removal(&passkey(2));
        write_backs.next();
        write_backs.end(at(3));
        write_backs.hear_addition(&passkey(2));
        assert_eq!(write_backs.next(), Some(Errand::Add(vec![passkey(2)])));
    }

    #[test]
    fn w4_a_replacement_stops_what_waits_and_concerns_what_was_written() {
        let mut write_backs = written(&[1]);
        write_backs.add(passkey(2));
        write_backs.next();
        write_backs.add(passkey(3));
        let mut concerned = write_backs.hear_replacement();
        concerned.sort();
        assert_eq!(concerned, [passkey(1), passkey(2)]);
        write_backs.end(at(2));
        assert_eq!(write_backs.next(), None, "what waited is not written");
    }

    #[test]
    fn w4_what_cannot_be_watched_is_not_written() {
        let mut write_backs = WriteBacks::default();
        let room = (0..).take_while(|number| write_backs.add(passkey(*number))).count();
        while write_backs.next().is_some() {
            write_backs.end(at(1));
        }
        assert!(room == PASSKEYS_MAX && !write_backs.add(passkey(99_999)));
        write_backs.know_news_until(at(12));
        assert!(write_backs.add(passkey(99_999)));
    }
}
