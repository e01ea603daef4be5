//! The second phase: writes the state of the first to keys in other slots.
//!
//! Writes are states, not differences, so they can be repeated; repeated entries restore a lost write.

use std::collections::{BTreeMap, BTreeSet};

use domain::{PeerId, TorrentId};
use keyspace::{RedisError, RedisMirrorKey, Reply, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::RedisMirror;
use super::torrents::{ChangedState, Counts, is_damage};
use crate::error::ViewsError;

/// Torrents per call of the script.
const CALL_TORRENTS_MAX: usize = 500;
/// Commands per pipeline.
const COMMANDS_AT_ONCE_MAX: usize = 2000;
/// Members per command.
const MEMBERS_MAX: usize = 1000;

/// Time to live of the set of a peer's torrents. Announces that change nothing do not renew it, so it is longer than a
/// round of the sweep, which does.
const PEER_SET_KEEP_S: u32 = 2 * 24 * 60 * 60;

/// Torrents to add to a set and to remove from it.
#[derive(Default)]
struct Membership {
    inside: Vec<u64>,
    outside: Vec<u64>,
}

impl RedisMirror {
    pub(super) async fn write_derived(&self, state: &ChangedState) -> Result<(), ViewsError> {
        self.write_sets(state).await?;
        self.write_counts(&state.torrents).await?;
        self.publish_expired(&state.expired).await;
        Ok(())
    }

    /// Publishes peers ended by a timeout (M11), after all keys are written; also if a tracker detected the timeout. A
    /// repeated batch publishes again. A failed publish is lost; the keys have the same information.
    async fn publish_expired(&self, expired: &BTreeSet<(PeerId, TorrentId)>) {
        let commands: Vec<Cmd> = expired
            .iter()
            .map(|(peer, torrent)| {
                let mut command = redis::cmd("PUBLISH");
                command.arg(&self.settings.channel_expired).arg(format!("{torrent}:{peer}"));
                command
            })
            .collect();
        for commands in commands.chunks(COMMANDS_AT_ONCE_MAX) {
            if let Some(Err(reason)) = self.send(commands).await.into_iter().find(Result::is_err) {
                tracing::debug!(%reason, "cannot publish expired peers");
            }
        }
    }

    /// Writes the sets of users and peers. Returns the number of added and removed members.
    pub(super) async fn write_sets(&self, state: &ChangedState) -> Result<u64, ViewsError> {
        let mut changed = 0;
        for commands in self.commands_of(state).chunks(COMMANDS_AT_ONCE_MAX) {
            for reply in self.send(commands).await {
                changed += self.count_members(reply)?;
            }
        }
        let active: Vec<PeerId> =
            state.peers.iter().filter(|(_, is_active)| **is_active).map(|((peer, _), _)| *peer).collect();
        self.keep_peer_sets(&active).await?;
        Ok(changed)
    }

    /// Renews the sets of these peers' torrents.
    pub(super) async fn keep_peer_sets(&self, peers: &[PeerId]) -> Result<(), ViewsError> {
        for peers in peers.chunks(COMMANDS_AT_ONCE_MAX) {
            let mut pipeline = Pipeline::new();
            for peer in peers {
                pipeline.cmd("EXPIRE").arg(self.names().peer_torrents(peer)).arg(PEER_SET_KEEP_S);
            }
            for reply in self.redis().pipeline(&pipeline).await {
                reply?;
            }
        }
        Ok(())
    }

    pub(super) async fn send(&self, commands: &[Cmd]) -> Vec<Reply> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command.clone());
        }
        self.redis().pipeline(&pipeline).await
    }

    fn count_members(&self, reply: Reply) -> Result<u64, ViewsError> {
        match read_reply::<u64>(reply) {
            // Affects one user or peer only.
            Err(error) if is_damage(&error) => {
                self.counters.found_damaged_sets(1);
                Ok(0)
            }
            other => Ok(other?),
        }
    }

    fn commands_of(&self, state: &ChangedState) -> Vec<Cmd> {
        let names = self.names();
        let mut sets: BTreeMap<String, Membership> = BTreeMap::new();
        let mut note = |key: String, torrent: TorrentId, is_in: bool| {
            let membership = sets.entry(key).or_default();
            let list = if is_in { &mut membership.inside } else { &mut membership.outside };
            list.push(torrent.get());
        };
        for ((user, torrent), memberships) in &state.users {
            for (key, is_in) in names.user_sets(*user).into_iter().zip(memberships) {
                note(key, *torrent, *is_in);
            }
        }
        for ((peer, torrent), is_active) in &state.peers {
            note(names.peer_torrents(peer), *torrent, *is_active);
        }
        let mut commands = Vec::new();
        for (key, membership) in &sets {
            for (name, torrents) in [("SADD", &membership.inside), ("SREM", &membership.outside)] {
                for torrents in torrents.chunks(MEMBERS_MAX) {
                    let mut command = redis::cmd(name);
                    command.arg(key).arg(torrents);
                    commands.push(command);
                }
            }
        }
        commands
    }

    /// Writes indexes and statistics. Returns the number of changed scores.
    pub(super) async fn write_counts(
        &self,
        torrents: &BTreeMap<TorrentId, Counts>,
    ) -> Result<u64, ViewsError> {
        let torrents: Vec<_> = torrents.iter().collect();
        let keys = self.count_keys();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut changed = 0;
        for torrents in torrents.chunks(CALL_TORRENTS_MAX) {
            let mut call = scripts::REDIS_MIRROR_INDEX.call(&keys);
            for (torrent, counts) in torrents {
                call.arg(torrent.get()).arg(counts.announces).arg(counts.leechers);
                call.arg(counts.seeders).arg(counts.snatches);
            }
            changed += self.redis().query::<u64>(&call).await.map_err(counts_error)?;
        }
        Ok(changed)
    }

    /// In the order of KEYS of the scripts.
    pub(super) fn count_keys(&self) -> [String; 7] {
        let names = self.names();
        [
            names.index_announces().to_owned(),
            names.global(RedisMirrorKey::IndexLeechers),
            names.global(RedisMirrorKey::IndexSeeders),
            names.global(RedisMirrorKey::IndexSnatches),
            names.global(RedisMirrorKey::StatsAnnounces),
            names.global(RedisMirrorKey::StatsLeechers),
            names.global(RedisMirrorKey::StatsSeeders),
        ]
    }
}

/// An error of these keys affects every torrent: the view waits until an operator has repaired them.
pub(super) fn counts_error(error: RedisError) -> ViewsError {
    match is_damage(&error) || error.to_string().contains("not an integer") {
        true => ViewsError::WrongType { key: "t:i:… or t:stats:…" },
        false => ViewsError::Redis(error),
    }
}
