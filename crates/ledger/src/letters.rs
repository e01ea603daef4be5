//! Which dead letters have been applied.
//!
//! A letter may be moved while it is being applied: an operator replays it, and it comes again under another id. Its
//! origin stays, and is committed together with its amounts, so that it counts once wherever it was moved (L6). Letters
//! are few, so each may have a row.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use domain::UnixTime;
use journal::{Batch, EntryId, Lane};

use crate::error::LedgerError;
use crate::rows::{PlaceRow, to_bits};
use crate::sql::{Cell, Page, Statement};

static FIND: LazyLock<Statement> = LazyLock::new(|| {
    Statement::locking(
        "SELECT origin_ms AS ms, origin_seq AS seq FROM ledger_letters WHERE origin_ms = ? AND origin_seq = ?",
    )
});

static ADD: LazyLock<Statement> = LazyLock::new(|| {
    Statement::portable("INSERT INTO ledger_letters (origin_ms, origin_seq, applied_at) VALUES (?, ?, ?)")
});

static DROP: LazyLock<Statement> =
    LazyLock::new(|| Statement::portable("DELETE FROM ledger_letters WHERE applied_at < ?"));

fn cells(origin: EntryId) -> [Cell; 2] {
    [to_bits(origin.ms).into(), to_bits(origin.seq).into()]
}

/// Which letters of a batch have been applied before, by the ids they have now.
pub(crate) async fn already_applied(
    batch: &Batch<'_>,
    page: &mut Page,
) -> Result<BTreeSet<EntryId>, LedgerError> {
    let mut already = BTreeSet::new();
    if batch.lane == Lane::Dead {
        for arrival in batch.arrivals {
            if !page.read::<PlaceRow>(&FIND, &cells(arrival.origin)).await?.is_empty() {
                already.insert(arrival.id);
            }
        }
    }
    Ok(already)
}

/// Notes which letters are applied now. Should two consumers come to that at once, one of them fails and tries again.
pub(crate) async fn save(
    batch: &Batch<'_>,
    taken: &BTreeSet<EntryId>,
    page: &mut Page,
    now: UnixTime,
) -> Result<(), LedgerError> {
    if batch.lane != Lane::Dead {
        return Ok(());
    }
    for arrival in batch.arrivals.iter().filter(|arrival| taken.contains(&arrival.id)) {
        let [ms, seq] = cells(arrival.origin);
        page.write(&ADD, &[ms, seq, i64::from(now.0).into()]).await?;
    }
    Ok(())
}

/// Forgets letters that were applied before `before`.
pub(crate) async fn drop_old(page: &mut Page, before: UnixTime) -> Result<(), LedgerError> {
    page.write(&DROP, &[i64::from(before.0).into()]).await?;
    Ok(())
}
