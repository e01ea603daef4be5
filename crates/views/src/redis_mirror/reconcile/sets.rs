//! The sets of a torrent's users (M8) and peers (M7): read in pages; only differences are written. Batches wait for one
//! page, never for a whole torrent.

use domain::{PeerId, TorrentId, UserId};
use keyspace::read_reply;
use redis::{Cmd, Pipeline};

use super::state::TorrentState;
use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::stored_peer::StoredPeer;
use crate::redis_mirror::torrents::{ChangedState, Writer, is_damage};
use crate::redis_mirror::user_figures::UserFigures;

/// Users or peers per page.
const PAGE: usize = 250;

impl RedisMirror {
    pub(super) async fn repair_sets(
        &self,
        torrent: TorrentId,
        state: &TorrentState,
    ) -> Result<u64, ViewsError> {
        let mut repaired = 0;
        let users: Vec<UserId> = state.users.keys().copied().collect();
        for users in users.chunks(PAGE) {
            repaired += self.repair_user_sets(torrent, users).await?;
        }
        let peers: Vec<PeerId> = state.peers.keys().copied().collect();
        for peers in peers.chunks(PAGE) {
            repaired += self.repair_peer_sets(torrent, peers).await?;
        }
        if repaired > 0 {
            tracing::warn!(%torrent, members = repaired, "mirror sweep: repaired sets of users and peers");
        }
        Ok(repaired)
    }

    /// Present values of fields of the state hash.
    async fn state_fields(
        &self,
        torrent: TorrentId,
        fields: impl Iterator<Item = String>,
    ) -> Result<Vec<Option<String>>, ViewsError> {
        let mut read = redis::cmd("HMGET");
        read.arg(self.names().state(torrent));
        for field in fields {
            read.arg(field);
        }
        Ok(self.redis().query(&read).await?)
    }

    async fn repair_user_sets(&self, torrent: TorrentId, users: &[UserId]) -> Result<u64, ViewsError> {
        let _writer = self.writer.lock().await;
        let texts = self.state_fields(torrent, users.iter().map(|user| format!("u{user}"))).await?;
        let threshold = u64::from(self.settings.hit_and_run_active.0);
        let mut wanted = Vec::new();
        for (user, text) in users.iter().zip(texts) {
            let Some(figures) = text.as_deref().and_then(UserFigures::parse) else { continue };
            wanted.extend(self.names().user_sets(*user).into_iter().zip(figures.memberships(threshold)));
        }
        self.write_differences(torrent, &wanted).await
    }

    async fn repair_peer_sets(&self, torrent: TorrentId, peers: &[PeerId]) -> Result<u64, ViewsError> {
        let mut writer = self.writer.lock().await;
        let texts = self.state_fields(torrent, peers.iter().map(|peer| format!("p{peer}"))).await?;
        let is_active = |text: &Option<String>| {
            StoredPeer::parse_all(text.as_deref().unwrap_or_default()).iter().any(|stored| stored.is_active)
        };
        let active = peers.iter().zip(&texts).filter(|(_, text)| is_active(text)).map(|(peer, _)| *peer);
        let active: Vec<PeerId> = active.collect();
        let wanted: Vec<_> = active.iter().map(|peer| (self.names().peer_torrents(peer), true)).collect();
        let repaired = self.write_differences(torrent, &wanted).await?;
        self.keep_peer_sets(&mut writer, &active).await?;
        Ok(repaired)
    }

    /// Adds the torrent to these sets or removes it. Returns the number of changed sets.
    async fn write_differences(
        &self,
        torrent: TorrentId,
        wanted: &[(String, bool)],
    ) -> Result<u64, ViewsError> {
        let mut pipeline = Pipeline::new();
        for (key, _) in wanted {
            pipeline.cmd("SISMEMBER").arg(key).arg(torrent.get());
        }
        let mut differences: Vec<Cmd> = Vec::new();
        for ((key, is_wanted), reply) in wanted.iter().zip(self.redis().pipeline(&pipeline).await) {
            let is_member = match read_reply::<bool>(reply) {
                Err(error) if is_damage(&error) => {
                    self.counters.found_damaged_sets(1);
                    continue;
                }
                found => found?,
            };
            if is_member != *is_wanted {
                let mut command = redis::cmd(if *is_wanted { "SADD" } else { "SREM" });
                command.arg(key).arg(torrent.get());
                differences.push(command);
            }
        }
        if differences.is_empty() || !self.is_active() {
            return Ok(0);
        }
        for reply in self.send(&differences).await {
            reply?;
        }
        Ok(differences.len() as u64)
    }

    /// Removes a torrent from all sets of its users.
    pub(super) async fn clear_user_sets(
        &self,
        writer: &mut Writer,
        torrent: TorrentId,
        state: &TorrentState,
    ) -> Result<(), ViewsError> {
        let users: Vec<UserId> = state.users.keys().copied().collect();
        for users in users.chunks(PAGE) {
            let mut changed = ChangedState::default();
            changed.users.extend(users.iter().map(|user| ((*user, torrent), [Some(false); 4])));
            self.write_sets(writer, &changed).await?;
        }
        Ok(())
    }
}
