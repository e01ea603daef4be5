//! The reconciliation sweep: compares all keys with the state hashes, a few torrents at a time, and repairs differences
//! (M6, M8, M9, M10).
//!
//! The peers in the state hash of a torrent determine its counts, its set of peers, the users' active peers and
//! everything derived from those. Announces are not recounted; snatches are the users with a snatch.
//!
//! Besides the round over all torrents, torrents with peers are continually checked for overdue peers: a round over
//! many torrents takes long, and without expired events nothing else finds them.
//!
//! Batches wait for one page of a torrent's users, never for a whole torrent.

mod remove;
mod scan;
mod sets;
pub(super) mod state;
mod torrent;

use keyspace::RedisMirrorKey;

use super::RedisMirror;
use super::derived_keys::counts_error;
use super::reap::ReapTrigger;
use crate::error::ViewsError;
use scan::{TorrentScan, WithPeersScan};

/// Members of an index per command.
const PAGE: usize = 5000;
/// Attempts to sum an index while batches continue, before they have to wait.
const SUMS_MAX: u32 = 2;

/// Positions of both scans.
#[derive(Debug, Default)]
pub(super) struct Round {
    all: TorrentScan,
    with_peers: WithPeersScan,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepStep {
    /// Checked torrents.
    pub torrents: u64,
    /// Repaired differences.
    pub repaired: u64,
    pub reaped: u64,
    /// Whether every torrent has been checked since the last round.
    pub is_round_complete: bool,
}

impl RedisMirror {
    /// Checks the next few torrents. Call it about once a second; does nothing without the lease.
    pub async fn reconcile_step(&self) -> Result<SweepStep, ViewsError> {
        let mut round = self.round.lock().await;
        let mut step = SweepStep::default();
        let torrents_max = self.settings.reconcile_torrents.max(1);
        for torrent in self.next_with_peers(&mut round.with_peers, torrents_max).await? {
            let overdue = self.overdue_of(torrent).await?;
            step.reaped += self.reap(&overdue, ReapTrigger::Sweep).await?;
        }
        while step.torrents < torrents_max as u64 && self.is_active() {
            let Some(torrent) = self.next_torrent(&mut round.all).await? else {
                self.finish_round(&mut step).await?;
                break;
            };
            step.torrents += 1;
            // After an error the next round checks it again.
            let checked = self.check_torrent(torrent).await?;
            step.repaired += checked.repaired;
            step.reaped += self.reap(&checked.overdue, ReapTrigger::Sweep).await?;
        }
        self.counters.checked(step.torrents, step.repaired);
        Ok(step)
    }

    async fn finish_round(&self, step: &mut SweepStep) -> Result<(), ViewsError> {
        step.repaired += self.check_sums().await?;
        step.is_round_complete = true;
        let now = self.parts.clock.steady();
        self.counters.finished_round(now);
        tracing::debug!(torrents = step.torrents, "mirror sweep: round complete");
        Ok(())
    }

    /// Compares the statistics with the sums of the indexes (M9).
    async fn check_sums(&self) -> Result<u64, ViewsError> {
        let names = self.names();
        let pairs = [
            (names.index_announces().to_owned(), RedisMirrorKey::StatsAnnounces),
            (names.global(RedisMirrorKey::IndexLeechers), RedisMirrorKey::StatsLeechers),
            (names.global(RedisMirrorKey::IndexSeeders), RedisMirrorKey::StatsSeeders),
        ];
        let mut repaired = 0;
        for (index, stat) in pairs {
            let key = names.global(stat);
            let (sum, found) = self.sum_and_statistic(&index, &key).await?;
            if sum != found && self.is_active() {
                tracing::warn!(key, before = found, after = sum, "mirror sweep: repaired a statistic");
                let repair = redis::cmd("INCRBY").arg(&key).arg(sum - found).clone();
                let mut writer = self.writer.lock().await;
                self.redis().query::<i64>(&repair).await.map_err(counts_error)?;
                writer.stats = None;
                repaired += 1;
            }
        }
        Ok(repaired)
    }

    /// The sum of an index and its statistic at the same time. Read while batches continue if the statistic stays
    /// unchanged; otherwise with the write lock.
    async fn sum_and_statistic(&self, index: &str, key: &str) -> Result<(i64, i64), ViewsError> {
        for _ in 0..SUMS_MAX {
            let before = self.statistic(key).await?;
            let sum = self.sum_of(index).await?;
            // A difference is confirmed with the write lock held.
            if self.statistic(key).await? == before && sum == before {
                return Ok((sum, before));
            }
        }
        let _writer = self.writer.lock().await;
        Ok((self.sum_of(index).await?, self.statistic(key).await?))
    }

    async fn statistic(&self, key: &str) -> Result<i64, ViewsError> {
        let found: Option<i64> =
            self.redis().query(redis::cmd("GET").arg(key)).await.map_err(counts_error)?;
        Ok(found.unwrap_or(0))
    }

    async fn sum_of(&self, index: &str) -> Result<i64, ViewsError> {
        let mut sum = 0_i64;
        for page in 0.. {
            let mut range = redis::cmd("ZRANGE");
            range.arg(index).arg(page * PAGE).arg((page + 1) * PAGE - 1).arg("WITHSCORES");
            let found: Vec<(String, f64)> = self.redis().query(&range).await.map_err(counts_error)?;
            sum += found.iter().map(|(_, score)| *score as i64).sum::<i64>();
            if found.len() < PAGE {
                break;
            }
        }
        Ok(sum)
    }
}
