//! Resets watermarks if the ids of the journal went back: after a failover to a server with a clock that is behind, or
//! after the stream was deleted. New entries would be below the watermarks and be skipped.
//!
//! A watermark greater than every id of the journal cannot belong to this journal: it is reset, and the entries are
//! applied.

use std::sync::atomic::Ordering;

use domain::TorrentId;
use journal::{Batch, EntryId, Lane};
use keyspace::{read_reply, scripts};
use redis::Pipeline;

use super::RedisMirror;
use super::fold::Folded;
use crate::error::ViewsError;

impl RedisMirror {
    /// Resets the watermarks of these torrents that are greater than the journal's last id. Returns whether there were
    /// any: then the batch must be applied again. Called only if entries were skipped as repeated.
    pub(super) async fn reset_future_watermarks(
        &self,
        batch: &Batch<'_>,
        folded: &Folded,
    ) -> Result<bool, ViewsError> {
        let newest = self.parts.journal.status(Lane::Traffic).await?.last.unwrap_or(EntryId::ZERO);
        // A batch that is not from this journal proves nothing.
        if batch.arrivals.last().is_none_or(|last| last.id > newest) {
            return Ok(false);
        }
        let torrents: Vec<TorrentId> = folded.torrents.iter().map(|work| work.target.torrent).collect();
        let mut pipeline = Pipeline::new();
        for torrent in &torrents {
            pipeline.cmd("HGET").arg(self.names().state(*torrent)).arg("w");
        }
        let mut reset = 0;
        for (torrent, reply) in torrents.iter().zip(self.redis().pipeline(&pipeline).await) {
            // A key of the wrong type has been reported before.
            let Ok(Some(mark)) = read_reply::<Option<String>>(reply) else { continue };
            if mark.parse::<EntryId>().is_ok_and(|mark| mark > newest) {
                reset += u64::from(self.reset_watermark(*torrent, &mark).await?);
            }
        }
        if reset > 0 {
            tracing::warn!(torrents = reset, %newest, "ids of the journal went back; watermarks reset");
            self.counters.watermarks_reset(reset);
            // The progress in the other journal does not apply to this one.
            self.reaping.applied_ms.store(0, Ordering::Relaxed);
        }
        Ok(reset > 0)
    }

    async fn reset_watermark(&self, torrent: TorrentId, mark: &str) -> Result<bool, ViewsError> {
        let state_key = self.names().state(torrent);
        let mut call = scripts::REDIS_MIRROR_REPAIR.call(&[&state_key]);
        call.arg(mark).arg(2).arg("HSET").arg(1).arg("w").arg(EntryId::ZERO.to_string());
        Ok(self.redis().query::<i64>(&call).await? > 0)
    }
}
