//! Resets watermarks if the ids of the journal went back: after a failover to a server with a clock that is behind, or
//! after the stream was deleted. New entries would be below the watermarks and be skipped.
//!
//! A watermark greater than every id of the journal cannot belong to this journal: it is reset, and the entries are
//! applied.

use std::sync::atomic::Ordering;

use journal::{Batch, EntryId, Lane};
use keyspace::read_reply;

use super::RedisMirror;
use super::fold::Folded;
use super::torrents::Writer;
use crate::error::ViewsError;

impl RedisMirror {
    /// Resets the watermarks of these torrents that are greater than the journal's last id. Returns whether there were
    /// any: then the batch must be applied again. Called only if entries were skipped as repeated.
    pub(super) async fn reset_future_watermarks(
        &self,
        writer: &mut Writer,
        batch: &Batch<'_>,
        folded: &Folded,
    ) -> Result<bool, ViewsError> {
        let newest = self.parts.journal.status(Lane::Traffic).await?.last.unwrap_or(EntryId::ZERO);
        // A batch that is not from this journal proves nothing.
        if batch.arrivals.last().is_none_or(|last| last.id > newest) {
            return Ok(false);
        }
        let mut reset = Vec::new();
        for work in &folded.torrents {
            let id = work.target.torrent;
            // A key of the wrong type has been reported before.
            let Some(torrent) = writer.torrent_mut(id) else { continue };
            if torrent.watermark > newest {
                torrent.watermark = EntryId::ZERO;
                let state = self.names().state(id);
                reset.push(redis::cmd("HSET").arg(state).arg("w").arg(EntryId::ZERO.to_string()).to_owned());
            }
        }
        let count = reset.len() as u64;
        for reply in self.session(writer).await?.write(reset).await? {
            read_reply::<u64>(reply)?;
        }
        let reset = count;
        if reset > 0 {
            tracing::warn!(torrents = reset, %newest, "ids of the journal went back; watermarks reset");
            self.counters.watermarks_reset(reset);
            // The progress in the other journal does not apply to this one.
            self.reaping.applied_ms.store(0, Ordering::Relaxed);
        }
        Ok(reset > 0)
    }
}
