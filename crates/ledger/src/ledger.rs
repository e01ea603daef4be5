//! The ledger: a view of the journal in a database.
//!
//! # Guarantees
//!
//! - A batch is one transaction: amounts, states, runs, and which entries were applied (L6).
//! - Several consumers, in one process or many, never wait for each other in a circle: rows of users are locked first,
//!   then those of torrents, each in the order of their numbers. Everything else belongs to one user.
//! - What is rejected changes nothing.
//!
//! # Deliberately absent
//!
//! Retrying: whoever reads the journal waits and tries again, and says so ([`Batch::is_retry`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use database::{Database, Migrations};
use domain::clock::Clock;
use domain::{RateCeiling, RiskEvent, Seconds, SilenceLimit, TorrentId, UserId};
use journal::{Arrival, Batch, EntryId, Lane, Rejected, View, ViewError};
use sqlx::migrate::Migrator;

use crate::admit::{Admitted, Directory, admit, is_known};
use crate::consumers::{self, Applied, ApplyError, ConsumerRef};
use crate::dead_letters;
use crate::error::LedgerError;
use crate::load::{self, Loaded};
use crate::multiplier::Multipliers;
use crate::multiplier_store::MultiplierCache;
use crate::post::{Posted, Rules, post};
use crate::prune::Pruner;
use crate::risk::RiskSink;
use crate::rows::{torrent_cell, user_cell};
use crate::sql::table::{ADD_TORRENTS, ADD_USERS};
use crate::sql::{Page, Rows};

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");
static MYSQL: Migrator = sqlx::migrate!("migrations/mysql");

/// Which migrations ran. A name of our own, since other crates keep theirs in the same database.
const MIGRATIONS_TABLE: &str = "ledger_migrations";
/// What makes the tables.
pub static MIGRATIONS: Migrations<'static> =
    Migrations { table: MIGRATIONS_TABLE, sqlite: &SQLITE, postgres: &POSTGRES, mysql: &MYSQL };
/// How often missing rows are added before giving up: once, unless somebody deletes them meanwhile.
const ATTEMPTS_MAX: u32 = 4;

/// What a site decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// The highest rate at which a client is plausible (J8).
    pub ceiling: RateCeiling,
    /// The highest rate at which all clients of a user together are plausible (J8).
    pub user_ceiling: RateCeiling,
    /// How long a peer may be silent before it is gone.
    pub silence: SilenceLimit,
    /// How long clients and their runs are kept after they were last heard of.
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

/// What the ledger has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounts {
    /// Batches committed.
    pub batches: u64,
    /// Entries applied.
    pub applied: u64,
    /// Entries left out, since they had been applied before.
    pub repeated: u64,
    /// Entries rejected.
    pub rejected: u64,
    /// Entries that count without their bytes, because the runs they belong to are no longer kept.
    pub late: u64,
    /// Risk events found.
    pub risks: u64,
    /// Runs put away, since a client had too many.
    pub settled_runs: u64,
    /// Clients dropped, since they had not been heard of for too long.
    pub pruned_clients: u64,
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
}

/// Accounts in a database, kept by the entries of the journal.
pub struct Ledger {
    pub(crate) database: Database,
    pub(crate) settings: LedgerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) multiplier_cache: MultiplierCache,
    pub(crate) pruner: Pruner,
    pub(crate) counters: LedgerCounters,
    directory: Arc<dyn Directory>,
    risk: Arc<dyn RiskSink>,
}

/// What came of one attempt to apply a batch.
enum Attempt {
    Committed(Posted),
    NoConsumer,
    RowsMissing { users: Vec<UserId>, torrents: Vec<TorrentId> },
}

impl Ledger {
    /// Opens the ledger in a database; makes its tables where they are missing.
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

