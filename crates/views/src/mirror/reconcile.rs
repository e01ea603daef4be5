//! The sweep: looks at every torrent in turn, a few at a time, compares everything with the truth, mends what differs
//! and says so (M6, M8, M9, M10).
//!
//! The truth about a torrent is our hash of it: who is there under which peer id. From that follow the counts, the set
//! of peers, the users' active peers and all that is derived from those. Announces and snatches are what they are:
//! announces are not recounted, snatches are the users who have one.
//!
//! Beside the round over all torrents, torrents that have peers are checked through for silent ones all the time: a round
//! over a great many torrents takes long, and where no message comes nothing else finds them.
//!
//! Batches wait for a page of a torrent's users, never for a whole torrent.

mod remove;
mod sets;
mod state;
mod torrent;
mod walk;

use keyspace::MirrorKey;

use super::Mirror;
use super::derived_keys::counts_error;
use super::reap::ReapTrigger;
use crate::error::ViewsError;
use walk::{Walk, WithPeersWalk};

/// Members of an index read in one go.
const PAGE: usize = 5000;
/// How often an index is summed while batches go on, before they have to wait.
const SUMS_MAX: u32 = 2;

/// Where the present rounds are.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Over all torrents.
    all: Walk,
    /// Over those that have peers.
    with_peers: WithPeersWalk,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Torrents checked at.
    pub torrents: u64,
    /// Things repaired.
    pub repaired: u64,
    /// Peers reaped.
    pub reaped: u64,
    /// Whether the round is finished: every torrent was checked at since the last time.
    pub is_round_complete: bool,
}

impl Mirror {
    /// Looks at the next few torrents. To be called about once a second; by a process that does not keep the mirror it
    /// does nothing.
    pub async fn reconcile_step(&self) -> Result<Step, ViewsError> {
        let mut round = self.round.lock().await;
        let mut step = Step::default();
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
            // Whatever fails, the next round comes by again.
            let checked = self.check_torrent(torrent).await?;
            step.repaired += checked.repaired;
            step.reaped += self.reap(&checked.overdue, ReapTrigger::Sweep).await?;
        }
        self.counting.checked(step.torrents, step.repaired);
        Ok(step)
    }

    async fn finish_round(&self, step: &mut Step) -> Result<(), ViewsError> {
        step.repaired += self.check_sums().await?;
        step.is_round_complete = true;
        let now = self.parts.clock.steady();
        self.counting.finished_round(now);
        tracing::debug!(torrents = step.torrents, "every torrent of the mirror has been checked at");
        Ok(())
    }

    /// Whether the statistics are the sums of the indexes (M9).
    async fn check_sums(&self) -> Result<u64, ViewsError> {
        let names = self.names();
        let pairs = [
            (names.index_announces().to_owned(), MirrorKey::StatsAnnounces),
            (names.global(MirrorKey::IndexLeechers), MirrorKey::StatsLeechers),
            (names.global(MirrorKey::IndexSeeders), MirrorKey::StatsSeeders),
        ];
        let mut repaired = 0;
        for (index, stat) in pairs {
            let key = names.global(stat);
            let (sum, found) = self.sum_and_statistic(&index, &key).await?;
            if sum != found && self.is_active() {
                tracing::warn!(key, before = found, after = sum, "a statistic was not the sum; repaired");
                let repair = redis::cmd("INCRBY").arg(&key).arg(sum - found).clone();
                self.redis().query::<i64>(&repair).await.map_err(counts_error)?;
                repaired += 1;
            }
        }
        Ok(repaired)
    }

    /// The sum of an index, and its statistic at the same moment. Read while batches go on, if the statistic stays what
    /// it is meanwhile; else batches have to wait.
    async fn sum_and_statistic(&self, index: &str, key: &str) -> Result<(i64, i64), ViewsError> {
        for _ in 0..SUMS_MAX {
            let before = self.statistic(key).await?;
            let sum = self.sum_of(index).await?;
            // What differs is summed once more, with nobody writing.
            if self.statistic(key).await? == before && sum == before {
                return Ok((sum, before));
            }
        }
        let _guard = self.write_lock.lock().await;
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
