//! Additions to and removals from the whitelist that follow from endpoint answers.
//!
//! - One write at a time, so that Redis or the database applies them in this order.
//! - An addition is tracked until the change feed is known up to ten seconds later. A removal that the feed reports in that
//!   time may have happened before the addition: the passkey is removed again.
//! - If the site adds the passkey again after that, it is added again here as well: otherwise this removal might be applied
//!   last.
//! - A passkey that cannot be tracked, because the table is full, is not added.
//!
//! Times are durations since the verifier's start.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use domain::Passkey;

/// Passkeys queued for addition or tracked; also the bound of the queue for removal.
const PASSKEYS_MAX: usize = 10_000;
/// Passkeys per write.
const BATCH_MAX: usize = 500;
/// A feed entry may follow its change by this much.
const FEED_DELAY_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WhitelistWrite {
    Add(Vec<Passkey>),
    Remove(Vec<Passkey>),
}

/// Passkeys with the time of their write.
type Recent = HashMap<Passkey, Duration, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
pub(super) struct WhitelistWrites {
    to_add: VecDeque<Passkey>,
    to_remove: BTreeSet<Passkey>,
    in_flight: Option<WhitelistWrite>,
    added: Recent,
    removed: Recent,
}

impl WhitelistWrites {
    /// Queues an addition; false if there is no room.
    pub(super) fn add(&mut self, passkey: Passkey) -> bool {
        let has_room = self.to_add.len() + self.added.len() < PASSKEYS_MAX;
        if has_room {
            self.to_add.push_back(passkey);
        }
        has_room
    }

    /// Queues a removal; false if there is no room.
    pub(super) fn remove(&mut self, passkey: Passkey) -> bool {
        self.to_add.retain(|queued| *queued != passkey);
        self.added.remove(&passkey);
        let has_room = self.to_remove.len() < PASSKEYS_MAX || self.to_remove.contains(&passkey);
        if has_room {
            self.to_remove.insert(passkey);
        }
        has_room
    }

    /// The next write, unless one is in flight. Removals come first.
    pub(super) fn next(&mut self) -> Option<WhitelistWrite> {
        if self.in_flight.is_some() {
            return None;
        }
        let to_remove: Vec<Passkey> =
            std::iter::from_fn(|| self.to_remove.pop_first()).take(BATCH_MAX).collect();
        self.in_flight = if to_remove.is_empty() {
            let count = self.to_add.len().min(BATCH_MAX);
            (count > 0).then(|| WhitelistWrite::Add(self.to_add.drain(..count).collect()))
        } else {
            Some(WhitelistWrite::Remove(to_remove))
        };
        self.in_flight.clone()
    }

    /// Ends the write in flight. A failed one is tracked as well, since it may have been applied.
    pub(super) fn end(&mut self, now: Duration) -> Option<WhitelistWrite> {
        let ended = self.in_flight.take();
        match &ended {
            Some(WhitelistWrite::Add(passkeys)) => {
                self.added.extend(passkeys.iter().map(|passkey| (*passkey, now)));
            }
            Some(WhitelistWrite::Remove(passkeys)) => {
                let room = PASSKEYS_MAX.saturating_sub(self.removed.len());
                self.removed.extend(passkeys.iter().take(room).map(|passkey| (*passkey, now)));
            }
            None => {}
        }
        ended
    }

    /// The feed reports a removal. False if it must be repeated and there is no room for that.
    pub(super) fn on_removed(&mut self, passkey: &Passkey) -> bool {
        self.to_add.retain(|queued| queued != passkey);
        let may_be_back = self.added.contains_key(passkey) || self.adds_in_flight().contains(passkey);
        !may_be_back || self.remove(*passkey)
    }

    /// The feed reports an addition.
    pub(super) fn on_added(&mut self, passkey: &Passkey) {
        if self.to_remove.remove(passkey) {
            return;
        }
        if self.removed.remove(passkey).is_some() || self.is_being_removed(passkey) {
            self.add(*passkey);
        }
    }

    /// The feed reports a replacement: drops queued additions, and returns recent ones, which the new whitelist may not
    /// contain.
    pub(super) fn on_replaced(&mut self) -> Vec<Passkey> {
        self.to_add.clear();
        let mut recent: Vec<Passkey> = self.adds_in_flight().to_vec();
        recent.extend(self.added.keys());
        recent
    }

