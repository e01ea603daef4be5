//! Loads the torrents of a page, for their names.

use std::collections::HashMap;

use access::Torrent;
use domain::TorrentId;

use crate::problem::Problem;
use crate::site::Site;

pub(crate) type Torrents = HashMap<TorrentId, Torrent>;

/// One query for a page; removed torrents are missing from the result.
pub(super) async fn load(site: &Site, ids: impl IntoIterator<Item = TorrentId>) -> Result<Torrents, Problem> {
    let mut ids: Vec<TorrentId> = ids.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let found = site.parts.store.torrents_with(&ids).await?;
    Ok(found.into_iter().map(|torrent| (torrent.id, torrent)).collect())
}
