//! The tracker's Redis layout (M4 to M10), as a view of the journal: sites that read `t:*` find it always true.
//!
//! # How
//!
//! In two phases. First, for each torrent one script applies its entries in the order of the journal: counts, peers,
//! timeouts, and a hash of ours with a watermark, so that an entry counts once however often it comes. The script says
//! what is so now, of everything that changed and of everything that a repeated entry names. Second, that is written to
//! the keys of other slots: users' sets, peers' sets, indexes and statistics. Since it says what is and not what
//! changed, it can be said again; since a crash in between makes the entries come again, it will be.
//!
//! # Guarantees
//!
//! - The later announce (`ts`) of a peer wins. A goodbye or a timeout that is older than it changes nothing.
//! - A hash of ours is the truth about a torrent; what others read follows from it. What a foreign hand writes there
//!   harms nobody else, and the sweep mends it.
//! - Statistics are the sums of what is in the indexes, whatever is repeated.
//! - One process works at a time, in the order of the journal ([`journal::OrderedConsumer`]). What another that lost its
//!   turn still had on its way is skipped by the watermark in the first phase; what it writes late in the second is
//!   found by the sweep.
//! - A sweep with a bounded step compares everything with the peers, mends what differs, and says so ([`reconcile`]).
//! - Peers whose timeout ran out are reaped by an entry in the journal, so that every view learns of it ([`reap`]).
//!
//! # Deliberately absent
//!
//! Keys of torrents that a site removed while nobody looked: they go to zero and stay. Amounts: those are the ledger's. `KEYS` and `SCAN`:
//! every torrent that was ever announced is in a sorted set of ours.
//!
//! # Layout
//!
//! - [`fold`]: from a batch of entries to the work on each torrent
//! - `torrents`: the first phase; `settle`: the second
//! - [`reap`]: peers that fell silent; `presence`, `record`: what is remembered of each for that
//! - [`reconcile`]: the sweep
//! - [`indexes`]: how many are on each torrent, for whoever has no swarms
//! - `backwards`: a journal whose ids went back
//! - [`settings`], [`counters`]: what can be set, what is counted

mod backwards;
pub mod counters;
pub mod fold;
pub mod indexes;
mod presence;
pub mod reap;
pub mod reconcile;
mod record;
pub mod settings;
mod settle;
mod torrents;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::UnixTime;
use domain::clock::Clock;
use journal::{Batch, Journal, LeaderLease, Rejected, View, ViewError};
use keyspace::{MirrorNames, Redis};

use crate::error::ViewsError;
use counters::Counting;
use reap::Reaping;
use reconcile::Round;

/// The consumer group of the view.
pub const GROUP: &str = "mirror";

pub use counters::MirrorCounters;
pub use indexes::{IndexedCounts, Indexes};
pub use reap::Found;
pub use settings::{Directory, MirrorSettings};

/// What a mirror works with.
pub struct MirrorParts {
    /// Where it is kept.
    pub redis: Redis,
    /// Under which names.
    pub names: MirrorNames,
    /// Where reaped peers are written down.
    pub journal: Arc<dyn Journal>,
    /// Whose turn it is.
    pub turn: Arc<dyn LeaderLease>,
    /// Who is who, for entries that do not say.
    pub directory: Arc<dyn Directory>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// The tracker's Redis layout.
pub struct Mirror {
    parts: MirrorParts,
    settings: MirrorSettings,
    counting: Counting,
    /// Held by whoever writes: batches and the sweep take turns.
    alone: tokio::sync::Mutex<()>,
    reaping: Reaping,
    round: tokio::sync::Mutex<Round>,
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Mirror {
    /// A moment of steady time by the wall clock.
    pub(in crate::mirror) fn date_of(&self, steady: UnixTime) -> UnixTime {
        let clock = &*self.parts.clock;
        let date = i64::from(steady.0) + i64::from(clock.now().0) - i64::from(clock.steady().0);
        UnixTime(u32::try_from(date.max(0)).unwrap_or(u32::MAX))
    }

    /// A mirror. Nothing is asked of Redis yet. `producer` names this process, and no other that ever was, where it
    /// writes into the journal.
    pub fn new(parts: MirrorParts, settings: MirrorSettings, producer: String) -> Mirror {
        Mirror {
            parts,
            settings,
            counting: Counting::default(),
            alone: tokio::sync::Mutex::default(),
            reaping: Reaping::new(producer),
            round: tokio::sync::Mutex::default(),
        }
    }

    /// What happened since the start.
    pub fn counters(&self) -> MirrorCounters {
        self.counting.read()
    }

    /// Whether this process keeps the mirror now.
    pub fn is_active(&self) -> bool {
        self.parts.turn.is_held()
    }

    /// The names it uses.
    pub fn names(&self) -> &MirrorNames {
        &self.parts.names
    }

    fn redis(&self) -> &Redis {
        &self.parts.redis
    }
}

fn transient(error: ViewsError) -> ViewError {
    ViewError::Transient { reason: error.to_string() }
}

#[async_trait]
impl View for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    /// Applies a batch. What was applied before an error stays applied, and is skipped when the batch comes again.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        let (directory, now) = (&*self.parts.directory, self.parts.clock.steady());
        let mut folded = fold::fold(batch.arrivals, directory, &self.settings, now);
        if let (true, Some(last)) = (folded.unknown() > 0, batch.arrivals.last()) {
            // What was registered just before an entry counts.
            directory.catch_up(last.id.ms).await;
            folded = fold::fold(batch.arrivals, directory, &self.settings, now);
        }
        let _alone = self.alone.lock().await;
        let news = self.apply_to_torrents(&folded.torrents).await.map_err(transient)?;
        if !self.is_active() {
            return Err(ViewError::Fenced);
        }
        if news.repeated > 0 && self.follow_backwards(batch, &folded).await.map_err(transient)? {
            let reason = "the journal's ids went back; what came since is applied now".to_owned();
            return Err(ViewError::Transient { reason });
        }
        self.settle(&news).await.map_err(transient)?;
        self.counting.applied(&folded, &news);
        if let Some(last) = batch.arrivals.last() {
            self.has_applied(last.id.ms);
        }
        Ok(Vec::new())
    }
}