    /// The feed is known up to `time`: stops tracking older writes.
    pub(super) fn on_feed_read(&mut self, time: Duration) {
        let is_recent = |written: &Duration| *written + FEED_DELAY_MAX >= time;
        self.added.retain(|_, written| is_recent(written));
        self.removed.retain(|_, written| is_recent(written));
    }

    /// Whether a removal is queued or in flight, so that a lookup that finds the passkey does not count.
    pub(super) fn is_being_removed(&self, passkey: &Passkey) -> bool {
        let in_flight =
            matches!(&self.in_flight, Some(WhitelistWrite::Remove(removing)) if removing.contains(passkey));
        in_flight || self.to_remove.contains(passkey)
    }

    fn adds_in_flight(&self) -> &[Passkey] {
        match &self.in_flight {
            Some(WhitelistWrite::Add(passkeys)) => passkeys,
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

    fn written(numbers: &[u64]) -> WhitelistWrites {
        let mut writes = WhitelistWrites::default();
        assert!(numbers.iter().all(|number| writes.add(passkey(*number))));
        assert!(writes.next().is_some());
        writes.end(at(1));
        writes
    }

    #[test]
    fn w4_a_removal_cancels_queued_additions_and_undoes_recent_ones() {
        let mut writes = written(&[1]);
        writes.add(passkey(2));
        assert_eq!(writes.next(), Some(WhitelistWrite::Add(vec![passkey(2)])));
        writes.add(passkey(3));
        for number in 1..=4 {
            assert!(writes.on_removed(&passkey(number)));
            assert!(writes.on_removed(&passkey(number)), "a repeated report changes nothing");
        }
        assert_eq!(writes.next(), None, "one write at a time");
        assert!(writes.is_being_removed(&passkey(1)) && !writes.is_being_removed(&passkey(3)));
        writes.end(at(2));
        assert_eq!(writes.next(), Some(WhitelistWrite::Remove(vec![passkey(1), passkey(2)])));
        assert!(writes.is_being_removed(&passkey(1)));
        writes.end(at(3));
        assert!(!writes.is_being_removed(&passkey(1)));
        assert_eq!(writes.next(), None);
    }

    #[test]
    fn w4_additions_are_tracked_until_the_feed_is_known_ten_seconds_further() {
        let mut writes = written(&[1, 2]);
        writes.on_feed_read(at(11));
        writes.on_removed(&passkey(1));
        writes.on_feed_read(at(12));
        writes.on_removed(&passkey(2));
        assert_eq!(writes.next(), Some(WhitelistWrite::Remove(vec![passkey(1)])));
    }

    #[test]
    fn w4_a_passkey_that_is_added_again_is_in_at_the_end() {
        let mut writes = written(&[1]);
        writes.on_removed(&passkey(1));
        writes.on_added(&passkey(1));
        assert_eq!(writes.next(), None, "the removal had not begun");
        let mut writes = written(&[1, 2]);
        writes.on_removed(&passkey(1));
        assert!(writes.next().is_some());
        writes.on_added(&passkey(1));
        writes.end(at(2));
        assert_eq!(writes.next(), Some(WhitelistWrite::Add(vec![passkey(1)])));
        writes.end(at(2));
        writes.on_removed(&passkey(2));
        writes.next();
        writes.end(at(3));
        writes.on_added(&passkey(2));
        assert_eq!(writes.next(), Some(WhitelistWrite::Add(vec![passkey(2)])));
    }

    #[test]
    fn w4_a_replacement_cancels_queued_additions_and_returns_recent_ones() {
        let mut writes = written(&[1]);
        writes.add(passkey(2));
        writes.next();
        writes.add(passkey(3));
        let mut recent = writes.on_replaced();
        recent.sort();
        assert_eq!(recent, [passkey(1), passkey(2)]);
        writes.end(at(2));
        assert_eq!(writes.next(), None, "queued additions are cancelled");
    }

    #[test]
    fn w4_a_passkey_that_cannot_be_tracked_is_not_added() {
        let mut writes = WhitelistWrites::default();
        let room = (0..).take_while(|number| writes.add(passkey(*number))).count();
        while writes.next().is_some() {
            writes.end(at(1));
        }
        assert!(room == PASSKEYS_MAX && !writes.add(passkey(99_999)));
        writes.on_feed_read(at(12));
        assert!(writes.add(passkey(99_999)));
    }
}
