//! What torrents are called, for lists that know them by number.

use std::collections::HashMap;

use access::Torrent;
use domain::TorrentId;

use crate::problem::Problem;
use crate::site::Site;

/// Torrents by their numbers.
pub(crate) type Torrents = HashMap<TorrentId, Torrent>;

/// The torrents with these numbers, as far as they are still there: one question for a whole page.
pub(super) async fn load(site: &Site, ids: impl IntoIterator<Item = TorrentId>) -> Result<Torrents, Problem> {
    let mut ids: Vec<TorrentId> = ids.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let found = site.parts.store.torrents_with(&ids).await?;
    Ok(found.into_iter().map(|torrent| (torrent.id, torrent)).collect())
}
