//! Source of peer counts: the swarms of this process, or the indexes of the Redis mirror, or none.

use std::collections::HashMap;
use std::sync::Arc;

use access::Gate;
use domain::{InfoHash, TorrentId};
use foldhash::fast::RandomState;
use swarm::SwarmCounts;
use tracker::Tracker;
use views::Indexes;

use super::{Ranked, RankedBy, Ranking};
use crate::problem::Problem;

/// Minimum freshness of a ranking of swarms.
const SWARMS_FRESH_MS: u64 = 1000;
/// Minimum freshness of a ranking from Redis, which is read over the network.
const INDEXES_FRESH_MS: u64 = 5000;

/// The gate has the torrents, `counts` their peer counts.
#[derive(Clone)]
pub struct RankingSource {
    gate: Arc<Gate>,
    counts: Counts,
}

#[derive(Clone)]
enum Counts {
    Swarms(Arc<Tracker>),
    Indexes(Indexes),
    Unknown,
}

impl RankingSource {
    /// Prefers swarms over indexes.
    pub fn of(gate: Arc<Gate>, tracker: Option<Arc<Tracker>>, indexes: Option<Indexes>) -> RankingSource {
        let counts = match (tracker, indexes) {
            (Some(tracker), _) => Counts::Swarms(tracker),
            (None, Some(indexes)) => Counts::Indexes(indexes),
            (None, None) => Counts::Unknown,
        };
        RankingSource { gate, counts }
    }

    /// How long a ranking is fresh at least.
    pub(super) fn fresh_ms_min(&self) -> u64 {
        match self.counts {
            Counts::Indexes(_) => INDEXES_FRESH_MS,
            Counts::Swarms(_) | Counts::Unknown => SWARMS_FRESH_MS,
        }
    }

    /// Computes a ranking on a blocking thread, sorted by `by` if given.
    pub(super) async fn read(&self, made_ms: u64, by: Option<RankedBy>) -> Result<Ranking, Problem> {
        let gate = Arc::clone(&self.gate);
        let reading: Box<dyn FnOnce() -> (Vec<Ranked>, bool) + Send> = match &self.counts {
            Counts::Swarms(tracker) => {
                let tracker = Arc::clone(tracker);
                Box::new(move || (from_swarms(&gate, &tracker), true))
            }
            Counts::Indexes(indexes) => {
                let counts = indexes.read().await?;
                let of = |counts: &views::redis_mirror::IndexedCounts| SwarmCounts {
                    seeders: counts.seeders,
                    leechers: counts.leechers,
                    snatches: counts.snatches,
                };
                // Empty indexes are not maintained by a mirror.
                Box::new(move || (torrents(&gate, |id, _| counts.get(&id).map(of)), !counts.is_empty()))
            }
            Counts::Unknown => Box::new(move || (torrents(&gate, |_, _| None), false)),
        };
        let ranking = tokio::task::spawn_blocking(move || {
            let (torrents, has_counts) = reading();
            let ranking = Ranking::new(made_ms, torrents, has_counts);
            if let Some(by) = by {
                ranking.order(by);
            }
            ranking
        });
        ranking.await.map_err(|error| Problem::internal("the list of swarms", &error))
    }
}

fn from_swarms(gate: &Gate, tracker: &Tracker) -> Vec<Ranked> {
    let mut counted: HashMap<InfoHash, SwarmCounts, RandomState> = HashMap::default();
    tracker.swarms().each_swarm(|info_hash, counts| {
        counted.insert(*info_hash, counts);
    });
    torrents(gate, |_, info_hash| counted.get(info_hash).copied())
}

/// All torrents with their counts; zeros if unknown.
fn torrents(gate: &Gate, counts: impl Fn(TorrentId, &InfoHash) -> Option<SwarmCounts>) -> Vec<Ranked> {
    let mut torrents = Vec::with_capacity(gate.torrent_count());
    gate.each_torrent(|id, info_hash| {
        torrents.push(Ranked { id, counts: counts(id, info_hash).unwrap_or_default() });
    });
    torrents
}
