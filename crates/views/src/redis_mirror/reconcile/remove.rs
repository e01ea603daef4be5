//! Torrents that the site has removed: once a torrent has no peers, all its keys are deleted. Keys of inactive peers
//! expire by themselves.

use domain::{InfoHash, TorrentId};
use keyspace::scripts;

use super::state::TorrentState;
use super::torrent::Repair;
use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::derived_keys::counts_error;
use crate::redis_mirror::torrents::Writer;

/// Member of the index under which announces of removed torrents stay counted.
const REMOVED_ANNOUNCES: &str = "forgotten";

impl RedisMirror {
    /// Deletes a removed torrent. The index comes last, so that the next round repeats a failed call.
    pub(super) async fn remove_torrent(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        state: &TorrentState,
    ) -> Result<(), ViewsError> {
        let mut writer = self.writer.lock().await;
        self.clear_user_sets(&mut writer, torrent, state).await?;
        let names = self.names();
        let owner = names.info_hash_owner(torrent, info_hash);
        let holder: Option<String> = self.redis().query(redis::cmd("GET").arg(&owner)).await?;
        let mut keys = Vec::new();
        if holder.is_some_and(|holder| holder == torrent.to_string()) {
            keys.extend([names.torrent(torrent, info_hash), names.torrent_peers(torrent, info_hash), owner]);
        }
        keys.push(names.state(torrent));
        let removals: Vec<Repair> = keys.iter().map(|key| Repair::new("DEL", key, &[])).collect();
        if self.apply_repairs(&mut writer, torrent, &state.watermark, &removals).await?.is_none() {
            return Ok(());
        }
        self.remove_from_indexes(&mut writer, torrent).await?;
        self.counters.removed(1);
        tracing::info!(%torrent, "torrent was removed by the site; its keys are deleted");
        Ok(())
    }

    /// A torrent in the indexes without state hash: its removal was interrupted, or a part of Redis was lost. The next
    /// announce adds it again.
    pub(super) async fn remove_orphan(&self, torrent: TorrentId) -> Result<(), ViewsError> {
        let mut writer = self.writer.lock().await;
        let state_key = self.names().state(torrent);
        let is_there: bool = self.redis().query(redis::cmd("EXISTS").arg(&state_key)).await?;
        if is_there || !self.is_active() {
            return Ok(());
        }
        self.remove_from_indexes(&mut writer, torrent).await?;
        tracing::warn!(%torrent, "torrent without state removed from the indexes until it is announced");
        Ok(())
    }

    async fn remove_from_indexes(&self, writer: &mut Writer, torrent: TorrentId) -> Result<(), ViewsError> {
        writer.forget(torrent);
        writer.stats = None;
        let keys = self.count_keys();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::REDIS_MIRROR_REMOVE.call(&keys);
        call.arg(REMOVED_ANNOUNCES).arg(torrent.get());
        self.redis().query::<u64>(&call).await.map_err(counts_error)?;
        Ok(())
    }
}
