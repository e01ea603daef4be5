//! Multipliers in the database, and their cache.
//!
//! Adding a multiplier increments a version in the same transaction; each process checks it at most once per second and
//! reloads all multipliers when it has changed. So a new multiplier is in force everywhere within a second.

use std::sync::{Arc, Mutex, PoisonError};

use database::{Database, Statement, Value};
use domain::{RateCeiling, UnixTime};
use journal::TrafficEntry;

use crate::discount::Discounts;
use crate::error::LedgerError;
use crate::figures::AccountKey;
use crate::ledger::Ledger;
use crate::multiplier::{InForce, Multiplier, Multipliers, NewMultiplier};
use crate::post::plausible;
use crate::rows::{MultiplierRow, multiplier_values};
use crate::run::Counters;

const NOTE_CHARS_MAX: usize = 500;

/// Changes whenever a multiplier is added or its end is changed, or a discount changes.
macro_rules! state {
    ($sum:literal) => {
        concat!(
            "SELECT multipliers_version + (SELECT ",
            $sum,
            " FROM ledger_multipliers), (SELECT version FROM ledger_discount_state WHERE id = 1)",
            " FROM ledger_state WHERE id = 1"
        )
    };
}

const STATE: Statement = Statement::each(
    state!("coalesce(sum(ends_at), 0)"),
    state!("coalesce(sum(ends_at), 0)::BIGINT"),
    state!("CAST(coalesce(sum(ends_at), 0) AS SIGNED)"),
);

/// Number of multipliers ever added, and removed from the table (by versions that removed them).
const VERSION: &str = "SELECT multipliers_version AS number FROM ledger_state WHERE id = 1";

const RAISE_VERSION: &str =
    "UPDATE ledger_state SET multipliers_version = multipliers_version + 1 WHERE id = 1";

const LIST: &str = "SELECT id, scope, subject, upload_percent, download_percent, starts_at, ends_at, note \
     FROM ledger_multipliers ORDER BY id";

const ADD: &str = "INSERT INTO ledger_multipliers \
         (scope, subject, upload_percent, download_percent, starts_at, ends_at, note) \
         VALUES (?, ?, ?, ?, ?, ?, ?)";

const LAST: &str = "SELECT max(id) AS number FROM ledger_multipliers";

const END: &str = "UPDATE ledger_multipliers SET ends_at = CASE WHEN starts_at > ? THEN starts_at ELSE ? END \
         WHERE id = ? AND (ends_at IS NULL OR (ends_at > ? AND ends_at > starts_at))";

/// Multipliers as last loaded.
#[derive(Debug, Default)]
pub(crate) struct MultiplierCache(Mutex<Option<Known>>);

#[derive(Clone, Debug)]
struct Known {
    /// Of multipliers, and of discounts.
    version: (i64, i64),
    looked_at: UnixTime,
    multipliers: Arc<Multipliers>,
}

impl MultiplierCache {
    /// The multipliers, at most a second old.
    pub(crate) async fn current(
        &self,
        database: &Database,
        now: UnixTime,
    ) -> Result<Arc<Multipliers>, LedgerError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = &known
            && known.looked_at == now
        {
            return Ok(Arc::clone(&known.multipliers));
        }
        let version: (i64, i64) = database.query_one(STATE, &[]).await?.unwrap_or_default();
        let multipliers = match known {
            Some(known) if known.version == version => known.multipliers,
            _ => {
                let discounts = Discounts::load(database).await?;
                Arc::new(Multipliers::new(list(database).await?).with_discounts(discounts))
            }
        };
        let known = Known { version, looked_at: now, multipliers: Arc::clone(&multipliers) };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(multipliers)
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

async fn list(database: &Database) -> Result<Vec<Multiplier>, LedgerError> {
    let rows: Vec<MultiplierRow> = database.query(LIST, &[]).await?;
    // A malformed row, written by hand, must not stop the ledger.
    let readable = rows.iter().filter_map(|row| {
        row.multiplier()
            .inspect_err(|error| tracing::warn!(%error, "multiplier ignored: its row is malformed"))
            .ok()
    });
    Ok(readable.collect())
}

/// The multipliers and the ceiling, to compute what a past entry was credited.
#[derive(Clone, Debug)]
pub struct PastMultipliers {
    multipliers: Arc<Multipliers>,
    was_any_removed: bool,
    ceiling: RateCeiling,
}

impl PastMultipliers {
    /// The part of an entry's claim that is credited, before multipliers: for other producers no more than the ceiling
    /// allows.
    pub fn plausible(&self, entry: &TrafficEntry) -> Counters {
        plausible(entry, self.ceiling)
    }

    /// The multipliers for an entry; none if unknown, because an older version removed a multiplier that may have been
    /// in force. A multiplier added later for a past period is assumed to have existed.
    pub fn in_force(&self, key: AccountKey, at: UnixTime) -> Option<InForce> {
        (!self.was_any_removed).then(|| self.multipliers.in_force(key.user, key.torrent, at))
    }
}

impl Ledger {
    /// The multipliers that past entries were credited by, as far as known.
    pub async fn past_multipliers(&self) -> Result<PastMultipliers, LedgerError> {
        let rows: Vec<i64> = self.database.query(VERSION, &[]).await?;
        let changes = rows.first().map_or(0, |row| row.unsigned_abs());
        let all = list(&self.database).await?;
        // The version counts every addition and removal. Without removals it equals the number of rows. A row added
        // between the two queries makes the rows more, not fewer.
        let was_any_removed = changes > all.len() as u64;
        let discounts = Discounts::load(&self.database).await?;
        let multipliers = Arc::new(Multipliers::new(all).with_discounts(discounts));
        Ok(PastMultipliers { multipliers, was_any_removed, ceiling: self.settings.ceiling })
    }

    /// Including past and future ones.
    pub async fn multipliers(&self) -> Result<Vec<Multiplier>, LedgerError> {
        list(&self.database).await
    }

    /// Applies to entries that are applied from now on, by their `ts`.
    pub async fn add_multiplier(&self, terms: NewMultiplier) -> Result<Multiplier, LedgerError> {
        if terms.ends_at.is_some_and(|end| end <= terms.starts_at) {
            return Err(LedgerError::EndsBeforeItStarts);
        }
        if terms.note.chars().count() > NOTE_CHARS_MAX {
            return Err(LedgerError::NoteTooLong { max: NOTE_CHARS_MAX });
        }
        let mut transaction = self.database.begin().await?;
        // Incrementing the version comes first: concurrent additions wait for it, so the last row is ours.
        transaction.execute(RAISE_VERSION, &[]).await?;
        transaction.execute(ADD, &multiplier_values(&terms)).await?;
        let added: Vec<i64> = transaction.query(LAST, &[]).await?;
        transaction.commit().await?;
        self.multiplier_cache.clear();
        let id = added.first().map_or(0, |row| row.unsigned_abs());
        Ok(Multiplier { id, terms })
    }

    /// Ends a multiplier with this second; what it has added stays, and so does its row, which [`PastMultipliers`]
    /// needs. False if there is none with this id, or if it has ended.
    pub async fn end_multiplier(&self, id: u64) -> Result<bool, LedgerError> {
        let Ok(id) = i64::try_from(id) else {
            return Ok(false);
        };
        let mut transaction = self.database.begin().await?;
        // Entries of this second may have been credited by it already.
        let end = Value::Integer(i64::from(self.clock.now().0) + 1);
        let ended = transaction.execute(END, &[end.clone(), end.clone(), Value::Integer(id), end]).await?;
        transaction.commit().await?;
        self.multiplier_cache.clear();
        Ok(ended > 0)
    }
}
