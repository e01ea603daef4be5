//! Compares the public keys of one torrent with its state and repairs them.
//!
//! Keys are read while batches continue. Nothing is written unless the watermark is unchanged since reading began;
//! otherwise the torrent is read again. So a repair never undoes a batch, of this process or of one that lost its
//! lease.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::{InfoHash, PeerId, TorrentId, UserId};
use keyspace::{read_reply, scripts};
use redis::Pipeline;

use super::state::{TorrentState, counts_of};
use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::stored_peer::StoredPeer;
use crate::redis_mirror::torrent::Counts;
use crate::redis_mirror::torrents::{Writer, is_damage};

/// Members and commands per call.
const PAGE: usize = 500;
/// Attempts, if entries are applied meanwhile.
const ATTEMPTS_MAX: u32 = 3;

/// Result for one torrent.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) repaired: u64,
    pub(super) overdue: Vec<(TorrentId, PeerId)>,
}

/// A command that repairs a difference.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    pub(super) command: &'static str,
    pub(super) key: String,
    pub(super) args: Vec<String>,
}

impl Repair {
    pub(super) fn new(command: &'static str, key: &str, args: &[&dyn ToString]) -> Repair {
        Repair { command, key: key.to_owned(), args: args.iter().map(|arg| arg.to_string()).collect() }
    }
}

impl RedisMirror {
    /// Compares one torrent and repairs it.
    pub(super) async fn check_torrent(&self, torrent: TorrentId) -> Result<Checked, ViewsError> {
        match self.compare(torrent).await {
            Err(ViewsError::Redis(error)) if is_damage(&error) => {
                tracing::warn!(%torrent, reason = %error, "mirror sweep: a key of this torrent is damaged; rename or remove it");
                Ok(Checked::default())
            }
            checked => checked,
        }
    }

