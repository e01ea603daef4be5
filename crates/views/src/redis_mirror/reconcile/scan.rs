//! Chooses the torrents to check next.

use std::collections::HashSet;

use domain::TorrentId;
use keyspace::RedisMirrorKey;

use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::derived_keys::counts_error;

/// Approximate number of members per page.
const PAGE: usize = 100;

/// Over every torrent that was ever announced.
#[derive(Debug, Default)]
pub(super) struct TorrentScan {
    cursor: u64,
    /// Torrents of the page that are left to check.
    waiting: Vec<TorrentId>,
    is_last_page: bool,
}

/// Over the torrents with leechers, then over those with seeders.
#[derive(Debug, Default)]
pub(super) struct WithPeersScan {
    is_among_seeders: bool,
    offset: usize,
}

impl RedisMirror {
    /// The next torrent; none at the end of a round, after which another begins.
    pub(super) async fn next_torrent(&self, scan: &mut TorrentScan) -> Result<Option<TorrentId>, ViewsError> {
        loop {
            if let Some(torrent) = scan.waiting.pop() {
                return Ok(Some(torrent));
            }
            if std::mem::take(&mut scan.is_last_page) {
                return Ok(None);
            }
            let mut command = redis::cmd("ZSCAN");
            command.arg(self.names().index_announces()).arg(scan.cursor).arg("COUNT").arg(PAGE);
            let (cursor, found): (u64, Vec<(String, f64)>) =
                self.redis().query(&command).await.map_err(counts_error)?;
            scan.cursor = cursor;
            scan.is_last_page = cursor == 0;
            // A page may contain a torrent twice.
            let torrents: HashSet<TorrentId> =
                found.iter().filter_map(|(member, _)| member.parse().ok()).collect();
            scan.waiting = torrents.into_iter().collect();
        }
    }

    /// The next few torrents with peers. A torrent whose rank changes meanwhile may be skipped until the next pass.
    pub(super) async fn next_with_peers(
        &self,
        scan: &mut WithPeersScan,
        count: usize,
    ) -> Result<Vec<TorrentId>, ViewsError> {
        if !self.is_active() {
            return Ok(Vec::new());
        }
        let index =
            if scan.is_among_seeders { RedisMirrorKey::IndexSeeders } else { RedisMirrorKey::IndexLeechers };
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range.arg(self.names().global(index)).arg("(0").arg("+inf");
        range.arg("LIMIT").arg(scan.offset).arg(count);
        let found: Vec<String> = self.redis().query(&range).await.map_err(counts_error)?;
        scan.offset += found.len();
        if found.len() < count {
            scan.is_among_seeders = !scan.is_among_seeders;
            scan.offset = 0;
        }
        Ok(found.iter().filter_map(|member| member.parse().ok()).collect())
    }
}
