//! Who applies entries, and which of them last (L6).
//!
//! # Guarantees
//!
//! - What a consumer applied is committed together with the amounts, under its name. Its row is locked while it does.
//! - Fencing waits for that lock; afterwards the consumer applies nothing any more, not even after it was forgotten.
//! - What a dead consumer had applied stays known for as long as sessions are kept. So entries that are taken over from
//!   somebody who had taken them over, and died in turn, are still not applied twice.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use database::Database;
use domain::UnixTime;
use journal::{EntryId, Lane, ViewError};

use crate::applied;
use crate::error::LedgerError;
use crate::rows::{AppliedRow, EntryIdRow, NumberRow, to_bits};
use crate::sql::{Cell, Page, Statement, read};

/// The longest name.
const NAME_BYTES_MAX: usize = 200;
/// Consumers that were forgotten and are still known, at the most: the newest. Bounds what a process that dies every
/// second can leave behind.
const FORGOTTEN_MAX: i64 = 1000;
/// The lanes that views read.
const LANES: [Lane; 2] = [Lane::Traffic, Lane::Dead];

type Lazy = LazyLock<Statement>;

static LOCK: Lazy = LazyLock::new(|| {
    Statement::locking(
        "SELECT fenced, applied, applied_max_ms AS ms, applied_max_seq AS seq FROM ledger_consumers \
         WHERE name = ? AND lane = ?",
    )
});

static ADD: Lazy = LazyLock::new(|| {
    let add = "INTO ledger_consumers (name, lane, applied) VALUES (?, ?, ?)";
    Statement {
        mysql: format!("INSERT IGNORE {add}"),
        ..Statement::portable(&format!("INSERT {add} ON CONFLICT DO NOTHING"))
    }
});

/// The greatest id there ever was is kept beside the ids: a lost group begins behind it, and it says at a glance which
/// rows cannot hold any of a batch.
static SAVE: Lazy = LazyLock::new(|| {
    Statement::portable(
        "UPDATE ledger_consumers SET applied = ?, applied_max_ms = ?, applied_max_seq = ? \
         WHERE name = ? AND lane = ?",
    )
});

static OTHERS: Lazy = LazyLock::new(|| {
    Statement::portable(
        "SELECT fenced, applied, applied_max_ms AS ms, applied_max_seq AS seq FROM ledger_consumers \
         WHERE lane = ? AND name <> ? AND applied_max_ms >= ?",
    )
});

static FENCE: Lazy = LazyLock::new(|| {
    let add = "INSERT INTO ledger_consumers (name, lane, applied, fenced) VALUES (?, ?, ?, 1)";
    Statement {
        mysql: format!("{add} ON DUPLICATE KEY UPDATE fenced = 1"),
        ..Statement::portable(&format!("{add} ON CONFLICT (name, lane) DO UPDATE SET fenced = 1"))
    }
});

static FORGET: Lazy = LazyLock::new(|| {
    Statement::portable("UPDATE ledger_consumers SET fenced = 1, forgotten_at = ? WHERE name = ?")
});

static RESUME: Lazy = LazyLock::new(|| {
    Statement::portable(
        "SELECT applied_max_ms AS ms, applied_max_seq AS seq FROM ledger_consumers WHERE lane = 'traffic' \
         UNION ALL SELECT resume_ms AS ms, resume_seq AS seq FROM ledger_state \
         ORDER BY ms DESC, seq DESC LIMIT 1",
    )
});

static KEEP_RESUME: Lazy = LazyLock::new(|| {
    Statement::portable(
        "UPDATE ledger_state SET resume_ms = ?, resume_seq = ? \
         WHERE id = 1 AND (resume_ms < ? OR (resume_ms = ? AND resume_seq < ?))",
    )
});

/// The newest one too many.
static TOO_MANY: Lazy = LazyLock::new(|| {
    Statement::portable(
        "SELECT forgotten_at AS number FROM ledger_consumers WHERE forgotten_at IS NOT NULL \
         ORDER BY forgotten_at DESC LIMIT 1 OFFSET ?",
    )
});

static DROP: Lazy =
    LazyLock::new(|| Statement::portable("DELETE FROM ledger_consumers WHERE forgotten_at <= ?"));

/// What a consumer has applied.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// Of its last batch.
    pub(crate) ids: BTreeSet<EntryId>,
    /// The greatest there ever was.
    max: EntryId,
}

/// Names a consumer on a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerRef<'a> {
    pub(crate) name: &'a str,
    pub(crate) lane: Lane,
}

