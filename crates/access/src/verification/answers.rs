//! The cache of answers. Any thread reads it without a lock ([`AnswerCache`]); the verifier alone writes it
//! ([`AnswerWriter`]).
//!
//! When the cache is full, the oldest negative answer is evicted, and the oldest positive one only if there is no
//! negative one: a flood of invented passkeys evicts nothing but its own answers. An expired positive answer stays while
//! there is room: it may be used while its source is unavailable.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::{Passkey, UnixTime, UserId};

use super::unknown_passkeys::UnknownPasskeys;

/// Where a positive answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Whitelist,
    Endpoint,
    /// The site's key `t:user:<passkey>`.
    RedisKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedAnswer {
    /// The account and the source of a positive answer; none for a negative one.
    pub(super) verified: Option<(UserId, Source)>,
    pub(super) expires_at: UnixTime,
    /// Distinguishes it from earlier answers about the same passkey.
    serial: u64,
}

impl CachedAnswer {
    pub(super) fn is_fresh(&self, now: UnixTime) -> bool {
        now < self.expires_at
    }

    pub(super) fn account(&self) -> Option<UserId> {
        self.verified.map(|(user, _)| user)
    }
}

#[derive(Debug, Default)]
pub(super) struct AnswerCache(papaya::HashMap<Passkey, CachedAnswer, foldhash::fast::RandomState>);

impl AnswerCache {
    pub(super) fn get(&self, passkey: &Passkey) -> Option<CachedAnswer> {
        self.0.pin().get(passkey).copied()
    }

    pub(super) fn expire(&self, passkey: &Passkey, now: UnixTime) {
        self.0
            .pin()
            .update(*passkey, |answer| CachedAnswer { expires_at: now.min(answer.expires_at), ..*answer });
    }

    pub(super) fn remove(&self, passkey: &Passkey) -> Option<CachedAnswer> {
        self.0.pin().remove(passkey).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn passkeys(&self) -> Vec<Passkey> {
        self.0.pin().keys().copied().collect()
    }
}

#[derive(Debug)]
pub(super) struct AnswerWriter {
    unknown_passkeys: Arc<UnknownPasskeys>,
    entries_max: usize,
    positive: InsertionOrder,
    negative: InsertionOrder,
    serial: u64,
}

/// Serials and passkeys, oldest first. An item whose serial is no longer that of the cached answer is void.
type InsertionOrder = VecDeque<(u64, Passkey)>;

impl AnswerWriter {
    pub(super) fn new(unknown_passkeys: Arc<UnknownPasskeys>, entries_max: usize) -> Self {
        AnswerWriter {
            unknown_passkeys,
            entries_max: entries_max.max(1),
            positive: InsertionOrder::new(),
            negative: InsertionOrder::new(),
            serial: 0,
        }
    }

    fn cache(&self) -> &AnswerCache {
        self.unknown_passkeys.answers()
    }

    pub(super) fn get(&self, passkey: &Passkey) -> Option<CachedAnswer> {
        self.cache().get(passkey)
    }

    pub(super) fn insert(
        &mut self,
        passkey: Passkey,
        verified: Option<(UserId, Source)>,
        expires_at: UnixTime,
    ) {
        self.serial += 1;
        let answer = CachedAnswer { verified, expires_at, serial: self.serial };
        self.cache().0.pin().insert(passkey, answer);
        let order = if verified.is_some() { &mut self.positive } else { &mut self.negative };
        order.push_back((self.serial, passkey));
        while self.cache().len() > self.entries_max {
            if !self.evict_oldest() {
                break;
            }
        }
        self.drop_void();
        self.update_gauge();
    }

    /// Expires a fresh positive answer; its account stays cached.
    pub(super) fn expire(&mut self, passkey: &Passkey, now: UnixTime) {
        let Some(answer) = self.get(passkey).filter(|answer| answer.is_fresh(now)) else { return };
        if answer.verified.is_some() {
            self.insert(*passkey, answer.verified, now);
        }
    }

    pub(super) fn remove(&mut self, passkey: &Passkey) -> Option<CachedAnswer> {
        let removed = self.cache().remove(passkey);
        self.update_gauge();
        removed
    }

