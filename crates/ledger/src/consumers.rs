//! The consumers of the ledger, and the entries each applied last (L6).
//!
//! # Guarantees
//!
//! - The ids of applied entries are committed together with the amounts, under the consumer's name, while its row is
//!   locked.
//! - Fencing waits for that lock; afterwards the consumer applies nothing more, not even after its row is marked
//!   forgotten.
//! - The ids applied by a dead consumer are kept for the session retention time. So entries that are taken over twice,
//!   because the second consumer died as well, are not applied twice.

use std::collections::BTreeSet;

use database::{Database, Executor, SqlError, Value};
use domain::UnixTime;
use journal::{EntryId, Lane, ViewError};

use crate::applied;
use crate::error::LedgerError;
use crate::rows::{AppliedRow, EntryIdRow, to_bits};

const NAME_BYTES_MAX: usize = 200;
/// Forgotten consumers kept at most: the newest. Bounds what a process that crashes every second can leave behind.
const FORGOTTEN_MAX: i64 = 1000;
/// The lanes that views read.
const LANES: [Lane; 2] = [Lane::Traffic, Lane::Dead];

const LOCK: &str = "SELECT fenced, applied, applied_max_ms, applied_max_seq FROM ledger_consumers \
     WHERE name = ? AND lane = ? {lock}";

const ADD: &str = "{insert or ignore} ledger_consumers (name, lane, applied) VALUES (?, ?, ?) {or ignore}";

/// The greatest id ever applied is stored beside the ids: a deleted group restarts after it, and it shows which rows
/// cannot contain any entry of a batch.
const SAVE: &str = "UPDATE ledger_consumers SET applied = ?, applied_max_ms = ?, applied_max_seq = ? \
         WHERE name = ? AND lane = ?";

const OTHERS: &str = "SELECT fenced, applied, applied_max_ms AS ms, applied_max_seq AS seq FROM ledger_consumers \
         WHERE lane = ? AND name <> ? AND applied_max_ms >= ?";

const FENCE: &str = "INSERT INTO ledger_consumers (name, lane, applied, fenced) VALUES (?, ?, ?, 1) \
     {upsert name,lane} fenced = 1";

const FORGET: &str = "UPDATE ledger_consumers SET fenced = 1, forgotten_at = ? WHERE name = ?";

const RESUME: &str = "SELECT applied_max_ms AS ms, applied_max_seq AS seq FROM ledger_consumers WHERE lane = 'traffic' \
         UNION ALL SELECT resume_ms AS ms, resume_seq AS seq FROM ledger_state \
         ORDER BY ms DESC, seq DESC LIMIT 1";

const KEEP_RESUME: &str = "UPDATE ledger_state SET resume_ms = ?, resume_seq = ? \
         WHERE id = 1 AND (resume_ms < ? OR (resume_ms = ? AND resume_seq < ?))";

/// The newest row beyond the limit.
const TOO_MANY: &str = "SELECT forgotten_at AS number FROM ledger_consumers WHERE forgotten_at IS NOT NULL \
         ORDER BY forgotten_at DESC LIMIT 1 OFFSET ?";

const DROP: &str = "DELETE FROM ledger_consumers WHERE forgotten_at <= ?";

#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// Of the last batch.
    pub(crate) ids: BTreeSet<EntryId>,
    /// The greatest ever applied.
    max: EntryId,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerRef<'a> {
    pub(crate) name: &'a str,
    pub(crate) lane: Lane,
}

