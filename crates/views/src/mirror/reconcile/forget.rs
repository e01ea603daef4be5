//! Torrents that the site has removed: once nobody is on one, everything that the layout holds of it goes. Keys of peers
//! that left go by themselves.

use domain::{InfoHash, TorrentId};
use keyspace::scripts;

use super::own::Own;
use super::torrent::Fault;
use crate::error::ViewsError;
use crate::mirror::Mirror;
use crate::mirror::settle::of_counts;

/// Where announces of torrents that are gone stay counted.
const OF_FORGOTTEN: &str = "forgotten";

impl Mirror {
    /// Clears a removed torrent away. Whatever fails, the next round does it again: its place in the index goes last.
    pub(super) async fn forget(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
    ) -> Result<(), ViewsError> {
        let _alone = self.alone.lock().await;
        self.clear_user_sets(torrent, own).await?;
        let names = self.names();
        let owner = names.info_hash_owner(torrent, info_hash);
        let holder: Option<String> = self.redis().query(redis::cmd("GET").arg(&owner)).await?;
        let mut keys = Vec::new();
        if holder.is_some_and(|holder| holder == torrent.to_string()) {
            keys.extend([names.torrent(torrent, info_hash), names.torrent_peers(torrent, info_hash), owner]);
        }
        keys.push(names.state(torrent));
        let removals: Vec<Fault> = keys.iter().map(|key| Fault::new("DEL", key, &[])).collect();
        if self.mend(torrent, &own.watermark, &removals).await?.is_none() {
            return Ok(());
        }
        self.leave_indexes(torrent).await?;
        self.counting.forgot(1);
        tracing::info!(%torrent, "the site has removed this torrent; its keys are cleared away");
        Ok(())
    }

    /// A torrent that is in the indexes and of which nothing else is known: it was being cleared away, or its part of
    /// Redis was lost. The next announce brings it back.
    pub(super) async fn forget_lost(&self, torrent: TorrentId) -> Result<(), ViewsError> {
        let _alone = self.alone.lock().await;
        let own = self.names().state(torrent);
        let is_there: bool = self.redis().query(redis::cmd("EXISTS").arg(&own)).await?;
        if is_there || !self.is_active() {
            return Ok(());
        }
        self.leave_indexes(torrent).await?;
        tracing::warn!(%torrent, "nothing is known of a torrent in the indexes; it left them until it is announced");
        Ok(())
    }

    async fn leave_indexes(&self, torrent: TorrentId) -> Result<(), ViewsError> {
        let keys = self.count_keys();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::MIRROR_REMOVE.call(&keys);
        call.arg(OF_FORGOTTEN).arg(torrent.get());
        self.redis().query::<u64>(&call).await.map_err(of_counts)?;
        Ok(())
    }
}
