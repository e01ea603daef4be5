//! A journal peer_keys ids went back: after a failover to a server peer_keys clock is behind, or after the stream was deleted. Its
//! new entries are behind our watermarks and would be taken for old ones, for as long as that lasts.
//!
//! A watermark that is greater than every id that the journal ever gave cannot be of this journal: it is taken back, and
//! the entries are applied.

use std::sync::atomic::Ordering;

use domain::TorrentId;
use journal::{Batch, EntryId, Lane};
use keyspace::{read_reply, scripts};
use redis::Pipeline;

use super::Mirror;
use super::fold::Folded;
use crate::error::ViewsError;

impl Mirror {
    /// Takes back the watermarks of these torrents that no entry of the journal can have set. True if there were any:
    /// then the batch has to be applied again. Asked only where entries were taken for old ones.
    pub(super) async fn reset_future_watermarks(
        &self,
        batch: &Batch<'_>,
        folded: &Folded,
    ) -> Result<bool, ViewsError> {
        let newest = self.parts.journal.status(Lane::Traffic).await?.last.unwrap_or(EntryId::ZERO);
        // What did not come from this journal says nothing about it.
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
            // A key that holds something else was seen to before.
            let Ok(Some(mark)) = read_reply::<Option<String>>(reply) else { continue };
            if mark.parse::<EntryId>().is_ok_and(|mark| mark > newest) {
                reset += u64::from(self.reset_watermark(*torrent, &mark).await?);
            }
        }
        if reset > 0 {
            tracing::warn!(torrents = reset, %newest, "the journal's ids went back; watermarks are taken back");
            self.counting.watermarks_reset(reset);
            // How far we had got in the other one says nothing any longer.
            self.reaping.applied_ms.store(0, Ordering::Relaxed);
        }
        Ok(reset > 0)
    }

    async fn reset_watermark(&self, torrent: TorrentId, mark: &str) -> Result<bool, ViewsError> {
        let state_key = self.names().state(torrent);
        let mut call = scripts::MIRROR_REPAIR.call(&[&state_key]);
        call.arg(mark).arg(2).arg("HSET").arg(1).arg("w").arg(EntryId::ZERO.to_string());
        Ok(self.redis().query::<i64>(&call).await? > 0)
    }
}
