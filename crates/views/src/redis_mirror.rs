//! The Redis mirror: the keys `t:*` in Redis (M4 to M10), as a view of the journal.
//!
//! # How
//!
//! One process writes, and keeps what it has read and written in memory ([`torrents`], in a [`keyspace::FencedSession`]).
//! A batch is written in two phases, all as absolute values. First, the entries of each torrent are applied in journal
//! order in memory, and the keys in the torrent's slot are written: counts, peers, timeouts and the private state hash,
//! whose watermark makes each entry count once. Second, what follows from this state is written to keys in other slots:
//! sets of users and peers, indexes and statistics. After a crash between the phases the entries are delivered again;
//! the watermark skips them, and the second phase is repeated.
//!
//! After any error, and if another process claimed the keys, everything in memory is dropped and read again.
//!
//! # Guarantees
//!
//! - The later announce (`ts`) of a peer wins. A stop or timeout older than it changes nothing.
//! - The state hash of a torrent is authoritative; public keys are derived from it. A value that another program writes
//!   affects that torrent only, and the reconciliation sweep repairs it.
//! - Statistics are the sums of the indexes, also after repeated entries.
//! - One process at a time writes, in journal order ([`journal::OrderedConsumer`]). Late writes of a process that lost
//!   its lease are not executed; those of the sweep are repaired by the next one.
//! - The sweep compares everything with the state in bounded steps, repairs differences, and logs them ([`reconcile`]).
//! - Expired peers are ended by an entry in the journal, so that every view applies it ([`reap`]).
//!
//! # Deliberately absent
//!
//! Keys of torrents that the site removed while the mirror did not run: their counts become zero and remain. Amounts:
//! see the ledger. `KEYS` and `SCAN`: a private sorted set has every torrent that was ever announced.
//!
//! # Layout
//!
//! - [`fold`]: from a batch of entries to those of each torrent
//! - `torrent`: the rules by which entries change a torrent; `torrents`: the first phase, `commands`: its commands;
//!   `derived_keys`: the second phase
//! - [`reap`]: expired peers; `stored_peer`, `last_announce`, `user_figures`: what the state has of peers and users
//! - [`reconcile`]: the sweep
//! - [`indexes`]: counts of each torrent, for processes without swarms
//! - `watermark_reset`: a journal whose ids went back
//! - [`settings`], [`counters`]

mod commands;
pub mod counters;
mod derived_keys;
pub mod fold;
pub mod indexes;
mod last_announce;
pub mod reap;
pub mod reconcile;
pub mod settings;
mod stored_peer;
mod torrent;
mod torrents;
mod user_figures;
mod watermark_reset;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::UnixTime;
use domain::clock::Clock;
use journal::{Batch, Journal, LeaderLease, Rejected, View, ViewError};
use keyspace::{Redis, RedisMirrorNames};

use crate::error::ViewsError;
use reap::Reaping;
use reconcile::Round;
use torrents::{ChangedState, Writer};

/// Consumer group of the view.
pub const GROUP: &str = "mirror";

pub use counters::RedisMirrorCounters;
pub use indexes::{IndexedCounts, Indexes};
pub use reap::ReapTrigger;
pub use settings::{Directory, RedisMirrorSettings};

pub struct RedisMirrorParts {
    pub redis: Redis,
    pub names: RedisMirrorNames,
    /// Timeout entries are appended to it.
    pub journal: Arc<dyn Journal>,
    pub lease: Arc<dyn LeaderLease>,
    /// Resolves users and torrents of entries without ids.
    pub directory: Arc<dyn Directory>,
    pub clock: Arc<dyn Clock>,
}

pub struct RedisMirror {
    parts: RedisMirrorParts,
    settings: RedisMirrorSettings,
    counters: RedisMirrorCounters,
    /// Held while writing: batches and the sweep exclude each other.
    writer: tokio::sync::Mutex<Writer>,
    reaping: Reaping,
    round: tokio::sync::Mutex<Round>,
}

impl fmt::Debug for RedisMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMirror").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl RedisMirror {
    /// Wall-clock time of a steady time.
    pub(in crate::redis_mirror) fn date_of(&self, steady: UnixTime) -> UnixTime {
        let clock = &*self.parts.clock;
        let date = i64::from(steady.0) + i64::from(clock.now().0) - i64::from(clock.steady().0);
        UnixTime(u32::try_from(date.max(0)).unwrap_or(u32::MAX))
    }

    /// Sends no command yet. `producer` identifies appends to the journal and must be unique to this run of this
    /// process.
    pub fn new(parts: RedisMirrorParts, settings: RedisMirrorSettings, producer: String) -> RedisMirror {
        RedisMirror {
            parts,
            settings,
            counters: RedisMirrorCounters::default(),
            writer: tokio::sync::Mutex::default(),
            reaping: Reaping::new(producer),
            round: tokio::sync::Mutex::default(),
        }
    }

    /// Since the start of the process.
    pub fn counters(&self) -> &RedisMirrorCounters {
        &self.counters
    }

    /// Whether this process holds the lease.
    pub fn is_active(&self) -> bool {
        self.parts.lease.is_held()
    }

    pub fn names(&self) -> &RedisMirrorNames {
        &self.parts.names
    }

    fn redis(&self) -> &Redis {
        &self.parts.redis
    }

    /// None if the lease was lost.
    async fn try_apply(
        &self,
        writer: &mut Writer,
        batch: &Batch<'_>,
        folded: &fold::Folded,
    ) -> Result<Option<ChangedState>, ViewsError> {
        let state = self.apply_to_torrents(writer, &folded.torrents).await?;
        if !self.is_active() {
            return Ok(None);
        }
        if state.repeated > 0 && self.reset_future_watermarks(writer, batch, folded).await? {
            let reason = "ids of the journal went back; watermarks were reset".to_owned();
            return Err(ViewsError::NotApplied { reason });
        }
        self.write_derived(writer, &state).await?;
        Ok(Some(state))
    }
}

fn transient(error: ViewsError) -> ViewError {
    ViewError::Transient { reason: error.to_string() }
}

#[async_trait]
impl View for RedisMirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    /// After an error a part may have been applied, which the watermark skips when the batch is repeated.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        let (directory, now) = (&*self.parts.directory, self.parts.clock.steady());
        let mut folded = fold::fold(batch.arrivals, directory, &self.settings, now);
        if let (true, Some(last)) = (folded.unknown() > 0, batch.arrivals.last()) {
            // Users and torrents registered just before an entry must be found.
            directory.catch_up(last.id.ms).await;
            folded = fold::fold(batch.arrivals, directory, &self.settings, now);
        }
        let (mut writer, mut attempts) = (self.writer.lock().await, 1);
        let state = loop {
            match self.try_apply(&mut writer, batch, &folded).await {
                Ok(state) => break state,
                Err(error) => self.recover(&mut writer, &mut attempts, error).map_err(transient)?,
            }
        };
        self.counters.in_memory(writer.weight());
        drop(writer);
        let Some(state) = state else { return Err(ViewError::Fenced) };
        self.counters.applied(&folded, &state);
        if let Some(last) = batch.arrivals.last() {
            self.record_applied(last.id.ms);
        }
        Ok(Vec::new())
    }
}
