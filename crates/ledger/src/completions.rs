//! Completions per torrent, read by trackers at the start, also by those without the ledger role.

use database::{Database, Value};
use domain::TorrentId;

use crate::error::LedgerError;
use crate::rows::torrent_value;
use crate::table::COMPLETIONS;

/// Torrents per page.
pub const COMPLETIONS_PAGE: u32 = 10_000;

/// The torrents after `after` with completions; fewer than [`COMPLETIONS_PAGE`] mean the last page. An error if the
/// database has no ledger.
pub async fn completions(
    database: &Database,
    after: Option<TorrentId>,
) -> Result<Vec<(TorrentId, u64)>, LedgerError> {
    let after = after.map_or(Value::Integer(0), torrent_value);
    let values = [after, Value::Integer(COMPLETIONS_PAGE.into())];
    let rows: Vec<(i64, i64)> = database.query(COMPLETIONS, &values).await?;
    let numbers = rows.into_iter().map(|(torrent, count)| {
        let torrent = u64::try_from(torrent).ok().and_then(TorrentId::new)?;
        Some((torrent, u64::try_from(count).ok()?))
    });
    Ok(numbers.flatten().collect())
}
