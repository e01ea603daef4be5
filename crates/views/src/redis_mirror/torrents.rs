//! The first phase: applies entries to each torrent, with one script call per torrent.
//!
//! Calls for different torrents are pipelined. Calls for the same torrent are sequential, each after the reply to the
//! previous one: a delayed call would find its entries below the watermark and skip them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{InfoHash, PeerId, TorrentId, UserId};
use keyspace::{RedisError, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::RedisMirror;
use super::fold::{ScriptEntry, Target, TorrentEntries};
use crate::error::ViewsError;

/// Entries per call: bounded by Lua's `unpack` and by the time that a script blocks Redis.
const CALL_ENTRIES_MAX: usize = 200;
/// Calls per pipeline.
const CALLS_AT_ONCE_MAX: usize = 500;

/// Whether a torrent is in a user's sets active, complete, incomplete, hit and run (M8).
pub(super) type Memberships = [bool; 4];

/// M4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) announces: u64,
    pub(super) leechers: u64,
    pub(super) seeders: u64,
    pub(super) snatches: u64,
}

/// Present state after the first phase, of everything that the second must write.
#[derive(Debug, Default)]
pub(super) struct ChangedState {
    pub(super) torrents: BTreeMap<TorrentId, Counts>,
    pub(super) users: BTreeMap<(UserId, TorrentId), Memberships>,
    pub(super) peers: BTreeMap<(PeerId, TorrentId), bool>,
    /// Of `peers`, those ended by a timeout.
    pub(super) expired: BTreeSet<(PeerId, TorrentId)>,
    /// Entries that had been applied before.
    pub(super) repeated: u64,
    /// Entries of torrents with a key of the wrong type.
    pub(super) damaged: u64,
}

/// Reply of `redis_mirror_torrent.lua`.
type Reply = (Vec<u64>, u64, Vec<u64>, Vec<String>);

impl RedisMirror {
    pub(super) async fn apply_to_torrents(
        &self,
        torrents: &[TorrentEntries],
    ) -> Result<ChangedState, ViewsError> {
        let mut state = ChangedState::default();
        let longest = torrents.iter().map(|torrent| torrent.entries.len()).max().unwrap_or(0);
        for round in 0..longest.div_ceil(CALL_ENTRIES_MAX) {
            let parts: Vec<(&TorrentEntries, &[ScriptEntry])> = torrents
                .iter()
                .filter_map(|torrent| Some((torrent, torrent.entries.chunks(CALL_ENTRIES_MAX).nth(round)?)))
                .collect();
            for parts in parts.chunks(CALLS_AT_ONCE_MAX) {
                self.call(parts, &mut state).await?;
            }
        }
        Ok(state)
    }

