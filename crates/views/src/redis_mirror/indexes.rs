//! Reads the indexes of torrents (M10), for processes without swarms in memory.
//!
//! `ZSCAN` returns every member that exists throughout, although scores change meanwhile, and blocks Redis for a page
//! only.

use std::collections::HashMap;

use domain::TorrentId;
use keyspace::{Redis, RedisMirrorKey, RedisMirrorNames};

use super::derived_keys::counts_error;
use crate::error::ViewsError;

/// Members per page.
const PAGE: usize = 5000;
/// Bound of pages per index: fifty million torrents.
const PAGES_MAX: usize = 10_000;

/// Counts of a torrent, according to the indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexedCounts {
    pub seeders: u32,
    pub leechers: u32,
    pub snatches: u32,
}

/// Readers need not be the process that writes the mirror.
#[derive(Clone, Debug)]
pub struct Indexes {
    redis: Redis,
    names: RedisMirrorNames,
}

/// The count that an index has.
type CountOf = fn(&mut IndexedCounts) -> &mut u32;

impl Indexes {
    /// Sends no command yet.
    pub fn new(redis: Redis, names: RedisMirrorNames) -> Indexes {
        Indexes { redis, names }
    }

    /// All torrents of the indexes. Members that are not torrent ids are skipped.
    pub async fn read(&self) -> Result<HashMap<TorrentId, IndexedCounts>, ViewsError> {
        let mut torrents: HashMap<TorrentId, IndexedCounts> = HashMap::new();
        let indexes: [(RedisMirrorKey, CountOf); 3] = [
            (RedisMirrorKey::IndexSeeders, |counts| &mut counts.seeders),
            (RedisMirrorKey::IndexLeechers, |counts| &mut counts.leechers),
            (RedisMirrorKey::IndexSnatches, |counts| &mut counts.snatches),
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
