//! Dead letters are applied once, whatever their id (L6).
//!
//! An operator may replay a dead letter while it is being applied: it then comes again under another id, but with the
//! same origin. So the origins of applied dead letters are stored, for the session retention time.

use std::collections::BTreeSet;

use database::{Database, Executor, Rows, SqlError, Value};
use domain::UnixTime;
use journal::{DeliveredEntry, EntryId};

use crate::admit::Admitted;
use crate::error::LedgerError;
use crate::rows::{DeadLetterRow, to_bits};
use crate::table::{FIND_DEAD_LETTERS, SAVE_DEAD_LETTERS};

const DROP: &str = "DELETE FROM ledger_letters WHERE applied_at < ?";

/// A dead letter that another program appended has no origin: its own id is used instead.
fn has_origin(arrival: &DeliveredEntry) -> bool {
    arrival.origin != arrival.id
}

fn origin_values(origin: EntryId) -> [Value; 2] {
    [to_bits(origin.ms).into(), to_bits(origin.seq).into()]
}

/// Removes dead letters that were applied before. Their users are locked, so no other consumer is applying them.
pub(crate) async fn remove_applied(
    executor: &mut impl Executor,
    entries: &mut Vec<Admitted<'_>>,
) -> Result<(), LedgerError> {
    let origins = entries.iter().filter(|entry| has_origin(entry.arrival));
    let keys = Rows::new(origins.map(|entry| origin_values(entry.arrival.origin)));
    let rows: Vec<DeadLetterRow> = executor.find(&FIND_DEAD_LETTERS, keys).await?;
    let mut seen: BTreeSet<EntryId> = rows.iter().map(DeadLetterRow::origin).collect();
    // A batch may contain the same dead letter twice.
    entries.retain(|entry| !has_origin(entry.arrival) || seen.insert(entry.arrival.origin));
    Ok(())
}

/// Stores the origins of dead letters that are applied now.
pub(crate) async fn save<'a>(
    executor: &mut impl Executor,
    applied: impl Iterator<Item = &'a DeliveredEntry>,
    now: UnixTime,
) -> Result<(), SqlError> {
    let origins = applied.filter(|arrival| has_origin(arrival));
    let rows = Rows::new(origins.map(|arrival| {
        let [ms, seq] = origin_values(arrival.origin);
        [ms, seq, i64::from(now.0).into()]
    }));
    executor.write_rows(&SAVE_DEAD_LETTERS, &rows).await.map(drop)
}

/// Deletes origins of dead letters that were applied before `before`.
pub(crate) async fn forget(database: &Database, before: UnixTime) -> Result<(), LedgerError> {
    let mut transaction = database.begin().await?;
    transaction.execute(DROP, &[i64::from(before.0).into()]).await?;
    Ok(transaction.commit().await?)
}