    async fn call(
        &self,
        parts: &[(&TorrentEntries, &[ScriptEntry])],
        state: &mut ChangedState,
    ) -> Result<(), ViewsError> {
        let mut pipeline = Pipeline::new();
        let mut peers_of = Vec::with_capacity(parts.len());
        for (torrent, entries) in parts {
            let (call, peers) = self.call_of(&torrent.target, entries);
            pipeline.add_command(call);
            peers_of.push(peers);
        }
        let replies = self.redis().pipeline(&pipeline).await;
        let (mut failed, mut renamed) = (None, Vec::new());
        for (((torrent, entries), peers), reply) in parts.iter().zip(peers_of).zip(replies) {
            match read_reply::<Reply>(reply).map(|reply| state.parse(torrent.target.torrent, &peers, reply)) {
                Ok(ParsedReply::Applied) => {}
                Ok(ParsedReply::KnownAs(known)) => renamed.push((&torrent.target, *entries, known)),
                Ok(ParsedReply::Malformed) => {
                    state.record_damage(torrent.target.torrent, entries, &"malformed reply")
                }
                Err(error) if is_damage(&error) => {
                    state.record_damage(torrent.target.torrent, entries, &error);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        for (target, entries, known) in renamed {
            self.call_renamed(target, entries, known, state).await?;
        }
        Ok(())
    }

    /// Applies entries to a torrent that is stored with another infohash: with the new one if the site confirms it,
    /// else with the stored one.
    async fn call_renamed(
        &self,
        target: &Target,
        entries: &[ScriptEntry],
        known: InfoHash,
        state: &mut ChangedState,
    ) -> Result<(), ViewsError> {
        let torrent = target.torrent;
        let target = match target.is_confirmed {
            true => {
                self.rename(target, &known).await?;
                *target
            }
            false => Target { info_hash: known, ..*target },
        };
        let (call, peers) = self.call_of(&target, entries);
        match self.redis().query::<Reply>(&call).await.map(|reply| state.parse(torrent, &peers, reply)) {
            Ok(ParsedReply::Applied) => {}
            Ok(ParsedReply::KnownAs(_) | ParsedReply::Malformed) => {
                state.record_damage(torrent, entries, &"malformed reply")
            }
            Err(error) if is_damage(&error) => state.record_damage(torrent, entries, &error),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn rename(&self, target: &Target, known: &InfoHash) -> Result<(), ViewsError> {
        let (names, torrent) = (self.names(), target.torrent);
        let keys = [
            names.state(torrent),
            names.torrent(torrent, known),
            names.torrent_peers(torrent, known),
            names.info_hash_owner(torrent, known),
        ];
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::REDIS_MIRROR_RENAME.call(&keys);
        call.arg(torrent.get()).arg(known.to_string()).arg(target.info_hash.to_string());
        if self.redis().query::<u64>(&call).await? == 1 {
            tracing::info!(%torrent, before = %known, after = %target.info_hash, "infohash of a torrent changed");
        }
        Ok(())
    }

    fn call_of(&self, target: &Target, entries: &[ScriptEntry]) -> (Cmd, Vec<PeerId>) {
        let (names, settings) = (self.names(), &self.settings);
        let Target { torrent, info_hash, is_confirmed } = *target;
        let mut numbers: HashMap<PeerId, usize> = HashMap::new();
        let mut peers = Vec::new();
        for entry in entries {
            numbers.entry(entry.peer).or_insert_with(|| {
                peers.push(entry.peer);
                peers.len()
            });
        }
        let mut keys = vec![
            names.torrent(torrent, &info_hash),
            names.torrent_peers(torrent, &info_hash),
            names.state(torrent),
            names.info_hash_owner(torrent, &info_hash),
        ];
        for peer in &peers {
            keys.push(names.peer(torrent, peer));
            keys.push(names.peer_timeout(torrent, peer));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::REDIS_MIRROR_TORRENT.call(&keys);
        call.arg(torrent.get()).arg(info_hash.to_string()).arg(u8::from(is_confirmed));
        call.arg(settings.hit_and_run_active.0).arg(settings.inactive_keep.0).arg(peers.len());
        for peer in &peers {
            call.arg(peer.to_string());
        }
        for entry in entries {
            let completeness = match entry.is_complete {
                Some(true) => "1",
                Some(false) => "0",
                None => "-",
            };
            call.arg(entry.id.ms).arg(entry.id.seq).arg(numbers[&entry.peer]).arg(entry.user.get());
            call.arg(entry.kind.letter()).arg(completeness).arg(entry.at.0).arg(entry.since.0);
            call.arg(entry.reap_after.0).arg(entry.speed_up.to_string()).arg(entry.speed_down.to_string());
            call.arg(&entry.last_announce);
        }
        (call, peers)
    }
}

/// Whether a key has the wrong type or a value on which the script fails. A retry does not help, and only this torrent,
/// user or peer is affected.
pub(super) fn is_damage(error: &RedisError) -> bool {
    match error {
        RedisError::WrongType { .. } => true,
        RedisError::Other { code, reason } => {
            ["WRONGTYPE", "user_script"].iter().any(|sign| reason.contains(sign) || code.contains(sign))
        }
        _ => false,
    }
}

enum ParsedReply {
    Applied,
    /// Nothing was applied: the torrent is stored with this infohash.
    KnownAs(InfoHash),
    Malformed,
}

impl ChangedState {
    fn record_damage(&mut self, torrent: TorrentId, entries: &[ScriptEntry], reason: &dyn std::fmt::Display) {
        self.damaged += entries.len() as u64;
        tracing::warn!(
            %torrent, %reason,
            "cannot apply entries: a key of this torrent is damaged; rename or remove it"
        );
    }

    fn parse(&mut self, torrent: TorrentId, peers: &[PeerId], reply: Reply) -> ParsedReply {
        let (counts, repeated, changed_peers, changed_users) = reply;
        if let ([], [known]) = (counts.as_slice(), changed_users.as_slice()) {
            return known.parse().map_or(ParsedReply::Malformed, ParsedReply::KnownAs);
        }
        self.parse_counts(torrent, &counts)
            .and_then(|()| self.parse_peers(torrent, peers, &changed_peers))
            .and_then(|()| self.parse_users(torrent, &changed_users))
            .map_or(ParsedReply::Malformed, |()| {
                self.repeated += repeated;
                ParsedReply::Applied
            })
    }

    fn parse_counts(&mut self, torrent: TorrentId, counts: &[u64]) -> Option<()> {
        let [announces, leechers, seeders, snatches] = *counts else { return None };
        self.torrents.insert(torrent, Counts { announces, leechers, seeders, snatches });
        Some(())
    }

    fn parse_peers(&mut self, torrent: TorrentId, peers: &[PeerId], changed: &[u64]) -> Option<()> {
        for [number, state] in changed.as_chunks::<2>().0 {
            let peer = peers.get(usize::try_from(*number).ok()?.checked_sub(1)?)?;
            self.peers.insert((*peer, torrent), *state == 1);
            match state {
                2 => self.expired.insert((*peer, torrent)),
                _ => self.expired.remove(&(*peer, torrent)),
            };
        }
        Some(())
    }

    fn parse_users(&mut self, torrent: TorrentId, changed: &[String]) -> Option<()> {
        for [user, digits] in changed.as_chunks::<2>().0 {
            self.users.insert((user.parse().ok()?, torrent), memberships_of(digits)?);
        }
        Some(())
    }
}

fn memberships_of(digits: &str) -> Option<Memberships> {
    let digits: [u8; 4] = digits.as_bytes().try_into().ok()?;
    Some(digits.map(|digit| digit == b'1'))
}
