//! The indexes of torrents (M10), read by whoever has no swarms in memory.
//!
//! Read by `ZSCAN`, so that whatever was there all the while is found, though scores change meanwhile; Redis is not held
//! up for longer than a page takes.

use std::collections::HashMap;

use domain::TorrentId;
use keyspace::{MirrorKey, MirrorNames, Redis};

use super::derived_keys::counts_error;
use crate::error::ViewsError;

/// Members asked for at a time.
const PAGE: usize = 5000;
/// Pages of one index, at the most: enough for fifty million torrents.
const PAGES_MAX: usize = 10_000;

/// How many are on a torrent, according to the indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexedCounts {
    /// Peers that have everything.
    pub seeders: u32,
    /// Peers that do not.
    pub leechers: u32,
    /// How often it was completed.
    pub snatches: u32,
}

/// Where the indexes are. Whoever reads them need not keep them.
#[derive(Clone, Debug)]
pub struct Indexes {
    redis: Redis,
    names: MirrorNames,
}

/// Which of the three counts an index keeps.
type CountOf = fn(&mut IndexedCounts) -> &mut u32;

impl Indexes {
    /// The indexes under these names. Nothing is asked of Redis yet.
    pub fn new(redis: Redis, names: MirrorNames) -> Indexes {
        Indexes { redis, names }
    }

    /// Every torrent that is in any of the indexes. What is no torrent's number is left out.
    pub async fn read(&self) -> Result<HashMap<TorrentId, IndexedCounts>, ViewsError> {
        let mut torrents: HashMap<TorrentId, IndexedCounts> = HashMap::new();
        let indexes: [(MirrorKey, CountOf); 3] = [
            (MirrorKey::IndexSeeders, |counts| &mut counts.seeders),
            (MirrorKey::IndexLeechers, |counts| &mut counts.leechers),
            (MirrorKey::IndexSnatches, |counts| &mut counts.snatches),
        ];
        for (index, count) in indexes {
            let key = self.names.global(index);
            let mut cursor = "0".to_owned();
            for _ in 0..PAGES_MAX {
                let mut scan = redis::cmd("ZSCAN");
                scan.arg(&key).arg(&cursor).arg("COUNT").arg(PAGE);
                let (next, found): (String, Vec<(String, f64)>) =
                    self.redis.query(&scan).await.map_err(counts_error)?;
                for (torrent, score) in found {
                    if let Some(torrent) = torrent.parse().ok().and_then(TorrentId::new) {
                        *count(torrents.entry(torrent).or_default()) = score as u32;
                    }
                }
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(torrents)
    }
}
