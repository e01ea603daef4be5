//! All torrents sorted by peer counts, in consistent pages.
//!
//! # Guarantees
//!
//! - A ranking is computed on demand when the last one is too old, one at a time. A computation that has started is
//!   finished and cached, even if the request is cancelled.
//! - Pages of one ranking have no gaps and no repeats, however the swarms change: a ranking with issued cursors stays
//!   cached. A cursor of an expired ranking continues in the current one, by value and id.
//! - The cache is bounded; expired cursors are counted.
//! - A page costs its rows; with a search, a pass over all torrents.
//!
//! # Deliberately absent
//!
//! Names, sizes and dates: they are read from the database for one page.

mod source;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use domain::clock::Stopwatch;
use domain::{Counter, TorrentId};
use parking_lot::Mutex;
use swarm::SwarmCounts;

use crate::problem::Problem;
pub use source::RankingSource;

/// Maximum number of cached rankings.
const KEPT_MAX: usize = 16;
/// Maximum number of torrents in all cached rankings, about 50 MB. The newest ranking is cached whatever its size.
const KEPT_TORRENTS_MAX: usize = 2_000_000;
/// How long a ranking with issued cursors stays cached.
const KEPT_MS: u64 = 5 * 60 * 1000;
/// A ranking is fresh for this multiple of its computation time, up to [`FRESH_MS_MAX`], so that computing takes a bounded
/// share of the time.
const FRESH_PER_READ_TIME: u64 = 5;
const FRESH_MS_MAX: u64 = 60 * 1000;

/// Sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankedBy {
    Seeders,
    Leechers,
    /// Completions.
    Snatches,
}

impl RankedBy {
    fn value(self, counts: &SwarmCounts) -> u32 {
        match self {
            RankedBy::Seeders => counts.seeders,
            RankedBy::Leechers => counts.leechers,
            RankedBy::Snatches => counts.snatches,
        }
    }
}

/// A torrent and its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    pub id: TorrentId,
    pub counts: SwarmCounts,
}

/// Position in a ranking: after this value and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankingCursor {
    /// Id of the ranking: its time in unix milliseconds.
    pub made_ms: u64,
    /// Value of the last torrent on the page.
    pub value: i64,
    /// Id of the last torrent on the page.
    pub id: TorrentId,
}

/// All torrents at one time.
#[derive(Debug)]
pub struct Ranking {
    /// Unique, in unix milliseconds.
    pub made_ms: u64,
    /// False if there is no source of counts.
    pub has_counts: bool,
    /// Sorted by id.
    torrents: Vec<Ranked>,
    /// Positions of torrents by value and id, ascending; per sort key, sorted on first use.
    orders: [OnceLock<Vec<u32>>; 3],
}

/// Order, filter and position of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    pub by: RankedBy,
    /// Ties are broken by id, in the same direction.
    pub descending: bool,
    pub after: Option<RankingCursor>,
    pub among: Option<&'a HashSet<TorrentId>>,
    pub limit: usize,
}

/// A page of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedPage {
    pub torrents: Vec<Ranked>,
    /// None after the last page.
    pub next: Option<RankingCursor>,
}

impl Ranking {
    pub fn new(made_ms: u64, mut torrents: Vec<Ranked>, has_counts: bool) -> Ranking {
        torrents.sort_unstable_by_key(|one| one.id);
        Ranking { made_ms, has_counts, torrents, orders: Default::default() }
    }

    pub fn len(&self) -> usize {
        self.torrents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.torrents.is_empty()
    }

    /// None without a source of counts.
    pub fn counts_of(&self, id: TorrentId) -> Option<SwarmCounts> {
        let found = self.torrents.binary_search_by_key(&id, |one| one.id).ok();
        self.has_counts.then(|| found.map_or_else(SwarmCounts::default, |at| self.torrents[at].counts))
    }

    /// Sorts on first use.
    fn order(&self, by: RankedBy) -> &[u32] {
        self.orders[by as usize].get_or_init(|| {
            let mut keyed: Vec<(u32, TorrentId, u32)> =
                (0..).zip(&self.torrents).map(|(at, one)| (by.value(&one.counts), one.id, at)).collect();
            keyed.sort_unstable();
            keyed.into_iter().map(|(_, _, at)| at).collect()
        })
    }

    /// Call on a blocking thread: the first page of an order sorts all torrents, and a search visits each.
    pub fn page(&self, request: &PageRequest<'_>) -> RankedPage {
        let order = self.order(request.by);
        let at = |position: &u32| &self.torrents[*position as usize];
        let key = |one: &Ranked| (i64::from(request.by.value(&one.counts)), one.id);
        let split = |is_before: &dyn Fn((i64, TorrentId)) -> bool| {
            order.partition_point(|position| is_before(key(at(position))))
        };
        let mut rest: Box<dyn Iterator<Item = &u32>> = match (request.after, request.descending) {
            (None, false) => Box::new(order.iter()),
            (None, true) => Box::new(order.iter().rev()),
            (Some(last), false) => Box::new(order[split(&|key| key <= (last.value, last.id))..].iter()),
            (Some(last), true) => Box::new(order[..split(&|key| key < (last.value, last.id))].iter().rev()),
        };
        let is_among = |one: &&Ranked| request.among.is_none_or(|among| among.contains(&one.id));
        let mut matching = rest.by_ref().map(at).filter(is_among);
        let torrents: Vec<Ranked> = matching.by_ref().take(request.limit).copied().collect();
        let is_more = matching.next().is_some();
        let next = torrents.last().filter(|_| is_more).map(|last| {
            let (value, id) = key(last);
            RankingCursor { made_ms: self.made_ms, value, id }
        });
        RankedPage { torrents, next }
    }
}