impl ConsumerRef<'_> {
    fn cells(&self) -> [Cell; 2] {
        [self.name.into(), self.lane.name().into()]
    }

    /// Locks the consumer's row and gives what it applied last; none if there is no row yet.
    pub(crate) async fn lock(&self, page: &mut Page) -> Result<Option<Applied>, ApplyError> {
        let Some(row) = page.read::<AppliedRow>(&LOCK, &self.cells()).await?.pop() else {
            return Ok(None);
        };
        if row.fenced != 0 {
            return Err(ApplyError::Fenced);
        }
        Ok(Some(Applied { ids: ids_of(&row)?, max: row.place.entry_id() }))
    }

    /// Makes the consumer's row, if there is none.
    pub(crate) async fn add(&self, database: &Database) -> Result<(), LedgerError> {
        check_name(self.name)?;
        let [name, lane] = self.cells();
        let mut page = Page::begin(database).await?;
        page.write(&ADD, &[name, lane, Cell::Bytes(Vec::new())]).await?;
        Ok(page.commit().await?)
    }

    /// What others have applied of entries from `since` on.
    pub(crate) async fn applied_by_others(
        &self,
        page: &mut Page,
        since: EntryId,
    ) -> Result<BTreeSet<EntryId>, LedgerError> {
        let [name, lane] = self.cells();
        let rows: Vec<AppliedRow> = page.read(&OTHERS, &[lane, name, to_bits(since.ms).into()]).await?;
        let mut applied = BTreeSet::new();
        for row in &rows {
            applied.extend(ids_of(row)?);
        }
        Ok(applied)
    }

    /// Notes what has been applied now.
    pub(crate) async fn save(
        &self,
        page: &mut Page,
        ids: &BTreeSet<EntryId>,
        before: &Applied,
    ) -> Result<(), sqlx::Error> {
        let max = ids.last().copied().unwrap_or_default().max(before.max);
        let [name, lane] = self.cells();
        let ids = Cell::Bytes(applied::encode(ids));
        page.write(&SAVE, &[ids, to_bits(max.ms).into(), to_bits(max.seq).into(), name, lane]).await?;
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

/// Makes sure that a consumer applies nothing any more. Waits for what it is applying.
pub(crate) async fn fence(database: &Database, name: &str) -> Result<(), LedgerError> {
    check_name(name)?;
    for lane in LANES {
        let mut page = Page::begin(database).await?;
        page.write(&FENCE, &[name.into(), lane.name().into(), Cell::Bytes(Vec::new())]).await?;
        page.commit().await?;
    }
    Ok(())
}

/// Notes that nothing of a consumer is pending any more.
pub(crate) async fn forget(database: &Database, name: &str, now: UnixTime) -> Result<(), LedgerError> {
    let mut page = Page::begin(database).await?;
    page.write(&FORGET, &[i64::from(now.0).into(), name.into()]).await?;
    Ok(page.commit().await?)
}

/// The last entry of the traffic lane that anybody applied.
pub(crate) async fn resume_after(database: &Database) -> Result<Option<EntryId>, LedgerError> {
    let rows: Vec<EntryIdRow> = read(database, &RESUME, &[]).await?;
    let last = rows.first().map(EntryIdRow::entry_id);
    Ok(last.filter(|id| *id > EntryId::ZERO))
}

/// Drops consumers that were forgotten before `before`, and more of them if they are too many.
pub(crate) async fn drop_forgotten(database: &Database, before: UnixTime) -> Result<u64, LedgerError> {
    let mut page = Page::begin(database).await?;
    let too_many: Vec<NumberRow> = page.read(&TOO_MANY, &[FORGOTTEN_MAX.into()]).await?;
    let excess = too_many.first().map_or(0, |row| row.number);
    if let Some(last) = page.read::<EntryIdRow>(&RESUME, &[]).await?.first().map(EntryIdRow::entry_id) {
        let (ms, seq) = (Cell::from(to_bits(last.ms)), Cell::from(to_bits(last.seq)));
        page.write(&KEEP_RESUME, &[ms.clone(), seq.clone(), ms.clone(), ms, seq]).await?;
    }
    let dropped = page.write(&DROP, &[i64::from(before.0).max(excess).into()]).await?;
    page.commit().await?;
    Ok(dropped)
}

/// Why a batch was not applied.
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

impl From<sqlx::Error> for ApplyError {
    fn from(error: sqlx::Error) -> ApplyError {
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
