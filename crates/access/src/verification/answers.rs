//! Cached answers. Any thread reads them without a lock; the verifier alone writes them.
//!
//! When the cache is full, the oldest negative answers are evicted, and the oldest positive ones only if there are too few
//! negative ones: a flood of invented passkeys evicts nothing but its own answers. An expired positive answer stays while
//! there is room: it may be used while its source is unavailable.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Passkey, UnixTime, UserId};

/// One of this many answers is evicted at a time, because the search for the oldest reads all.
const EVICTED_SHARE: usize = 16;

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
    /// Rises with each insertion.
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
pub(super) struct AnswerCache {
    answers: papaya::HashMap<Passkey, CachedAnswer, foldhash::fast::RandomState>,
    serial: AtomicU64,
}

impl AnswerCache {
    pub(super) fn get(&self, passkey: &Passkey) -> Option<CachedAnswer> {
        self.answers.pin().get(passkey).copied()
    }

    /// Returns how many answers were evicted.
    pub(super) fn insert(
        &self,
        passkey: Passkey,
        verified: Option<(UserId, Source)>,
        expires_at: UnixTime,
        entries_max: usize,
    ) -> usize {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        self.answers.pin().insert(passkey, CachedAnswer { verified, expires_at, serial });
        if self.len() > entries_max { self.evict(entries_max / EVICTED_SHARE + 1) } else { 0 }
    }

    fn evict(&self, count: usize) -> usize {
        let answers = self.answers.pin();
        let mut order: Vec<(bool, u64, Passkey)> = answers
            .iter()
            .map(|(passkey, answer)| (answer.verified.is_some(), answer.serial, *passkey))
            .collect();
        let count = count.min(order.len());
        if count < order.len() {
            order.select_nth_unstable(count);
        }
        order[..count].iter().filter(|(_, _, passkey)| answers.remove(passkey).is_some()).count()
    }

    /// The account of a positive answer stays cached.
    pub(super) fn expire(&self, passkey: &Passkey, now: UnixTime) {
        let expire =
            |answer: &CachedAnswer| CachedAnswer { expires_at: now.min(answer.expires_at), ..*answer };
        self.answers.pin().update(*passkey, expire);
    }

    pub(super) fn remove(&self, passkey: &Passkey) -> Option<CachedAnswer> {
        self.answers.pin().remove(passkey).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn passkeys(&self) -> Vec<Passkey> {
        self.answers.pin().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: UnixTime = UnixTime(1000);

    fn passkey(number: u64) -> Passkey {
        format!("{number:032x}").parse().expect("32 digits")
    }

    fn positive() -> Option<(UserId, Source)> {
        UserId::new(7).map(|user| (user, Source::Whitelist))
    }

    #[test]
    fn w4_negative_answers_are_evicted_before_positive_ones() {
        let cache = AnswerCache::default();
        let mut evicted = 0;
        let mut insert = |number, verified| evicted += cache.insert(passkey(number), verified, LATER, 3);
        insert(1, positive());
        insert(2, None);
        insert(3, positive());
        (100..200).for_each(|number| insert(number, None));
        let has = |number| cache.get(&passkey(number)).is_some();
        assert_eq!((has(1), has(2), has(3), cache.len()), (true, false, true, 3));
        insert(4, positive());
        insert(5, positive());
        assert!(!has(1), "the oldest positive answer");
        assert_eq!(evicted, 102);
    }

    #[test]
    fn a_replaced_answer_counts_as_new_for_eviction() {
        let cache = AnswerCache::default();
        for number in [1, 2, 1, 3] {
            cache.insert(passkey(number), positive(), LATER, 2);
        }
        assert!(cache.get(&passkey(1)).is_some() && cache.get(&passkey(2)).is_none());
    }

    #[test]
    fn a_share_of_a_large_cache_is_evicted_at_once_oldest_first() {
        let cache = AnswerCache::default();
        for number in 0..1600 {
            assert_eq!(cache.insert(passkey(number), None, LATER, 1600), 0);
        }
        assert_eq!(cache.insert(passkey(9999), None, LATER, 1600), 101);
        assert!(cache.get(&passkey(100)).is_none() && cache.get(&passkey(101)).is_some());
        assert_eq!(cache.len(), 1500);
    }
}
