//! The second phase: what the first one found to be so is written to the keys of other slots.
//!
//! Everything says what is, not what changed. So it can be said again, and whatever was lost on the way is put right when
//! the same entries come again.

use std::collections::{BTreeMap, BTreeSet};

use domain::{PeerId, TorrentId};
use keyspace::{MirrorKey, RedisError, Reply, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::Mirror;
use super::torrents::{ChangedState, Counts, is_damage};
use crate::error::ViewsError;

/// Torrents in one call of the script, at most.
const CALL_TORRENTS_MAX: usize = 500;
/// Commands sent together, at most.
const COMMANDS_AT_ONCE_MAX: usize = 2000;
/// Members in one command, at most.
const MEMBERS_MAX: usize = 1000;

/// How long the set of a peer's torrents stays without a word of it. Announces that change nothing do not refresh it, so
/// it is longer than a round of the sweep takes, which does.
const PEER_SET_KEEP_S: u32 = 2 * 24 * 60 * 60;

/// Torrents that are to be in a set, and torrents that are not to be.
#[derive(Default)]
struct Membership {
    inside: Vec<u64>,
    outside: Vec<u64>,
}

impl Mirror {
    pub(super) async fn write_derived(&self, changed_state: &ChangedState) -> Result<(), ViewsError> {
        self.write_sets(changed_state).await?;
        self.write_counts(&changed_state.torrents).await?;
        self.publish_expired(&changed_state.expired).await;
        Ok(())
    }

    /// Publishes which peers a timeout ended (M11), once all keys show it; also where the tracker noticed the timeout.
    /// A batch that is applied again publishes its peers again. A message that cannot be published is lost: the keys
    /// hold the same.
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
                tracing::debug!(%reason, "expired peers could not be published");
            }
        }
    }

    /// Users' and peers' sets. Returns how many members were added or removed.
    pub(super) async fn write_sets(&self, changed_state: &ChangedState) -> Result<u64, ViewsError> {
        let mut changed = 0;
        for commands in self.commands_of(changed_state).chunks(COMMANDS_AT_ONCE_MAX) {
            for reply in self.send(commands).await {
                changed += self.count_members(reply)?;
            }
        }
        let active: Vec<PeerId> = changed_state
            .peers
            .iter()
            .filter(|(_, is_active)| **is_active)
            .map(|((peer, _), _)| *peer)
            .collect();
        self.keep_peer_sets(&active).await?;
        Ok(changed)
    }

    /// Says that these peers are there, so that the sets of their torrents stay.
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
            // Of one user or peer: no reason to hold up all others.
            Err(error) if is_damage(&error) => {
                self.counting.found_damaged_sets(1);
                Ok(0)
            }
            other => Ok(other?),
        }
    }

    fn commands_of(&self, changed_state: &ChangedState) -> Vec<Cmd> {
        let names = self.names();
        let mut sets: BTreeMap<String, Membership> = BTreeMap::new();
        let mut note = |key: String, torrent: TorrentId, is_in: bool| {
            let membership = sets.entry(key).or_default();
            let list = if is_in { &mut membership.inside } else { &mut membership.outside };
            list.push(torrent.get());
        };
        for ((user, torrent), memberships) in &changed_state.users {
            for (key, is_in) in names.user_sets(*user).into_iter().zip(memberships) {
                note(key, *torrent, *is_in);
            }
        }
        for ((peer, torrent), is_active) in &changed_state.peers {
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

    /// Indexes and statistics. Returns how many scores were not what they should be.
    pub(super) async fn write_counts(
        &self,
        torrents: &BTreeMap<TorrentId, Counts>,
    ) -> Result<u64, ViewsError> {
        let torrents: Vec<_> = torrents.iter().collect();
        let keys = self.count_keys();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut changed = 0;
        for torrents in torrents.chunks(CALL_TORRENTS_MAX) {
            let mut call = scripts::MIRROR_INDEX.call(&keys);
            for (torrent, counts) in torrents {
                call.arg(torrent.get()).arg(counts.announces).arg(counts.leechers);
                call.arg(counts.seeders).arg(counts.snatches);
            }
            changed += self.redis().query::<u64>(&call).await.map_err(counts_error)?;
        }
        Ok(changed)
    }

    /// The keys of the script, in its order.
    pub(super) fn count_keys(&self) -> [String; 7] {
        let names = self.names();
        [
            names.index_announces().to_owned(),
            names.global(MirrorKey::IndexLeechers),
            names.global(MirrorKey::IndexSeeders),
            names.global(MirrorKey::IndexSnatches),
            names.global(MirrorKey::StatsAnnounces),
            names.global(MirrorKey::StatsLeechers),
            names.global(MirrorKey::StatsSeeders),
        ]
    }
}

/// RedisError with these keys concerns every torrent: the view waits until somebody puts it right.
pub(super) fn counts_error(error: RedisError) -> ViewsError {
    match is_damage(&error) || error.to_string().contains("not an integer") {
        true => ViewsError::WrongType { key: "t:i:… or t:stats:…" },
        false => ViewsError::Redis(error),
    }
}
