//! The second phase: writes the state of the first to keys in other slots.
//!
//! Writes are states, not differences, so they can be repeated; repeated entries restore a lost write.

use std::collections::{BTreeMap, BTreeSet};

use domain::{PeerId, TorrentId};
use keyspace::{RedisError, RedisMirrorKey, Reply, read_reply};
use redis::{Cmd, Pipeline};

use super::RedisMirror;
use super::torrent::{Counts, Indexed};
use super::torrents::{ChangedState, Writer, is_damage};
use crate::error::ViewsError;

/// Torrents per command.
const TORRENTS_MAX: usize = 500;
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
    pub(super) async fn write_derived(
        &self,
        writer: &mut Writer,
        state: &ChangedState,
    ) -> Result<(), ViewsError> {
        self.write_sets(writer, state).await?;
        self.write_counts(writer, &state.torrents).await?;
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
    pub(super) async fn write_sets(
        &self,
        writer: &mut Writer,
        state: &ChangedState,
    ) -> Result<u64, ViewsError> {
        let active: Vec<PeerId> =
            state.peers.iter().filter(|(_, is_active)| **is_active).map(|((peer, _), _)| *peer).collect();
        let (mut commands, mut changed) = (self.commands_of(state), 0);
        let counted = commands.len();
        commands.extend(self.renewals(&active));
        for (first, part) in (0..).step_by(COMMANDS_AT_ONCE_MAX).zip(commands.chunks(COMMANDS_AT_ONCE_MAX)) {
            let replies = self.session(writer).await?.write(part.to_vec()).await?;
            for (position, reply) in replies.into_iter().enumerate() {
                let members = self.count_members(reply)?;
                changed += if first + position < counted { members } else { 0 };
            }
        }
        Ok(changed)
    }

    /// Renews the sets of these peers' torrents.
    fn renewals(&self, peers: &[PeerId]) -> impl Iterator<Item = Cmd> {
        let names = self.names();
        peers
            .iter()
            .map(|peer| redis::cmd("EXPIRE").arg(names.peer_torrents(peer)).arg(PEER_SET_KEEP_S).to_owned())
    }

    /// Renews the sets of these peers' torrents.
    pub(super) async fn keep_peer_sets(
        &self,
        writer: &mut Writer,
        peers: &[PeerId],
    ) -> Result<(), ViewsError> {
        for peers in peers.chunks(COMMANDS_AT_ONCE_MAX) {
            let renewals = self.renewals(peers).collect();
            for reply in self.session(writer).await?.write(renewals).await? {
                read_reply::<u64>(reply)?;
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
                if let Some(is_in) = is_in {
                    note(key, *torrent, *is_in);
                }
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
        writer: &mut Writer,
        torrents: &BTreeMap<TorrentId, Counts>,
    ) -> Result<u64, ViewsError> {
        let torrents: Vec<_> = torrents.iter().map(|(torrent, counts)| (*torrent, *counts)).collect();
        let mut changed = 0;
        for torrents in torrents.chunks(TORRENTS_MAX) {
            changed += self.write_some_counts(writer, torrents).await?;
        }
        Ok(changed)
    }

    async fn write_some_counts(
        &self,
        writer: &mut Writer,
        torrents: &[(TorrentId, Counts)],
    ) -> Result<u64, ViewsError> {
        let unknown = torrents.iter().map(|(torrent, _)| *torrent);
        let unknown: Vec<TorrentId> =
            unknown.filter(|torrent| writer.torrent_mut(*torrent).is_none()).collect();
        let read = self.read_scores(writer, &unknown).await?;
        let before = self.stats(writer).await?;
        let mut stats = before.map(Option::unwrap_or_default);
        let mut scores: [Vec<(u64, u64)>; 4] = Default::default();
        for (torrent, counts) in torrents {
            let written = Indexed { counts: *counts, is_whole: true };
            let known =
                writer.torrent_mut(*torrent).map(|known| std::mem::replace(&mut known.indexed, written));
            let old = known.or_else(|| read.get(torrent).copied()).unwrap_or_default();
            for (number, (new, count)) in counts.in_order().into_iter().zip(old.counts.in_order()).enumerate()
            {
                if new != count || !old.is_whole {
                    scores[number].push((new, torrent.get()));
                }
                if let Some(stat) = stats.get_mut(number) {
                    *stat +=
                        i64::try_from(new).unwrap_or(i64::MAX) - i64::try_from(count).unwrap_or(i64::MAX);
                }
            }
        }
        let stats = stats.map(Some);
        let (mut commands, mut changed) = (Vec::new(), 0);
        for (index, scores) in self.indexes().iter().zip(&scores).filter(|(_, scores)| !scores.is_empty()) {
            let mut command = redis::cmd("ZADD");
            command.arg(index).arg("CH").arg(scores);
            commands.push(command);
        }
        for (key, (new, old)) in self.stats_keys().iter().zip(stats.iter().zip(before)) {
            if let Some(number) = new.filter(|_| *new != old) {
                commands.push(redis::cmd("SET").arg(key).arg(number).to_owned());
            }
        }
        for reply in self.session(writer).await?.write(commands).await? {
            if let redis::Value::Int(members) = read_reply::<redis::Value>(reply)? {
                changed += members.unsigned_abs();
            }
        }
        writer.stats = Some(stats);
        Ok(changed)
    }

    async fn stats(&self, writer: &mut Writer) -> Result<[Option<i64>; 3], ViewsError> {
        if let Some(stats) = writer.stats {
            return Ok(stats);
        }
        let (mut pipeline, mut stats) = (Pipeline::new(), [None; 3]);
        for key in self.stats_keys() {
            pipeline.cmd("GET").arg(key);
        }
        let replies = self.session(writer).await?.read(&pipeline).await?;
        for (stat, reply) in stats.iter_mut().zip(replies) {
            let text: Option<String> = read_reply(reply)?;
            *stat = match text.as_deref().map(str::parse) {
                None => None,
                Some(Ok(number)) => Some(number),
                Some(Err(_)) => return Err(ViewsError::WrongType { key: COUNT_KEYS }),
            };
        }
        writer.stats = Some(stats);
        Ok(stats)
    }

    fn stats_keys(&self) -> [String; 3] {
        let keys =
            [RedisMirrorKey::StatsAnnounces, RedisMirrorKey::StatsLeechers, RedisMirrorKey::StatsSeeders];
        keys.map(|key| self.names().global(key))
    }

    /// In the order of KEYS of the script that removes a torrent.
    pub(super) fn count_keys(&self) -> [String; 7] {
        let ([a, b, c, d], [e, f, g]) = (self.indexes(), self.stats_keys());
        [a, b, c, d, e, f, g]
    }
}

/// For errors.
const COUNT_KEYS: &str = "t:i:… or t:stats:…";

/// An error of these keys affects every torrent: the view waits until an operator has repaired them.
pub(super) fn counts_error(error: RedisError) -> ViewsError {
    match is_damage(&error) || error.to_string().contains("not an integer") {
        true => ViewsError::WrongType { key: COUNT_KEYS },
        false => ViewsError::Redis(error),
    }
}