/// Computes and caches rankings.
pub struct Rankings {
    source: RankingSource,
    cache: Arc<RankingCache>,
    /// Held by the task that computes the next ranking; other requests wait for it.
    making: Arc<tokio::sync::Mutex<()>>,
    /// Cursors of rankings that were no longer cached.
    pub expired_cursors: Counter,
}

#[derive(Default)]
struct RankingCache {
    /// Oldest first; the last is the current one.
    kept: Mutex<Vec<CachedRanking>>,
}

struct CachedRanking {
    ranking: Arc<Ranking>,
    /// How long it counts as recent.
    fresh_ms: u64,
    /// Whether a cursor of it was issued.
    has_cursors: bool,
}

impl Rankings {
    pub fn new(source: RankingSource) -> Rankings {
        Rankings {
            source,
            cache: Arc::default(),
            making: Arc::default(),
            expired_cursors: Counter::default(),
        }
    }

    /// The ranking of a cursor if it is cached, else a recent one. A new ranking is sorted by `by` at once.
    pub async fn for_cursor(
        &self,
        cursor: Option<RankingCursor>,
        by: Option<RankedBy>,
        now_ms: u64,
    ) -> Result<Arc<Ranking>, Problem> {
        if let Some(cursor) = cursor {
            if let Some(kept) = self.cache.find(cursor.made_ms) {
                return Ok(kept);
            }
            self.expired_cursors.increment();
        }
        self.current(by, now_ms).await
    }

    /// Keeps a ranking cached because a cursor of it is issued.
    pub fn keep(&self, ranking: &Ranking) {
        let mut kept = self.cache.kept.lock();
        if let Some(one) = kept.iter_mut().find(|one| one.ranking.made_ms == ranking.made_ms) {
            one.has_cursors = true;
        }
    }

    async fn current(&self, by: Option<RankedBy>, now_ms: u64) -> Result<Arc<Ranking>, Problem> {
        if let Some(recent) = self.cache.recent(now_ms) {
            return Ok(recent);
        }
        let guard = Arc::clone(&self.making).lock_owned().await;
        // Another request may have computed one meanwhile.
        if let Some(recent) = self.cache.recent(now_ms) {
            return Ok(recent);
        }
        let (source, cache) = (self.source.clone(), Arc::clone(&self.cache));
        // In its own task: if a cancelled request released the lock, computations of a slow source would pile up.
        let making = tokio::spawn(async move {
            let made = cache.compute(&source, by, now_ms).await;
            drop(guard);
            made
        });
        making.await.map_err(|error| Problem::internal("the list of swarms", &error))?
    }
}

impl RankingCache {
    fn find(&self, made_ms: u64) -> Option<Arc<Ranking>> {
        let kept = self.kept.lock();
        kept.iter().find(|one| one.ranking.made_ms == made_ms).map(|one| Arc::clone(&one.ranking))
    }

    fn recent(&self, now_ms: u64) -> Option<Arc<Ranking>> {
        let kept = self.kept.lock();
        let newest = kept.last()?;
        // The wall clock may be set back.
        let is_recent = newest.ranking.made_ms.abs_diff(now_ms) < newest.fresh_ms;
        is_recent.then(|| Arc::clone(&newest.ranking))
    }

    async fn compute(
        &self,
        source: &RankingSource,
        by: Option<RankedBy>,
        now_ms: u64,
    ) -> Result<Arc<Ranking>, Problem> {
        let making = Stopwatch::start();
        let ranking = source.read(self.unused_ms(now_ms), by).await?;
        let took_ms = u64::try_from(making.elapsed().as_millis()).unwrap_or(u64::MAX);
        let fresh_ms =
            took_ms.saturating_mul(FRESH_PER_READ_TIME).min(FRESH_MS_MAX).max(source.fresh_ms_min());
        Ok(self.add(ranking, fresh_ms, now_ms))
    }

    /// A time that no cached ranking has. Stays unused while the lock is held.
    fn unused_ms(&self, now_ms: u64) -> u64 {
        let kept = self.kept.lock();
        let is_taken = |ms: u64| kept.iter().any(|one| one.ranking.made_ms == ms);
        (now_ms..).find(|ms| !is_taken(*ms)).unwrap_or(now_ms)
    }

    fn add(&self, ranking: Ranking, fresh_ms: u64, now_ms: u64) -> Arc<Ranking> {
        let ranking = Arc::new(ranking);
        let mut kept = self.kept.lock();
        // Freed after the lock is released: rankings may be large.
        let is_kept =
            |one: &mut CachedRanking| one.has_cursors && one.ranking.made_ms.abs_diff(now_ms) < KEPT_MS;
        let mut removed: Vec<CachedRanking> = kept.extract_if(.., |one| !is_kept(one)).collect();
        kept.push(CachedRanking { ranking: Arc::clone(&ranking), fresh_ms, has_cursors: false });
        let torrents_in = |kept: &[CachedRanking]| kept.iter().map(|one| one.ranking.len()).sum::<usize>();
        while kept.len() > 1 && (kept.len() > KEPT_MAX || torrents_in(&kept) > KEPT_TORRENTS_MAX) {
            removed.push(kept.remove(0));
        }
        drop(kept);
        drop(removed);
        ranking
    }
}

#[cfg(test)]
mod tests;
