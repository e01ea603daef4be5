//! Dead letters are applied once, wherever they turn up (L6).
//!
//! An operator may send a letter again while it is being applied: then it comes a second time, in another place of its
//! lane, but with the same origin. So the origins of letters that were applied are kept, for as long as sessions are.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use database::Database;
use domain::UnixTime;
use journal::{Arrival, EntryId};

use crate::admit::Admitted;
use crate::error::LedgerError;
use crate::rows::{DeadLetterRow, to_bits};
use crate::sql::table::{FIND_DEAD_LETTERS, SAVE_DEAD_LETTERS};
use crate::sql::{Cell, Page, Rows, Statement};

static DROP: LazyLock<Statement> =
    LazyLock::new(|| Statement::portable("DELETE FROM ledger_letters WHERE applied_at < ?"));

/// One that another program wrote has no origin: its own place stands in for it, and tells nothing more.
fn has_origin(arrival: &Arrival) -> bool {
    arrival.origin != arrival.id
}

fn origin_cells(origin: EntryId) -> [Cell; 2] {
    [to_bits(origin.ms).into(), to_bits(origin.seq).into()]
}

/// Leaves out letters that were applied before. Their users are locked, so nobody else is just applying them.
pub(crate) async fn remove_applied(page: &mut Page, entries: &mut Vec<Admitted>) -> Result<(), LedgerError> {
    let origins = entries.iter().filter(|entry| has_origin(&entry.arrival));
    let keys = Rows::new(origins.map(|entry| origin_cells(entry.arrival.origin)));
    let rows: Vec<DeadLetterRow> = page.read_many(&FIND_DEAD_LETTERS, &keys).await?;
    let mut seen: BTreeSet<EntryId> = rows.iter().map(DeadLetterRow::origin).collect();
    // The same letter may also be twice in one batch.
    entries.retain(|entry| !has_origin(&entry.arrival) || seen.insert(entry.arrival.origin));
    Ok(())
}

/// Notes which letters are applied now.
pub(crate) async fn save(
    page: &mut Page,
    applied: impl Iterator<Item = &Admitted>,
    now: UnixTime,
) -> Result<(), sqlx::Error> {
    let origins = applied.map(|entry| &entry.arrival).filter(|arrival| has_origin(arrival));
    let rows = Rows::new(origins.map(|arrival| {
        let [ms, seq] = origin_cells(arrival.origin);
        [ms, seq, i64::from(now.0).into()]
    }));
    page.write_many(&SAVE_DEAD_LETTERS, &rows).await
}

/// Forgets letters that were applied before `before`.
pub(crate) async fn forget(database: &Database, before: UnixTime) -> Result<(), LedgerError> {
    let mut page = Page::begin(database).await?;
    page.write(&DROP, &[i64::from(before.0).into()]).await?;
    Ok(page.commit().await?)
}
