//! The ledger: a view of the journal in a database.
//!
//! # Guarantees
//!
//! - A batch is one transaction: amounts, states, runs, and the ids of applied entries (L6).
//! - Consumers, in one process or many, never deadlock: rows of users are locked first, then those of torrents, each in
//!   numeric order. All other rows belong to one user.
//! - Rejected entries change nothing.
//!
//! # Deliberately absent
//!
//! Retries: the consumer loop waits and retries, and sets [`Batch::is_retry`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use database::{Database, Migrations, Rows, at_once};
use domain::clock::Clock;
use domain::{RateCeiling, RiskEvent, Seconds, SilenceLimit, TorrentId, UserId};
use journal::{Batch, DeliveredEntry, EntryId, Rejected, View, ViewError};

use crate::admit::{Directory, is_known};
use crate::attempt::{Attempt, Attempted, Committed};
use crate::consumers::{self, ApplyError, ConsumerRef};
use crate::error::LedgerError;
use crate::multiplier_store::MultiplierCache;
use crate::prune::Pruner;
use crate::risk::RiskSink;
use crate::rows::{torrent_value, user_value};
use crate::table::{ADD_TORRENTS, ADD_USERS};

pub static MIGRATIONS: Migrations = database::migrations!("ledger_migrations" in "migrations":
    each "0001_ledger",
    each "0002_told",
    each "0003_accounts_of_torrents",
    each "0004_sums",
    each "0005_limits",
    each "0006_presence",
    each "0007_discounts",
    each "0008_packed_clients",
);
/// Attempts to add missing rows; one suffices unless they are deleted meanwhile.
const ATTEMPTS_MAX: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// The highest plausible rate of a client (J8).
    pub ceiling: RateCeiling,
    /// The highest plausible rate of all clients of a user together (J8).
    pub user_ceiling: RateCeiling,
    pub silence: SilenceLimit,
    /// Retention of clients and their runs after their last entry.
    pub session_retention: Seconds,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            ceiling: RateCeiling::default(),
            user_ceiling: RateCeiling { bytes_per_s: 2 * RateCeiling::DEFAULT.bytes_per_s },
            silence: SilenceLimit::default(),
            session_retention: Seconds(30 * 24 * 60 * 60),
        }
    }
}

/// Counters since the ledger was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounts {
    pub batches: u64,
    pub applied: u64,
    /// Entries left out because they had been applied before.
    pub repeated: u64,
    pub rejected: u64,
    /// Entries that count without their bytes, because their runs are no longer stored.
    pub late: u64,
    pub risks: u64,
    /// Runs settled because a client had too many.
    pub settled_runs: u64,
    /// Clients deleted after the retention time.
    pub pruned_clients: u64,
    /// Clients deleted before, because their accounts had too many.
    pub removed_clients: u64,
    /// Times that the cache of rows was full and began again (SQLite).
    pub cache_resets: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LedgerCounters {
    batches: AtomicU64,
    applied: AtomicU64,
    repeated: AtomicU64,
    rejected: AtomicU64,
    late: AtomicU64,
    risks: AtomicU64,
    settled_runs: AtomicU64,
    pub(crate) pruned_clients: AtomicU64,
    removed_clients: AtomicU64,
    cache_resets: AtomicU64,
}

/// Accounts in a database, computed from the journal.
pub struct Ledger {
    pub(crate) database: Database,
    pub(crate) settings: LedgerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) multiplier_cache: MultiplierCache,
    pub(crate) pruner: Pruner,
    pub(crate) counters: LedgerCounters,
    pub(crate) directory: Arc<dyn Directory>,
    risk: Arc<dyn RiskSink>,
}

impl Ledger {
    /// Opens the ledger in a database; creates its tables if missing.
    pub async fn open(
        database: Database,
        settings: LedgerSettings,
        directory: Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        risk: Arc<dyn RiskSink>,
    ) -> Result<Ledger, LedgerError> {
        database::migrate(&database, MIGRATIONS).await?;
        Ok(Ledger {
            database,
            settings,
            clock,
            multiplier_cache: MultiplierCache::default(),
            pruner: Pruner::default(),
            counters: LedgerCounters::default(),
            directory,
            risk,
        })
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    pub fn counts(&self) -> LedgerCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LedgerCounts {
            batches: read(&self.counters.batches),
            applied: read(&self.counters.applied),
            repeated: read(&self.counters.repeated),
            rejected: read(&self.counters.rejected),
            late: read(&self.counters.late),
            risks: read(&self.counters.risks),
            settled_runs: read(&self.counters.settled_runs),
            pruned_clients: read(&self.counters.pruned_clients),
            removed_clients: read(&self.counters.removed_clients),
            cache_resets: read(&self.counters.cache_resets),
        }
    }

