//! Who leeches how many torrents at once, so that a limit on it can be kept.
//!
//! A user's count is the number of torrents on which any of their clients leeches, over all shards. Whoever is about to
//! leech one more takes a slot: looking and taking are one step, so that of two who race for the last one only one gets
//! it. A slot is given back when the last of the user's leeching clients on that torrent completes, stops, falls silent
//! or is turned out.
//!
//! Whoever leeches a torrent already is never refused there: not for a heartbeat, not for a second client, and not
//! because a limit was lowered.
//!
//! # Cost
//!
//! Nothing while nobody is limited: counting begins with the first announce to which a user's limit applies, with one
//! pass over all peers, a shard at a time. From then on a heartbeat costs a comparison; only who joins, leaves or
//! changes sides touches the counts.
//!
//! # Deliberately absent
//!
//! Limits of other nodes' announces: what they let in counts here and is never refused. So with several nodes a limit
//! can be passed by as many as ask on different nodes before these have remote of each other.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::UserId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::announce::AnnounceError;

/// Enough that threads rarely meet: only who joins, leaves or changes sides comes here.
const PARTS: usize = 16;

/// How many may leech at once, as it applies to one announce. None means any number, zero means nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotLimits {
    /// Torrents that the user may leech at once, over all swarms.
    pub of_user: Option<u32>,
    /// Peers that may leech the torrent at once. Further clients of a user who leeches it already are let in.
    pub of_torrent: Option<u32>,
}

/// How many torrents each user leeches. Its locks are taken last, and nothing else is locked under them.
#[derive(Debug)]
pub(crate) struct LeechCounts {
    parts: Box<[Mutex<HashMap<UserId, u32, FixedState>>]>,
    hasher: FixedState,
    /// Whether every shard counts.
    is_counting: AtomicBool,
    /// Held by whoever makes them begin.
    beginning: Mutex<()>,
}

impl LeechCounts {
    pub(crate) fn new(hasher: FixedState) -> Self {
        let part = || Mutex::new(HashMap::with_hasher(hasher.clone()));
        LeechCounts {
            parts: (0..PARTS).map(|_| part()).collect(),
            hasher: hasher.clone(),
            is_counting: AtomicBool::new(false),
            beginning: Mutex::default(),
        }
    }

    /// Makes every shard count, once; `begin` is called with the locks of none held.
    pub(crate) fn start_once(&self, begin: impl FnOnce()) {
        if self.is_counting.load(Ordering::Acquire) {
            return;
        }
        let _beginning = self.beginning.lock();
        if !self.is_counting.load(Ordering::Acquire) {
            begin();
            self.is_counting.store(true, Ordering::Release);
        }
    }

    /// How many torrents a user leeches; zero while nobody counts.
    pub(crate) fn count_of(&self, user: UserId) -> u32 {
        self.part_of(user).lock().get(&user).copied().unwrap_or(0)
    }

    /// Takes a slot, if the limit leaves one.
    pub(crate) fn take(&self, user: UserId, limit: Option<u32>) -> Result<(), AnnounceError> {
        let mut part = self.part_of(user).lock();
        let taken = part.get(&user).copied().unwrap_or(0);
        match limit {
            Some(limit) if taken >= limit => Err(AnnounceError::TooManyLeeches { limit }),
            _ => {
                part.insert(user, taken + 1);
                Ok(())
            }
        }
    }

    /// Takes a slot whatever the limit: for what was let in elsewhere, or before anybody counted.
    pub(crate) fn take_unchecked(&self, user: UserId) {
        *self.part_of(user).lock().entry(user).or_insert(0) += 1;
    }

    /// Gives a slot back.
    pub(crate) fn give_back(&self, user: UserId) {
        let mut part = self.part_of(user).lock();
        match part.get_mut(&user) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(part.remove(&user)),
        }
    }

    fn part_of(&self, user: UserId) -> &Mutex<HashMap<UserId, u32, FixedState>> {
        // The tables use the lowest and the highest bits of the same hash.
        &self.parts[(self.hasher.hash_one(user) >> 32) as usize % PARTS]
    }
}