    /// The overdue peers of a torrent; repairs nothing.
    pub(super) async fn overdue_of(
        &self,
        torrent: TorrentId,
    ) -> Result<Vec<(TorrentId, PeerId)>, ViewsError> {
        match self.read_state(torrent).await {
            Ok(state) => Ok(self.overdue_in(torrent, &state)),
            Err(ViewsError::Redis(error)) if is_damage(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn overdue_in(&self, torrent: TorrentId, state: &TorrentState) -> Vec<(TorrentId, PeerId)> {
        let now = self.parts.clock.steady();
        let overdue = state.active().filter(|(_, stored)| stored.deadline() < now);
        let peers: HashSet<PeerId> = overdue.map(|(peer, _)| *peer).collect();
        peers.into_iter().map(|peer| (torrent, peer)).collect()
    }

    async fn compare(&self, torrent: TorrentId) -> Result<Checked, ViewsError> {
        let mut checked = Checked::default();
        for _ in 0..ATTEMPTS_MAX {
            let state = self.read_state(torrent).await?;
            let Some(info_hash) = state.info_hash else {
                self.remove_orphan(torrent).await?;
                return Ok(checked);
            };
            let repairs = self.repairs_of(torrent, &info_hash, &state).await?;
            let mut writer = self.writer.lock().await;
            let done = self.apply_repairs(&mut writer, torrent, &state.watermark, &repairs).await?;
            drop(writer);
            let Some(repaired) = done else { continue };
            checked.repaired += repaired;
            checked.overdue = self.overdue_in(torrent, &state);
            if state.peers.is_empty() && self.parts.directory.is_removed(torrent, &info_hash) {
                self.remove_torrent(torrent, &info_hash, &state).await?;
                return Ok(checked);
            }
            checked.repaired += self.repair_index(torrent).await?;
            checked.repaired += self.repair_sets(torrent, &state).await?;
            return Ok(checked);
        }
        // A busy torrent: the next round checks it again.
        Ok(checked)
    }

    async fn repairs_of(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        state: &TorrentState,
    ) -> Result<Vec<Repair>, ViewsError> {
        let mut repairs = self.repairs_of_state(torrent, state);
        let owner = self.names().info_hash_owner(torrent, info_hash);
        let holder: Option<String> = self.redis().query(redis::cmd("GET").arg(&owner)).await?;
        if holder.is_none_or(|holder| holder == torrent.to_string()) {
            repairs.extend(self.repairs_of_counts(torrent, info_hash, state).await?);
            repairs.extend(self.repairs_of_members(torrent, info_hash, state).await?);
        }
        repairs.extend(self.repairs_of_peers(torrent, state).await?);
        Ok(repairs)
    }

    /// Contradictions within the state hash.
    fn repairs_of_state(&self, torrent: TorrentId, state: &TorrentState) -> Vec<Repair> {
        let key = self.names().state(torrent);
        let mut repairs: Vec<Repair> =
            state.unreadable.iter().map(|field| Repair::new("HDEL", &key, &[field])).collect();
        let mut peers: HashMap<UserId, u64> = HashMap::new();
        for (_, stored) in state.active() {
            *peers.entry(stored.user).or_default() += 1;
        }
        for user in state.users.keys().chain(peers.keys()).collect::<HashSet<_>>() {
            let mut figures = state.users.get(user).copied().unwrap_or_default();
            let counted = peers.get(user).copied().unwrap_or(0);
            if figures.peers != counted {
                tracing::warn!(%torrent, %user, before = figures.peers, after = counted, "mirror sweep: repaired active peers of a user");
                figures.peers = counted;
                repairs.push(Repair::new("HSET", &key, &[&format!("u{user}"), &figures.to_text()]));
            }
        }
        let counts = state.recounted(state.counts.map_or(0, |counts| counts.announces));
        if state.counts.is_some_and(|before| before != counts) {
            tracing::warn!(%torrent, before = ?state.counts, after = ?counts, "mirror sweep: repaired counts in the state");
            let Counts { announces, leechers, seeders, snatches } = counts;
            let text = format!("{announces} {leechers} {seeders} {snatches}");
            repairs.push(Repair::new("HSET", &key, &[&"c", &text]));
        }
        repairs
    }

    /// The counts of a torrent (M4).
    async fn repairs_of_counts(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        state: &TorrentState,
    ) -> Result<Vec<Repair>, ViewsError> {
        // If malformed, the next entry recomputes them.
        let Some(counts) = state.counts else { return Ok(Vec::new()) };
        let Counts { announces, leechers, seeders, snatches } = state.recounted(counts.announces);
        let key = self.names().torrent(torrent, info_hash);
        let mut read = redis::cmd("HMGET");
        read.arg(&key).arg("announces").arg("leechers").arg("seeders").arg("snatches");
        let before: Vec<Option<String>> = self.redis().query(&read).await?;
        let after = [announces, leechers, seeders, snatches].map(|count| Some(count.to_string()));
        if before == after {
            return Ok(Vec::new());
        }
        tracing::warn!(%torrent, ?before, ?after, "mirror sweep: repaired counts of a torrent");
        let columns: [&dyn ToString; 8] =
            [&"announces", &announces, &"leechers", &leechers, &"seeders", &seeders, &"snatches", &snatches];
        Ok(vec![Repair::new("HSET", &key, &columns)])
    }

    /// The set of a torrent's peers (M7).
    async fn repairs_of_members(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        state: &TorrentState,
    ) -> Result<Vec<Repair>, ViewsError> {
        let key = self.names().torrent_peers(torrent, info_hash);
        let mut found: HashSet<String> = HashSet::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SSCAN");
            scan.arg(&key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, members): (u64, Vec<String>) = self.redis().query(&scan).await?;
            found.extend(members);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let expected: HashSet<String> = state.peers.keys().map(ToString::to_string).collect();
        let missing = expected.difference(&found).map(|peer| Repair::new("SADD", &key, &[peer]));
        let surplus = found.difference(&expected).map(|peer| Repair::new("SREM", &key, &[peer]));
        let repairs: Vec<Repair> = missing.chain(surplus).collect();
        if !repairs.is_empty() {
            let (before, after) = (found.len(), expected.len());
            tracing::warn!(%torrent, before, after, "mirror sweep: repaired the set of peers");
        }
        Ok(repairs)
    }

    /// The public hashes of active peers (M5).
    async fn repairs_of_peers(
        &self,
        torrent: TorrentId,
        state: &TorrentState,
    ) -> Result<Vec<Repair>, ViewsError> {
        let peers: Vec<_> = state.peers.iter().collect();
        let mut repairs = Vec::new();
        for peers in peers.chunks(PAGE) {
            let mut pipeline = Pipeline::new();
            for (peer, _) in peers {
                pipeline.cmd("HMGET").arg(self.names().peer(torrent, peer));
                pipeline.arg("active").arg("completed").arg("user_id").arg("last_announce");
            }
            for ((peer, stored_peers), reply) in peers.iter().zip(self.redis().pipeline(&pipeline).await) {
                let Some(shown) = StoredPeer::shown(stored_peers) else { continue };
                let found: Vec<Option<String>> = read_reply(reply)?;
                let complete = u8::from(shown.is_complete).to_string();
                let expected = ["1".to_owned(), complete, shown.user.to_string(), shown.last.to_string()];
                if found.iter().map(Option::as_ref).eq(expected.iter().map(Some)) {
                    continue;
                }
                let key = self.names().peer(torrent, peer);
                repairs.push(rewrite_peer(&key, shown));
            }
        }
        if !repairs.is_empty() {
            tracing::warn!(%torrent, peers = repairs.len(), "mirror sweep: repaired keys of active peers");
        }
        Ok(repairs)
    }

    /// Executes repairs; none if the watermark has moved or the lease is lost.
    pub(super) async fn apply_repairs(
        &self,
        writer: &mut Writer,
        torrent: TorrentId,
        watermark: &str,
        repairs: &[Repair],
    ) -> Result<Option<u64>, ViewsError> {
        if !repairs.is_empty() {
            writer.forget(torrent);
        }
        for repairs in repairs.chunks(PAGE) {
            if !self.is_active() {
                return Ok(None);
            }
            let state_key = self.names().state(torrent);
            let mut keys: Vec<&str> = vec![&state_key];
            let mut numbers: BTreeMap<&str, usize> = BTreeMap::from([(state_key.as_str(), 1)]);
            for repair in repairs {
                numbers.entry(&repair.key).or_insert_with(|| {
                    keys.push(&repair.key);
                    keys.len()
                });
            }
            let mut call = scripts::REDIS_MIRROR_REPAIR.call(&keys);
            call.arg(watermark);
            for repair in repairs {
                call.arg(repair.args.len())
                    .arg(repair.command)
                    .arg(numbers[repair.key.as_str()])
                    .arg(&repair.args);
            }
            if self.redis().query::<i64>(&call).await? < 0 {
                return Ok(None);
            }
        }
        Ok(Some(repairs.len() as u64))
    }

    /// The torrent's scores in the indexes (M10).
    async fn repair_index(&self, torrent: TorrentId) -> Result<u64, ViewsError> {
        let mut writer = self.writer.lock().await;
        let mut read = redis::cmd("HGET");
        read.arg(self.names().state(torrent)).arg("c");
        let counts: Option<String> = self.redis().query(&read).await?;
        let Some(counts) = counts.as_deref().and_then(counts_of) else { return Ok(0) };
        if !self.is_active() {
            return Ok(0);
        }
        // What other programs made of them.
        let indexed = self.read_scores(&mut writer, &[torrent]).await?.remove(&torrent).unwrap_or_default();
        if let Some(known) = writer.torrent_mut(torrent) {
            known.indexed = indexed;
        }
        let scores = self.write_counts(&mut writer, &BTreeMap::from([(torrent, counts)])).await?;
        if scores > 0 {
            tracing::warn!(%torrent, scores, "mirror sweep: repaired scores in the indexes");
        }
        Ok(scores)
    }
}

fn rewrite_peer(key: &str, shown: &StoredPeer) -> Repair {
    let (complete, active) = (u8::from(shown.is_complete), u8::from(shown.is_active));
    let fields: [&dyn ToString; 16] = [
        &"speed_up",
        &shown.speeds.0,
        &"speed_dn",
        &shown.speeds.1,
        &"completed",
        &complete,
        &"user_id",
        &shown.user,
        &"first_announce",
        &shown.first,
        &"last_announce",
        &shown.last,
        &"total_time",
        &shown.active_s,
        &"active",
        &active,
    ];
    Repair::new("HSET", key, &fields)
}
