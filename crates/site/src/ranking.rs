//! All torrents by how many are on them, as people page through them.
//!
//! # Guarantees
//!
//! - A ranking is made when somebody asks and the last one is too old, never for each request; one at a time. Once begun
//!   it is finished and kept, whether or not whoever asked still listens.
//! - Pages of one ranking join without gaps or repeats, however the swarms change meanwhile: it is kept for whoever was
//!   given a place in it. A place in a ranking that is removed is looked for in the present one, by its value and number.
//! - What is kept is bounded; places that came too expired_cursors are counted.
//! - A page costs what is on it, and with a search a look at each torrent.
//!
//! # Deliberately absent
//!
//! Names, sizes and dates: they are in the database, which is asked for those of a page.

mod source;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use domain::TorrentId;
use domain::clock::Stopwatch;
use parking_lot::Mutex;
use swarm::SwarmCounts;
use tracker::counters::Counter;

use crate::problem::Problem;
pub use source::RankingSource;

/// Rankings that are kept, at the most.
const KEPT_MAX: usize = 16;
/// Torrents in all rankings that are kept, at the most: about 50 megabytes. The newest one is kept whatever its size.
const KEPT_TORRENTS_MAX: usize = 2_000_000;
/// How long a ranking is kept for whoever was given a place in it.
const KEPT_MS: u64 = 5 * 60 * 1000;
/// A ranking that took long to make is good for so many times as long, so that making them never takes all the time
/// there is; but not for longer than a minute.
const FRESH_PER_READ_TIME: u64 = 5;
const FRESH_MS_MAX: u64 = 60 * 1000;

/// What torrents are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankedBy {
    /// Peers that have everything.
    Seeders,
    /// Peers that do not.
    Leechers,
    /// How often it was completed.
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

/// A torrent and how many are on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    pub id: TorrentId,
    /// How many.
    pub counts: SwarmCounts,
}

/// A place in a ranking: behind this value and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankingCursor {
    /// Which ranking: when it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The value of the last torrent that was seen.
    pub value: i64,
    /// Its number.
    pub id: TorrentId,
}

/// All torrents at one moment.
#[derive(Debug)]
pub struct Ranking {
    /// When it was made; no two have the same.
    pub made_ms: u64,
    /// Whether the counts mean anything.
    pub has_counts: bool,
    /// By number.
    torrents: Vec<Ranked>,
    /// Positions of torrents, by value and number, smallest first: one for each kind of value, made when it is request.
    orders: [OnceLock<Vec<u32>>; 3],
}

/// What is wanted of a ranking.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// By what.
    pub by: RankedBy,
    /// Whether the largest comes first. Numbers decide ties, in the same direction.
    pub descending: bool,
    /// Behind which place.
    pub after: Option<RankingCursor>,
    /// Only these torrents.
    pub among: Option<&'a HashSet<TorrentId>>,
    /// How many at the most.
    pub limit: usize,
}

/// A part of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedPage {
    /// The torrents, in order.
    pub torrents: Vec<Ranked>,
    /// Where to go on; none if these were the last.
    pub next: Option<RankingCursor>,
}

impl Ranking {
    /// A ranking of these torrents.
    pub fn new(made_ms: u64, mut torrents: Vec<Ranked>, has_counts: bool) -> Ranking {
        torrents.sort_unstable_by_key(|one| one.id);
        Ranking { made_ms, has_counts, torrents, orders: Default::default() }
    }

    /// How many torrents there are.
    pub fn len(&self) -> usize {
        self.torrents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.torrents.is_empty()
    }

    /// How many are on a torrent; none if that is not known.
    pub fn counts_of(&self, id: TorrentId) -> Option<SwarmCounts> {
        let found = self.torrents.binary_search_by_key(&id, |one| one.id).ok();
        self.has_counts.then(|| found.map_or_else(SwarmCounts::default, |at| self.torrents[at].counts))
    }

    /// Puts it in order; takes a while the first time.
    fn order(&self, by: RankedBy) -> &[u32] {
        self.orders[by as usize].get_or_init(|| {
            let mut keyed: Vec<(u32, TorrentId, u32)> =
                (0..).zip(&self.torrents).map(|(at, one)| (by.value(&one.counts), one.id, at)).collect();
            keyed.sort_unstable();
            keyed.into_iter().map(|(_, _, at)| at).collect()
        })
    }