    /// The database it is kept in.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// What it has done since it was opened.
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
        }
    }

    async fn apply_batch(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ApplyError> {
        let consumer = ConsumerRef { name: batch.consumer, lane: batch.lane };
        self.wait_for_directory(batch).await?;
        let multipliers = self.multiplier_cache.current(&self.database, self.clock.now()).await?;
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(batch, consumer, &multipliers).await? {
                Attempt::Committed(posted) => {
                    self.report(&posted.risks);
                    return Ok(posted.rejected);
                }
                Attempt::NoConsumer => consumer.add(&self.database).await?,
                Attempt::RowsMissing { users, torrents } => self.add_rows(&users, &torrents).await?,
            }
        }
        Err(LedgerError::RowsDeleted.into())
    }

    /// An entry is judged by a directory that is no older than the entry: what was registered just before it counts.
    async fn wait_for_directory(&self, batch: &Batch<'_>) -> Result<(), LedgerError> {
        let is_unknown = |arrival: &&Arrival| !is_known(&arrival.entry, self.directory.as_ref());
        let Some(newest) = batch.arrivals.iter().filter(is_unknown).map(|arrival| arrival.id.ms).max() else {
            return Ok(());
        };
        self.directory.catch_up(newest).await.then_some(()).ok_or(LedgerError::DirectoryBehind)
    }

    /// One transaction.
    async fn attempt(
        &self,
        batch: &Batch<'_>,
        consumer: ConsumerRef<'_>,
        multipliers: &Multipliers,
    ) -> Result<Attempt, ApplyError> {
        let now = self.clock.now();
        let mut page = Page::begin(&self.database).await?;
        let Some(before) = consumer.lock(&mut page).await? else {
            return Ok(Attempt::NoConsumer);
        };
        let already = already_applied(batch, consumer, &mut page, &before).await?;
        let (mut admitted, rejected) = admit(batch.arrivals, &already, self.directory.as_ref());
        let mut state = match load::load(&mut page, &admitted).await? {
            Loaded::State(state) => state,
            Loaded::Missing { users, torrents } => return Ok(Attempt::RowsMissing { users, torrents }),
        };
        if batch.lane == Lane::Dead {
            dead_letters::remove_applied(&mut page, &mut admitted).await?;
        }
        let rules = Rules {
            ceiling: self.settings.ceiling,
            user_ceiling: self.settings.user_ceiling,
            session_retention: self.settings.session_retention,
            silence: self.settings.silence,
            multipliers,
            now,
            steady_now: self.clock.steady(),
        };
        let mut posted = post(&mut state, &admitted, &rules);
        let applied = admitted.len() - posted.rejected.len();
        if batch.lane == Lane::Dead {
            dead_letters::save(&mut page, unrejected(&admitted, &posted.rejected), now).await?;
        }
        posted.rejected.extend(rejected);
        posted.rejected.sort_by_key(|rejected| rejected.index);
        load::save(&mut page, &state, &posted.changes).await?;
        consumer.save(&mut page, &applied_ids(batch.arrivals, &posted.rejected), &before).await?;
        page.commit().await?;
        self.count(&posted, applied, batch.arrivals.len());
        Ok(Attempt::Committed(posted))
    }

    /// Adds rows in a transaction of their own: so nobody ever waits for a row that is being made while holding
    /// others.
    async fn add_rows(&self, users: &[UserId], torrents: &[TorrentId]) -> Result<(), LedgerError> {
        let mut page = Page::begin(&self.database).await?;
        page.write_many(&ADD_USERS, &Rows::new(users.iter().map(|id| [user_cell(*id)]))).await?;
        page.commit().await?;
        let mut page = Page::begin(&self.database).await?;
        page.write_many(&ADD_TORRENTS, &Rows::new(torrents.iter().map(|id| [torrent_cell(*id)]))).await?;
        Ok(page.commit().await?)
    }

    fn report(&self, risks: &[RiskEvent]) {
        for risk in risks {
            self.risk.report(risk);
        }
    }

    fn count(&self, posted: &Posted, applied: usize, arrived: usize) {
        let add = |counter: &AtomicU64, count: usize| counter.fetch_add(count as u64, Ordering::Relaxed);
        add(&self.counters.batches, 1);
        add(&self.counters.applied, applied);
        add(&self.counters.rejected, posted.rejected.len());
        add(&self.counters.repeated, arrived - applied - posted.rejected.len());
        add(&self.counters.late, posted.late);
        add(&self.counters.risks, posted.risks.len());
        add(&self.counters.settled_runs, posted.changes.removed_runs.len());
    }
}

fn unrejected<'a>(entries: &'a [Admitted], rejected: &[Rejected]) -> impl Iterator<Item = &'a Admitted> {
    let positions: BTreeSet<usize> = rejected.iter().map(|rejected| rejected.index).collect();
    entries.iter().filter(move |entry| !positions.contains(&entry.index))
}

/// Which entries of a batch are applied once it is committed.
fn applied_ids(arrivals: &[Arrival], rejected: &[Rejected]) -> BTreeSet<EntryId> {
    let is_rejected: BTreeSet<usize> = rejected.iter().map(|rejected| rejected.index).collect();
    let applied_ids = arrivals.iter().enumerate().filter(|(index, _)| !is_rejected.contains(index));
    applied_ids.map(|(_, arrival)| arrival.id).collect()
}

/// Which entries of a batch were applied before: by this consumer, if it did not learn of its commit, or by any other,
/// if they were applied_ids over, which letters may always be. Ids are never given twice, so asking too many does no harm.
async fn already_applied(
    batch: &Batch<'_>,
    consumer: ConsumerRef<'_>,
    page: &mut Page,
    before: &Applied,
) -> Result<BTreeSet<EntryId>, LedgerError> {
    let mut already = before.ids.clone();
    let first = batch.arrivals.iter().map(|arrival| arrival.id).min();
    let may_be_others = batch.taken_from.is_some() || batch.lane == Lane::Dead;
    if let Some(first) = first.filter(|_| may_be_others) {
        already.extend(consumer.applied_by_others(page, first).await?);
    }
    Ok(already)
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
