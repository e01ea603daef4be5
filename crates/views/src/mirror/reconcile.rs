//! The sweep: looks at every torrent in turn, a few at a time, compares everything with its peers, mends what differs
//! and says so (M6, M8, M9, M10).
//!
//! The truth about a torrent is its peers: who has a record in our hash and is active by its own key. From them follow
//! the counts, the set of peers, the users' active peers and all that is derived from those. Announces and snatches are
//! what they are: announces are not recounted, snatches are the users who have one.
//!
//! A step holds up batches while it looks at one torrent, never longer.

mod torrent;

use std::collections::HashSet;

use domain::TorrentId;
use keyspace::{MirrorKey, Trouble};

use super::Mirror;
use super::reap::Found;
use super::settle::of_counts;
use crate::error::ViewsError;

/// Members of an index read in one go.
const PAGE: usize = 5000;

/// Where the present round is.
#[derive(Debug, Default)]
pub(super) struct Round {
    cursor: u64,
    /// Torrents of the page that were not looked at yet.
    waiting: Vec<TorrentId>,
    /// Whether the page was the last one.
    is_last_page: bool,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Torrents looked at.
    pub torrents: u64,
    /// Things mended.
    pub mended: u64,
    /// Peers reaped.
    pub reaped: u64,
    /// Whether the round is finished: every torrent was looked at since the last time.
    pub is_round_over: bool,
}

impl Mirror {
    /// Looks at the next few torrents. To be called about once a second; by a process that does not keep the mirror it
    /// does nothing.
    pub async fn reconcile_step(&self) -> Result<Step, ViewsError> {
        let mut round = self.round.lock().await;
        let mut step = Step::default();
        while step.torrents < self.settings.reconcile_torrents as u64 {
            if !self.is_active() {
                return Ok(step);
            }
            let Some(torrent) = round.waiting.pop() else {
                if std::mem::take(&mut round.is_last_page) {
                    self.finish_round(&mut step).await?;
                    break;
                }
                self.read_page(&mut round).await?;
                continue;
            };
            step.torrents += 1;
            // Whatever fails, the next round comes by again.
            let looked = self.look_at(torrent).await?;
            step.mended += looked.mended;
            step.reaped += self.reap(&looked.overdue, Found::BySweep).await?;
        }
        self.counting.checked(step.torrents, step.mended);
        Ok(step)
    }

    async fn read_page(&self, round: &mut Round) -> Result<(), ViewsError> {
        let mut scan = redis::cmd("ZSCAN");
        scan.arg(self.names().index_announces()).arg(round.cursor).arg("COUNT").arg(100);
        let (cursor, found): (u64, Vec<(String, f64)>) =
            self.redis().query(&scan).await.map_err(of_counts)?;
        round.cursor = cursor;
        round.is_last_page = cursor == 0;
        // A page may name a torrent twice.
        let torrents: HashSet<TorrentId> =
            found.iter().filter_map(|(member, _)| member.parse().ok()).collect();
        round.waiting = torrents.into_iter().collect();
        Ok(())
    }

    async fn finish_round(&self, step: &mut Step) -> Result<(), ViewsError> {
        step.mended += self.check_sums().await?;
        step.is_round_over = true;
        let now = self.parts.clock.now();
        self.counting.finished_round(now);
        tracing::debug!(torrents = step.torrents, "every torrent of the mirror has been looked at");
        Ok(())
    }

    /// Whether the statistics are the sums of the indexes (M9). Nobody writes meanwhile.
    async fn check_sums(&self) -> Result<u64, ViewsError> {
        let _alone = self.alone.lock().await;
        let names = self.names();
        let pairs = [
            (names.index_announces().to_owned(), MirrorKey::StatsAnnounces),
            (names.single(MirrorKey::IndexLeechers), MirrorKey::StatsLeechers),
            (names.single(MirrorKey::IndexSeeders), MirrorKey::StatsSeeders),
        ];
        let mut mended = 0;
        for (index, stat) in pairs {
            let sum = self.sum_of(&index).await?;
            let key = names.single(stat);
            let found: Option<i64> =
                self.redis().query(redis::cmd("GET").arg(&key)).await.map_err(of_counts)?;
            let found = found.unwrap_or(0);
            if sum != found && self.is_active() {
                tracing::warn!(key, before = found, after = sum, "a statistic was not the sum; mended");
                let mend = redis::cmd("INCRBY").arg(&key).arg(sum - found).clone();
                self.redis().query::<i64>(&mend).await.map_err(of_counts)?;
                mended += 1;
            }
        }
        Ok(mended)
    }

    async fn sum_of(&self, index: &str) -> Result<i64, ViewsError> {
        let mut sum = 0_i64;
        for page in 0.. {
            let mut range = redis::cmd("ZRANGE");
            range.arg(index).arg(page * PAGE).arg((page + 1) * PAGE - 1).arg("WITHSCORES");
            let found: Vec<(String, f64)> = self.redis().query(&range).await.map_err(of_counts)?;
            sum += found.iter().map(|(_, score)| *score as i64).sum::<i64>();
            if found.len() < PAGE {
                break;
            }
        }
        Ok(sum)
    }
}

/// A reply that is not of the shape it should have.
fn odd(what: &str) -> ViewsError {
    let reason = format!("{what} holds something else than we wrote");
    ViewsError::Redis(Trouble::Other { code: "a value nobody expected".to_owned(), reason })
}