    /// A part of it. Off the threads that answer requests: the first one puts all torrents in order, and a search looks
    /// at each.
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

/// The rankings of a site.
pub struct Rankings {
    source: RankingSource,
    cache: Arc<RankingCache>,
    /// Held by the task that makes the next one: others wait for it instead of making their own.
    making: Arc<tokio::sync::Mutex<()>>,
    /// Places in rankings that were no longer kept.
    pub expired_cursors: Counter,
}

/// The rankings that are kept.
#[derive(Default)]
struct RankingCache {
    /// Oldest first; the newest is the present one.
    kept: Mutex<Vec<CachedRanking>>,
}

struct CachedRanking {
    ranking: Arc<Ranking>,
    /// For how long it is recent enough.
    fresh_ms: u64,
    /// Whether anybody was given a place in it.
    has_readers: bool,
}

impl Rankings {
    /// Rankings of what this source tells.
    pub fn new(source: RankingSource) -> Rankings {
        Rankings {
            source,
            cache: Arc::default(),
            making: Arc::default(),
            expired_cursors: Counter::default(),
        }
    }

    /// The ranking that a place is in, if it is kept, else one that is recent enough. `by` is what is wanted of it next,
    /// if anything: a new one is put into that order at once.
    pub async fn for_cursor(
        &self,
        place: Option<RankingCursor>,
        by: Option<RankedBy>,
        now_ms: u64,
    ) -> Result<Arc<Ranking>, Problem> {
        if let Some(place) = place {
            if let Some(kept) = self.cache.find(place.made_ms) {
                return Ok(kept);
            }
            self.expired_cursors.increment();
        }
        self.current(by, now_ms).await
    }

    /// Keeps a ranking for whoever was given a place in it.
    pub fn keep(&self, ranking: &Ranking) {
        let mut kept = self.cache.kept.lock();
        if let Some(one) = kept.iter_mut().find(|one| one.ranking.made_ms == ranking.made_ms) {
            one.has_readers = true;
        }
    }

    async fn current(&self, by: Option<RankedBy>, now_ms: u64) -> Result<Arc<Ranking>, Problem> {
        if let Some(recent) = self.cache.recent(now_ms) {
            return Ok(recent);
        }
        let guard = Arc::clone(&self.making).lock_owned().await;
        // Perhaps somebody else made one meanwhile.
        if let Some(recent) = self.cache.recent(now_ms) {
            return Ok(recent);
        }
        let (source, cache) = (self.source.clone(), Arc::clone(&self.cache));
        // A task of its own: whoever hangs up would otherwise give the guard away while the work goes on, and rankings of
        // a slow source would pile up, none of them ever kept.
        let making = tokio::spawn(async move {
            let made = cache.make(&source, by, now_ms).await;
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
        // A clock that was set back is no reason to show the same for hours.
        let is_recent = newest.ranking.made_ms.abs_diff(now_ms) < newest.fresh_ms;
        is_recent.then(|| Arc::clone(&newest.ranking))
    }

    async fn make(
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

    /// A moment that no ranking has yet. It stays free for whoever has the guard.
    fn unused_ms(&self, now_ms: u64) -> u64 {
        let kept = self.kept.lock();
        let is_taken = |ms: u64| kept.iter().any(|one| one.ranking.made_ms == ms);
        (now_ms..).find(|ms| !is_taken(*ms)).unwrap_or(now_ms)
    }

    fn add(&self, ranking: Ranking, fresh_ms: u64, now_ms: u64) -> Arc<Ranking> {
        let ranking = Arc::new(ranking);
        let mut kept = self.kept.lock();
        // What is no longer kept may be large: it is freed when others can go on.
        let is_kept =
            |one: &mut CachedRanking| one.has_readers && one.ranking.made_ms.abs_diff(now_ms) < KEPT_MS;
        let mut removed: Vec<CachedRanking> = kept.extract_if(.., |one| !is_kept(one)).collect();
        kept.push(CachedRanking { ranking: Arc::clone(&ranking), fresh_ms, has_readers: false });
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