    async fn apply_batch(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ApplyError> {
        let consumer = ConsumerRef { name: batch.consumer, lane: batch.lane };
        self.wait_for_directory(batch).await?;
        let multipliers = self.multiplier_cache.current(&self.database, self.clock.now()).await?;
        for _ in 0..ATTEMPTS_MAX {
            let attempt = Attempt::new(self, batch, Arc::clone(&multipliers));
            match self.commit(attempt).await? {
                Attempted::Committed(committed) => {
                    self.count(&committed, batch.arrivals.len());
                    self.report(&committed.posted.risks);
                    return Ok(committed.posted.rejected);
                }
                Attempted::NoConsumer => consumer.add(&self.database).await?,
                Attempted::RowsMissing { users, torrents } => self.add_rows(&users, &torrents).await?,
            }
        }
        Err(LedgerError::RowsDeleted.into())
    }

    /// One transaction.
    async fn commit(&self, attempt: Attempt) -> Result<Attempted, ApplyError> {
        if let Database::Sqlite(file) = &self.database {
            return file.write(move |mut session| at_once(attempt.run(&mut session))).await;
        }
        let mut transaction = self.database.begin().await?;
        let attempted = attempt.run(&mut transaction).await?;
        if matches!(attempted, Attempted::Committed(_)) {
            transaction.commit().await?;
        }
        Ok(attempted)
    }

    /// An entry is resolved by a directory that is no older than the entry: what was registered just before it counts.
    async fn wait_for_directory(&self, batch: &Batch<'_>) -> Result<(), LedgerError> {
        let is_unknown = |arrival: &&DeliveredEntry| !is_known(&arrival.entry, self.directory.as_ref());
        let Some(newest) = batch.arrivals.iter().filter(is_unknown).map(|arrival| arrival.id.ms).max() else {
            return Ok(());
        };
        self.directory.catch_up(newest).await.then_some(()).ok_or(LedgerError::DirectoryBehind)
    }

    /// In transactions of their own, so that no consumer waits for a new row while holding others.
    async fn add_rows(&self, users: &[UserId], torrents: &[TorrentId]) -> Result<(), LedgerError> {
        let mut transaction = self.database.begin().await?;
        transaction.write_rows(&ADD_USERS, &Rows::new(users.iter().map(|id| [user_value(*id)]))).await?;
        transaction.commit().await?;
        let mut transaction = self.database.begin().await?;
        transaction
            .write_rows(&ADD_TORRENTS, &Rows::new(torrents.iter().map(|id| [torrent_value(*id)])))
            .await?;
        Ok(transaction.commit().await?)
    }

    fn report(&self, risks: &[RiskEvent]) {
        for risk in risks {
            self.risk.report(risk);
        }
    }

    fn count(&self, committed: &Committed, arrived: usize) {
        let Committed { posted, applied, was_cache_full } = committed;
        let add = |counter: &AtomicU64, count: usize| counter.fetch_add(count as u64, Ordering::Relaxed);
        add(&self.counters.batches, 1);
        add(&self.counters.applied, *applied);
        add(&self.counters.rejected, posted.rejected.len());
        add(&self.counters.repeated, arrived - *applied - posted.rejected.len());
        add(&self.counters.late, posted.late);
        add(&self.counters.risks, posted.risks.len());
        add(&self.counters.settled_runs, posted.settled_runs);
        add(&self.counters.removed_clients, posted.removed_clients);
        add(&self.counters.cache_resets, usize::from(*was_cache_full));
    }
}

#[async_trait]
impl View for Ledger {
    fn name(&self) -> &'static str {
        "ledger"
    }

    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError> {
        Ok(self.apply_batch(batch).await?)
    }

    async fn fence(&self, consumer: &str) -> Result<(), ViewError> {
        Ok(consumers::fence(&self.database, consumer).await?)
    }

    async fn forget(&self, consumer: &str) -> Result<(), ViewError> {
        Ok(consumers::forget(&self.database, consumer, self.clock.now()).await?)
    }

    async fn resume_after(&self) -> Result<Option<EntryId>, ViewError> {
        Ok(consumers::resume_after(&self.database).await?)
    }
}