    pub(super) fn remove_expired_negative(&mut self, now: UnixTime) {
        while let Some((serial, passkey)) = self.negative.front().copied() {
            match self.get(&passkey) {
                Some(answer) if answer.serial == serial && answer.is_fresh(now) => break,
                Some(answer) if answer.serial == serial => drop(self.cache().remove(&passkey)),
                _ => {}
            }
            self.negative.pop_front();
        }
        self.update_gauge();
    }

    fn update_gauge(&self) {
        self.unknown_passkeys.counters().cache_entries.set(self.cache().len());
    }

    /// False if there is nothing to evict.
    fn evict_oldest(&mut self) -> bool {
        loop {
            let oldest = self.negative.pop_front().or_else(|| self.positive.pop_front());
            let Some((serial, passkey)) = oldest else { return false };
            if self.get(&passkey).is_some_and(|answer| answer.serial == serial) {
                self.cache().remove(&passkey);
                self.unknown_passkeys.counters().cache_evictions.increment();
                return true;
            }
        }
    }

    /// Bounds the insertion orders, to which every replaced answer adds a void item.
    fn drop_void(&mut self) {
        let room = 2 * self.entries_max + 64;
        let cache = self.unknown_passkeys.answers();
        for order in [&mut self.positive, &mut self.negative] {
            if order.len() > room {
                order.retain(|(serial, passkey)| {
                    cache.get(passkey).is_some_and(|answer| answer.serial == *serial)
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

    fn positive() -> Option<(UserId, Source)> {
        UserId::new(7).map(|user| (user, Source::Whitelist))
    }

    fn writer(entries_max: usize) -> AnswerWriter {
        let (unknown_passkeys, _) = UnknownPasskeys::new(std::time::Duration::from_secs(1));
        AnswerWriter::new(unknown_passkeys, entries_max)
    }

    #[test]
    fn w4_negative_answers_are_evicted_before_positive_ones() {
        let mut writer = writer(3);
        let expires_at = NOW + Seconds(10);
        writer.insert(passkey(1), positive(), expires_at);
        writer.insert(passkey(2), None, expires_at);
        writer.insert(passkey(3), positive(), expires_at);
        for number in 100..200 {
            writer.insert(passkey(number), None, expires_at);
        }
        assert!(writer.get(&passkey(1)).is_some() && writer.get(&passkey(3)).is_some());
        assert!(writer.get(&passkey(2)).is_none());
        assert_eq!(writer.cache().len(), 3);
        writer.insert(passkey(4), positive(), expires_at);
        writer.insert(passkey(5), positive(), expires_at);
        assert!(writer.get(&passkey(1)).is_none(), "the oldest positive answer");
        assert_eq!(writer.unknown_passkeys.counters().cache_evictions.get(), 102);
    }

    #[test]
    fn a_replaced_answer_counts_as_new_for_eviction() {
        let mut writer = writer(2);
        writer.insert(passkey(1), positive(), NOW);
        writer.insert(passkey(2), positive(), NOW);
        writer.insert(passkey(1), positive(), NOW);
        writer.insert(passkey(3), positive(), NOW);
        assert!(writer.get(&passkey(1)).is_some());
        assert!(writer.get(&passkey(2)).is_none());
    }

    #[test]
    fn replacing_one_answer_repeatedly_uses_bounded_memory() {
        let mut writer = writer(2);
        for _ in 0..10_000 {
            writer.insert(passkey(1), positive(), NOW);
        }
        assert!(writer.positive.len() <= 2 * 2 + 64);
    }

    #[test]
    fn expired_negative_answers_are_removed_and_positive_ones_stay() {
        let mut writer = writer(100);
        writer.insert(passkey(1), positive(), NOW);
        writer.insert(passkey(2), None, NOW);
        writer.insert(passkey(3), None, NOW + Seconds(5));
        writer.remove_expired_negative(NOW + Seconds(1));
        let cached = [1, 2, 3].map(|number| writer.get(&passkey(number)).is_some());
        assert_eq!(cached, [true, false, true]);
    }
}
