//! All torrents by how many are on them, as people page through them.
//!
//! # Guarantees
//!
//! - A ranking is made when somebody asks and the last one is too old, never for each request; one at a time.
//! - Pages of one ranking join without gaps or repeats, however the swarms change meanwhile: it is kept for whoever was
//!   given a place in it. A place in a ranking that is gone is looked for in the present one, by its value and number.
//! - What is kept is bounded; places that came too late are counted.
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
pub use source::Source;

/// Rankings that are kept, at the most.
const KEPT_MAX: usize = 16;
/// Torrents in all rankings that are kept, at the most: about 50 megabytes. The newest one is kept whatever its size.
const KEPT_TORRENTS_MAX: usize = 2_000_000;
/// How long a ranking is kept for whoever was given a place in it.
const KEPT_MS: u64 = 5 * 60 * 1000;
/// A ranking that took long to make is good for so many times as long, so that making them never takes all the time
/// there is; but not for longer than a minute.
const TIMES_AS_LONG: u64 = 5;
const GOOD_MS_MAX: u64 = 60 * 1000;

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
    /// The torrent.
    pub id: TorrentId,
    /// How many.
    pub counts: SwarmCounts,
}

/// A place in a ranking: behind this value and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedPlace {
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
    /// Positions of torrents, by value and number, smallest first: one for each kind of value, made when it is wanted.
    orders: [OnceLock<Vec<u32>>; 3],
}

/// What is wanted of a ranking.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// By what.
    pub by: RankedBy,
    /// Whether the largest comes first. Numbers decide ties, in the same direction.
    pub descending: bool,
    /// Behind which place.
    pub after: Option<RankedPlace>,
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
    pub next: Option<RankedPlace>,
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

    fn order(&self, by: RankedBy) -> &[u32] {
        self.orders[by as usize].get_or_init(|| {
            let mut keyed: Vec<(u32, TorrentId, u32)> =
                (0..).zip(&self.torrents).map(|(at, one)| (by.value(&one.counts), one.id, at)).collect();
            keyed.sort_unstable();
            keyed.into_iter().map(|(_, _, at)| at).collect()
        })
    }

    /// A part of it.
    pub fn page(&self, wanted: &Wanted<'_>) -> RankedPage {
        let order = self.order(wanted.by);
        let at = |position: &u32| &self.torrents[*position as usize];
        let key = |one: &Ranked| (i64::from(wanted.by.value(&one.counts)), one.id);
        let split = |is_before: &dyn Fn((i64, TorrentId)) -> bool| {
            order.partition_point(|position| is_before(key(at(position))))
        };
        let mut rest: Box<dyn Iterator<Item = &u32>> = match (wanted.after, wanted.descending) {
            (None, false) => Box::new(order.iter()),
            (None, true) => Box::new(order.iter().rev()),
            (Some(last), false) => Box::new(order[split(&|key| key <= (last.value, last.id))..].iter()),
            (Some(last), true) => Box::new(order[..split(&|key| key < (last.value, last.id))].iter().rev()),
        };
        let is_among = |one: &&Ranked| wanted.among.is_none_or(|among| among.contains(&one.id));
        let mut wanted_rest = rest.by_ref().map(at).filter(is_among);
        let torrents: Vec<Ranked> = wanted_rest.by_ref().take(wanted.limit).copied().collect();
        let is_more = wanted_rest.next().is_some();
        let next = torrents.last().filter(|_| is_more).map(|last| {
            let (value, id) = key(last);
            RankedPlace { made_ms: self.made_ms, value, id }
        });
        RankedPage { torrents, next }
    }
}

/// The rankings of a site.
pub struct Rankings {
    source: Source,
    /// Oldest first; the newest is the present one.
    kept: Mutex<Vec<Kept>>,
    /// Held by whoever makes the next one: others wait for it instead of making their own.
    making: tokio::sync::Mutex<()>,
    /// Places in rankings that were no longer kept.
    pub late: Counter,
}

struct Kept {
    ranking: Arc<Ranking>,
    /// For how long it is recent enough.
    good_ms: u64,
    /// Whether anybody was given a place in it.
    has_readers: bool,
}

impl Rankings {
    /// Rankings of what this source tells.
    pub fn new(source: Source) -> Rankings {
        Rankings {
            source,
            kept: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            late: Counter::default(),
        }
    }

    /// The ranking that a place is in, if it is kept, else one that is recent enough.
    pub async fn for_place(&self, place: Option<RankedPlace>, now_ms: u64) -> Result<Arc<Ranking>, Problem> {
        if let Some(place) = place {
            if let Some(kept) = self.kept_of(place.made_ms) {
                return Ok(kept);
            }
            self.late.increment();
        }
        self.present(now_ms).await
    }

    /// Keeps a ranking for whoever was given a place in it.
    pub fn keep(&self, ranking: &Ranking) {
        let mut kept = self.kept.lock();
        if let Some(one) = kept.iter_mut().find(|one| one.ranking.made_ms == ranking.made_ms) {
            one.has_readers = true;
        }
    }

    fn kept_of(&self, made_ms: u64) -> Option<Arc<Ranking>> {
        let kept = self.kept.lock();
        kept.iter().find(|one| one.ranking.made_ms == made_ms).map(|one| Arc::clone(&one.ranking))
    }

    fn recent(&self, now_ms: u64) -> Option<Arc<Ranking>> {
        let kept = self.kept.lock();
        let newest = kept.last()?;
        // A clock that was set back is no reason to show the same for hours.
        let is_recent = newest.ranking.made_ms.abs_diff(now_ms) < newest.good_ms;
        is_recent.then(|| Arc::clone(&newest.ranking))
    }

    async fn present(&self, now_ms: u64) -> Result<Arc<Ranking>, Problem> {
        if let Some(recent) = self.recent(now_ms) {
            return Ok(recent);
        }
        let _making = self.making.lock().await;
        // Perhaps somebody else made one meanwhile.
        if let Some(recent) = self.recent(now_ms) {
            return Ok(recent);
        }
        let making = Stopwatch::start();
        let (torrents, has_counts) = self.source.read().await?;
        let took_ms = u64::try_from(making.elapsed().as_millis()).unwrap_or(u64::MAX);
        let good_ms = took_ms.saturating_mul(TIMES_AS_LONG).min(GOOD_MS_MAX).max(self.source.every_ms());
        Ok(self.add((torrents, has_counts), good_ms, now_ms))
    }

    fn add(&self, (torrents, has_counts): (Vec<Ranked>, bool), good_ms: u64, now_ms: u64) -> Arc<Ranking> {
        let mut kept = self.kept.lock();
        let is_taken = |ms: u64| kept.iter().any(|one| one.ranking.made_ms == ms);
        let made_ms = (now_ms..).find(|ms| !is_taken(*ms)).unwrap_or(now_ms);
        let ranking = Arc::new(Ranking::new(made_ms, torrents, has_counts));
        kept.retain(|one| one.has_readers && one.ranking.made_ms.abs_diff(now_ms) < KEPT_MS);
        kept.push(Kept { ranking: Arc::clone(&ranking), good_ms, has_readers: false });
        let torrents_in = |kept: &[Kept]| kept.iter().map(|one| one.ranking.len()).sum::<usize>();
        while kept.len() > 1 && (kept.len() > KEPT_MAX || torrents_in(&kept) > KEPT_TORRENTS_MAX) {
            kept.remove(0);
        }
        ranking
    }
}

#[cfg(test)]
mod tests;