impl ConsumerRef<'_> {
    fn values(&self) -> [Value; 2] {
        [self.name.into(), self.lane.name().into()]
    }

    /// Locks the consumer's row and returns what it applied last; none if there is no row yet.
    pub(crate) async fn lock(&self, executor: &mut impl Executor) -> Result<Option<Applied>, ApplyError> {
        let Some(row) = executor.query::<AppliedRow>(LOCK, &self.values()).await?.pop() else {
            return Ok(None);
        };
        if row.fenced != 0 {
            return Err(ApplyError::Fenced);
        }
        Ok(Some(Applied { ids: ids_of(&row)?, max: row.place.entry_id() }))
    }

    /// Creates the consumer's row, if missing.
    pub(crate) async fn add(&self, database: &Database) -> Result<(), LedgerError> {
        check_name(self.name)?;
        let [name, lane] = self.values();
        let mut transaction = database.begin().await?;
        transaction.execute(ADD, &[name, lane, Value::Bytes(Vec::new())]).await?;
        Ok(transaction.commit().await?)
    }

    /// Entries from `since` on that other consumers have applied.
    pub(crate) async fn applied_by_others(
        &self,
        executor: &mut impl Executor,
        since: EntryId,
    ) -> Result<BTreeSet<EntryId>, LedgerError> {
        let [name, lane] = self.values();
        let rows: Vec<AppliedRow> = executor.query(OTHERS, &[lane, name, to_bits(since.ms).into()]).await?;
        let mut applied = BTreeSet::new();
        for row in &rows {
            applied.extend(ids_of(row)?);
        }
        Ok(applied)
    }

    pub(crate) async fn save(
        &self,
        executor: &mut impl Executor,
        ids: &BTreeSet<EntryId>,
        before: &Applied,
    ) -> Result<(), SqlError> {
        let max = ids.last().copied().unwrap_or_default().max(before.max);
        let [name, lane] = self.values();
        let ids = Value::Bytes(applied::encode(ids));
        executor.execute(SAVE, &[ids, to_bits(max.ms).into(), to_bits(max.seq).into(), name, lane]).await?;
        Ok(())
    }
}

fn ids_of(row: &AppliedRow) -> Result<BTreeSet<EntryId>, LedgerError> {
    applied::decode(&row.applied).ok_or(LedgerError::DamagedConsumer)
}

fn check_name(name: &str) -> Result<(), LedgerError> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !is_plain {
        let name = name.chars().take(60).collect();
        return Err(LedgerError::ConsumerName { name });
    }
    Ok(())
}

/// After this returns, the consumer applies nothing more. Waits for the batch it is applying.
pub(crate) async fn fence(database: &Database, name: &str) -> Result<(), LedgerError> {
    check_name(name)?;
    for lane in LANES {
        let mut transaction = database.begin().await?;
        transaction.execute(FENCE, &[name.into(), lane.name().into(), Value::Bytes(Vec::new())]).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Marks a consumer without pending entries.
pub(crate) async fn forget(database: &Database, name: &str, now: UnixTime) -> Result<(), LedgerError> {
    let mut transaction = database.begin().await?;
    transaction.execute(FORGET, &[i64::from(now.0).into(), name.into()]).await?;
    Ok(transaction.commit().await?)
}

/// The last entry of the traffic lane that any consumer applied.
pub(crate) async fn resume_after(database: &Database) -> Result<Option<EntryId>, LedgerError> {
    let rows: Vec<EntryIdRow> = database.query(RESUME, &[]).await?;
    let last = rows.first().map(EntryIdRow::entry_id);
    Ok(last.filter(|id| *id > EntryId::ZERO))
}

/// Deletes consumers that were forgotten before `before`, and further ones beyond the limit.
pub(crate) async fn drop_forgotten(database: &Database, before: UnixTime) -> Result<u64, LedgerError> {
    let mut transaction = database.begin().await?;
    let too_many: Vec<i64> = transaction.query(TOO_MANY, &[FORGOTTEN_MAX.into()]).await?;
    let excess = too_many.first().map_or(0, |row| *row);
    if let Some(last) = transaction.query::<EntryIdRow>(RESUME, &[]).await?.first().map(EntryIdRow::entry_id)
    {
        let (ms, seq) = (Value::from(to_bits(last.ms)), Value::from(to_bits(last.seq)));
        transaction.execute(KEEP_RESUME, &[ms.clone(), seq.clone(), ms.clone(), ms, seq]).await?;
    }
    let dropped = transaction.execute(DROP, &[i64::from(before.0).max(excess).into()]).await?;
    transaction.commit().await?;
    Ok(dropped)
}

#[derive(Debug)]
pub(crate) enum ApplyError {
    Fenced,
    Failed(LedgerError),
}

impl From<LedgerError> for ApplyError {
    fn from(error: LedgerError) -> ApplyError {
        ApplyError::Failed(error)
    }
}

impl From<SqlError> for ApplyError {
    fn from(error: SqlError) -> ApplyError {
        ApplyError::Failed(error.into())
    }
}

impl From<ApplyError> for ViewError {
    fn from(error: ApplyError) -> ViewError {
        match error {
            ApplyError::Fenced => ViewError::Fenced,
            ApplyError::Failed(error) => error.into(),
        }
    }
}
