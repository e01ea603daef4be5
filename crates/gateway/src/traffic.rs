//! What people's torrent clients do, beside their status: how much they seed and leech.
//!
//! # Guarantees
//!
//! - Somebody who is here or watched is asked about soon after they came into memory, soon after
//!   [`Traffic::changed`], and in a slow rotation in any case: what a notice missed is right after a turn of it.
//! - Questions come in batches of a bounded size and at a bounded rate. Notices beyond the bound are dropped and
//!   counted; the rotation makes up for them.
//! - A question that fails leaves the figures as they were, and is counted.
//!
//! # Deliberately absent
//!
//! Where the figures come from: the binary knows ([`TrafficCounts`]).

use std::time::Duration;

use async_trait::async_trait;
use domain::UserId;
use hashbrown::HashSet;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How much one person seeds and leeches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficCount {
    /// The person.
    pub user: UserId,
    /// Torrents being seeded.
    pub seeding: u32,
    /// Torrents being downloaded.
    pub leeching: u32,
}

/// The figures cannot be had right now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seeding and leeching counts cannot be read: {0}")]
pub struct TrafficUnknown(pub String);

/// Knows what people's torrent clients do.
#[async_trait]
pub trait TrafficCounts: Send + Sync + 'static {
    /// The figures of these people. Who is left out keeps the figures they had.
    async fn counts(&self, users: &[UserId]) -> Result<Vec<TrafficCount>, TrafficUnknown>;
}

/// Nobody's torrents are known here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraffic;

#[async_trait]
impl TrafficCounts for NoTraffic {
    async fn counts(&self, _users: &[UserId]) -> Result<Vec<TrafficCount>, TrafficUnknown> {
        Ok(Vec::new())
    }
}

/// People asked about in one question.
pub(crate) const BATCH_USERS_MAX: usize = 256;
/// A turn of the rotation over everybody in memory takes this long, or longer when they are very many.
pub(crate) const ROTATION: Duration = Duration::from_secs(30);
/// After each question: with [`BATCH_USERS_MAX`], the bound of the rate.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Notices that may wait.
const WAITING_MAX: usize = 20_000;

/// Whose figures are to be asked for soon.
#[derive(Default)]
pub(crate) struct Waiting {
    users: Mutex<HashSet<UserId, foldhash::fast::RandomState>>,
    some: Notify,
}

impl Waiting {
    /// Asks soon about these people; how many found no place any more.
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

    /// The next batch; empty if nobody waits.
    pub(crate) fn take(&self) -> Vec<UserId> {
        let mut waiting = self.users.lock();
        let batch: Vec<UserId> = waiting.iter().copied().take(BATCH_USERS_MAX).collect();
        for user in &batch {
            waiting.remove(user);
        }
        batch
    }

    /// Returns when somebody may be waiting.
    pub(crate) async fn some(&self) {
        self.some.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(numbers: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = UserId> {
        numbers.filter_map(UserId::new)
    }

    #[test]
    fn notices_are_bounded_and_somebody_who_waits_already_takes_no_place() {
        let waiting = Waiting::default();
        assert_eq!(waiting.add(users(1..=WAITING_MAX as u64)), 0);
        assert_eq!(waiting.add(users(1..=10)), 0);
        assert_eq!(waiting.add(users(100_001..=100_007)), 7);
        assert_eq!(waiting.take().len(), BATCH_USERS_MAX);
        assert_eq!(waiting.add(users(100_001..=100_007)), 0);
    }
}
