//! Seeding and leeching counts beside the status.
//!
//! # Guarantees
//!
//! - A user in memory is read soon after they were loaded, soon after a notice of a change, and in a slow periodic
//!   pass: what a notice missed is corrected by the pass.
//! - Reads are batches of bounded size at a bounded rate. Notices beyond the bound are dropped and counted; the pass
//!   reads those users later.
//! - A failed read leaves the counts unchanged, and is counted.
//!
//! # Deliberately absent
//!
//! The source of the counts: the binary implements [`TorrentCountSource`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::UserId;
use hashbrown::HashSet;
use parking_lot::Mutex;
use presence::Input;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::hub::users::{SHARDS, Users};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorrentCount {
    pub user: UserId,
    pub seeding: u32,
    pub leeching: u32,
}

/// The counts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seeding and leeching counts cannot be read: {0}")]
pub struct TorrentCountError(pub String);

/// Source of the counts.
#[async_trait]
pub trait TorrentCountSource: Send + Sync + 'static {
    /// Users missing in the result keep their counts.
    async fn counts(&self, users: &[UserId]) -> Result<Vec<TorrentCount>, TorrentCountError>;
}

/// A source without counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTorrentCounts;

#[async_trait]
impl TorrentCountSource for NoTorrentCounts {
    async fn counts(&self, _users: &[UserId]) -> Result<Vec<TorrentCount>, TorrentCountError> {
        Ok(Vec::new())
    }
}

/// Users per read.
const BATCH_USERS_MAX: usize = 256;
/// Duration of a pass over all users in memory, or longer with very many.
const ROTATION: Duration = Duration::from_secs(30);
/// After each read: with [`BATCH_USERS_MAX`], the bound of the rate.
const PAUSE: Duration = Duration::from_millis(100);
const WAITING_MAX: usize = 20_000;

/// Users to read soon.
#[derive(Default)]
pub(crate) struct TorrentCountQueue {
    users: Mutex<HashSet<UserId, foldhash::fast::RandomState>>,
    some: Notify,
}

impl TorrentCountQueue {
    /// Returns how many did not fit.
    pub(crate) fn add(&self, users: impl IntoIterator<Item = UserId>) -> u64 {
        let mut waiting = self.users.lock();
        let mut dropped = 0;
        for user in users {
            if waiting.len() < WAITING_MAX || waiting.contains(&user) {
                waiting.insert(user);
            } else {
                dropped += 1;
            }
        }
        drop(waiting);
        self.some.notify_one();
        dropped
    }

    fn take(&self) -> Vec<UserId> {
        let mut waiting = self.users.lock();
        let batch: Vec<UserId> = waiting.iter().copied().take(BATCH_USERS_MAX).collect();
        for user in &batch {
            waiting.remove(user);
        }
        batch
    }
}

/// Reads the counts of users in memory.
pub(crate) struct TorrentCountReader {
    pub(crate) users: Arc<Users>,
    pub(crate) source: Arc<dyn TorrentCountSource>,
}

impl TorrentCountReader {
    pub(crate) async fn run(self) {
        let queue = &self.users.context.torrent_counts;
        let mut rotation = tokio::time::interval(ROTATION / SHARDS as u32);
        rotation.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shards = self.users.shards().cycle();
        loop {
            tokio::select! {
                () = queue.some.notified() => {}
                _ = rotation.tick() => {
                    let Some(shard) = shards.next() else { return };
                    let users: Vec<UserId> = shard.lock().users.keys().copied().collect();
                    for batch in users.chunks(BATCH_USERS_MAX) {
                        self.read(batch).await;
                    }
                }
            }
            loop {
                let batch = queue.take();
                if batch.is_empty() {
                    break;
                }
                self.read(&batch).await;
            }
        }
    }

    async fn read(&self, users: &[UserId]) {
        let counters = &self.users.context.counters.hub;
        counters.torrent_counts_requested.add(users.len() as u64);
        match self.source.counts(users).await {
            Ok(counts) => {
                for TorrentCount { user, seeding, leeching } in counts {
                    self.users.apply_input(user, Input::TorrentCounts { seeding, leeching });
                }
            }
            Err(error) => {
                counters.torrent_count_failures.increment();
                tracing::debug!(%error, "cannot read seeding and leeching counts; they stay unchanged");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(numbers: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = UserId> {
        numbers.filter_map(UserId::new)
    }

    #[test]
    fn notices_are_bounded_and_a_waiting_user_takes_no_further_place() {
        let waiting = TorrentCountQueue::default();
        assert_eq!(waiting.add(users(1..=WAITING_MAX as u64)), 0);
        assert_eq!(waiting.add(users(1..=10)), 0);
        assert_eq!(waiting.add(users(100_001..=100_007)), 7);
        assert_eq!(waiting.take().len(), BATCH_USERS_MAX);
        assert_eq!(waiting.add(users(100_001..=100_007)), 0);
    }
}
