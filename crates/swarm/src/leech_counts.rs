//! How many torrents each user leeches at once, for the limit on it.
//!
//! A user's count is the number of torrents on which any of their clients leeches, over all shards. An announce that
//! starts leeching takes a slot: checking and taking are one step, so that of two concurrent announces only one gets
//! the last slot. A slot is released when the last of the user's leeching clients on that torrent completes, stops,
//! expires or is removed.
//!
//! A user who leeches a torrent already is never refused there: not for a heartbeat, not for a second client, and not
//! because a limit was lowered.
//!
//! # Cost
//!
//! None while no user is limited: counting starts with the first announce to which a user's limit applies, with one
//! pass over all peers, shard by shard. Afterwards a heartbeat costs a comparison; only joining, leaving and switching
//! between leeching and seeding touch the counts.
//!
//! # Deliberately absent
//!
//! Limits for remote announces: they count here and are never refused. So with several nodes a limit can be exceeded by
//! announces to different nodes before replication.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::UserId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::announce::AnnounceError;

/// Enough to avoid contention: only joining, leaving and switching come here.
const PARTS: usize = 16;

/// Limits that apply to one announce. None means no limit, zero means no leeching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotLimits {
    /// Torrents that the user may leech at once, over all swarms.
    pub of_user: Option<u32>,
    /// Peers that may leech the torrent at once. Further clients of a user who leeches it already are admitted.
    pub of_torrent: Option<u32>,
}

/// Torrents that each user leeches. Its locks are taken last, and nothing else is locked under them.
#[derive(Debug)]
pub(crate) struct LeechCounts {
    parts: Box<[Mutex<HashMap<UserId, u32, FixedState>>]>,
    hasher: FixedState,
    /// Whether every shard counts.
    is_counting: AtomicBool,
    /// Held while counting starts.
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

    /// Starts counting in every shard, once; `begin` is called with no shard locked.
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

    /// Zero before counting starts.
    pub(crate) fn count_of(&self, user: UserId) -> u32 {
        self.part_of(user).lock().get(&user).copied().unwrap_or(0)
    }

    /// Takes a slot, if the limit allows it.
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

    /// Takes a slot regardless of the limit: for remote announces, and when counting starts.
    pub(crate) fn take_unchecked(&self, user: UserId) {
        *self.part_of(user).lock().entry(user).or_insert(0) += 1;
    }

    pub(crate) fn release(&self, user: UserId) {
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
