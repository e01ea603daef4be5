//! One torrent: what others read of it, compared with the truth, and mended.
//!
//! It is read while batches go on. Nothing is changed unless the torrent's watermark is still what it was when the reading
//! began; else it is read again. So neither a batch nor another process that lost its turn can be undone by it.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::{InfoHash, PeerId, TorrentId, UserId};
use keyspace::{read_reply, scripts};
use redis::Pipeline;

use super::own::{Own, counts_of};
use crate::error::ViewsError;
use crate::mirror::Mirror;
use crate::mirror::presence::Presence;
use crate::mirror::torrents::{Counts, is_damage};

/// Members and commands in one go.
const PAGE: usize = 500;
/// How often a torrent is read again because something was applied meanwhile.
const ATTEMPTS_MAX: u32 = 3;

/// What a look at a torrent found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) mended: u64,
    pub(super) overdue: Vec<(TorrentId, PeerId)>,
}

/// Something that is not as it should be, and the command that puts it right.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) command: &'static str,
    pub(super) key: String,
    pub(super) args: Vec<String>,
}

impl Fault {
    pub(super) fn new(command: &'static str, key: &str, args: &[&dyn ToString]) -> Fault {
        Fault { command, key: key.to_owned(), args: args.iter().map(|arg| arg.to_string()).collect() }
    }
}

impl Mirror {
    /// Looks at one torrent and mends it.
    pub(super) async fn look_at(&self, torrent: TorrentId) -> Result<Looked, ViewsError> {
        match self.compare(torrent).await {
            Err(ViewsError::Redis(error)) if is_damage(&error) => {
                tracing::warn!(%torrent, reason = %error, "a key of this torrent holds something else than we wrote: rename or remove it");
                Ok(Looked::default())
            }
            looked => looked,
        }
    }

    /// Those of a torrent's peers whose silence is too long, and nothing else.
    pub(super) async fn overdue_of(
        &self,
        torrent: TorrentId,
    ) -> Result<Vec<(TorrentId, PeerId)>, ViewsError> {
        match self.read_own(torrent).await {
            Ok(own) => Ok(self.overdue_in(torrent, &own)),
            Err(ViewsError::Redis(error)) if is_damage(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn overdue_in(&self, torrent: TorrentId, own: &Own) -> Vec<(TorrentId, PeerId)> {
        let now = self.parts.clock.steady();
        let overdue = own.active().filter(|(_, presence)| presence.deadline() < now);
        let peers: HashSet<PeerId> = overdue.map(|(peer, _)| *peer).collect();
        peers.into_iter().map(|peer| (torrent, peer)).collect()
    }

    async fn compare(&self, torrent: TorrentId) -> Result<Looked, ViewsError> {
        let mut looked = Looked::default();
        for _ in 0..ATTEMPTS_MAX {
            let own = self.read_own(torrent).await?;
            let Some(info_hash) = own.info_hash else {
                self.forget_lost(torrent).await?;
                return Ok(looked);
            };
            let faults = self.faults_of(torrent, &info_hash, &own).await?;
            let Some(mended) = self.mend(torrent, &own.watermark, &faults).await? else { continue };
            looked.mended += mended;
            looked.overdue = self.overdue_in(torrent, &own);
            if own.peers.is_empty() && self.parts.directory.is_removed(torrent, &info_hash) {
                self.forget(torrent, &info_hash, &own).await?;
                return Ok(looked);
            }
            looked.mended += self.mend_index(torrent).await?;
            looked.mended += self.mend_sets(torrent, &own).await?;
            return Ok(looked);
        }
        // Much is going on here. The next round comes by again.
        Ok(looked)
    }

    async fn faults_of(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
    ) -> Result<Vec<Fault>, ViewsError> {
        let mut faults = self.faults_of_own(torrent, own);
        let owner = self.names().info_hash_owner(torrent, info_hash);
        let holder: Option<String> = self.redis().query(redis::cmd("GET").arg(&owner)).await?;
        if holder.is_none_or(|holder| holder == torrent.to_string()) {
            faults.extend(self.faults_of_counts(torrent, info_hash, own).await?);
            faults.extend(self.faults_of_members(torrent, info_hash, own).await?);
        }
        faults.extend(self.faults_of_peers(torrent, own).await?);
        Ok(faults)
    }

    /// What contradicts itself in our own hash.
    fn faults_of_own(&self, torrent: TorrentId, own: &Own) -> Vec<Fault> {
        let key = self.names().state(torrent);
        let mut faults: Vec<Fault> =
            own.unreadable.iter().map(|field| Fault::new("HDEL", &key, &[field])).collect();
        let mut peers: HashMap<UserId, u64> = HashMap::new();
        for (_, presence) in own.active() {
            *peers.entry(presence.user).or_default() += 1;
        }
        for user in own.users.keys().chain(peers.keys()).collect::<HashSet<_>>() {
            let mut figures = own.users.get(user).copied().unwrap_or_default();
            let counted = peers.get(user).copied().unwrap_or(0);
            if figures.peers != counted {
                tracing::warn!(%torrent, %user, before = figures.peers, after = counted, "active peers of a user mended");
                figures.peers = counted;
                faults.push(Fault::new("HSET", &key, &[&format!("u{user}"), &figures.to_text()]));
            }
        }
        let counts = own.recounted(own.counts.map_or(0, |counts| counts.announces));
        if own.counts.is_some_and(|before| before != counts) {
            tracing::warn!(%torrent, before = ?own.counts, after = ?counts, "counts of a torrent mended");
            let Counts { announces, leechers, seeders, snatches } = counts;
            let text = format!("{announces} {leechers} {seeders} {snatches}");
            faults.push(Fault::new("HSET", &key, &[&"c", &text]));
        }
        faults
    }

    /// The counts of a torrent (M4).
    async fn faults_of_counts(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
    ) -> Result<Vec<Fault>, ViewsError> {
        // Where ours cannot be read, the next entry counts anew.
        let Some(counts) = own.counts else { return Ok(Vec::new()) };
        let Counts { announces, leechers, seeders, snatches } = own.recounted(counts.announces);
        let key = self.names().torrent(torrent, info_hash);
        let mut read = redis::cmd("HMGET");
        read.arg(&key).arg("announces").arg("leechers").arg("seeders").arg("snatches");
        let before: Vec<Option<String>> = self.redis().query(&read).await?;
        let after = [announces, leechers, seeders, snatches].map(|count| Some(count.to_string()));
        if before == after {
            return Ok(Vec::new());
        }
        tracing::warn!(%torrent, ?before, ?after, "counts of a torrent mended");
        let columns: [&dyn ToString; 8] =
            [&"announces", &announces, &"leechers", &leechers, &"seeders", &seeders, &"snatches", &snatches];
        Ok(vec![Fault::new("HSET", &key, &columns)])
    }

    /// The set of a torrent's peers (M7).
    async fn faults_of_members(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
    ) -> Result<Vec<Fault>, ViewsError> {
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
        let expected: HashSet<String> = own.peers.keys().map(ToString::to_string).collect();
        let missing = expected.difference(&found).map(|peer| Fault::new("SADD", &key, &[peer]));
        let surplus = found.difference(&expected).map(|peer| Fault::new("SREM", &key, &[peer]));
        let faults: Vec<Fault> = missing.chain(surplus).collect();
        if !faults.is_empty() {
            let (before, after) = (found.len(), expected.len());
            tracing::warn!(%torrent, before, after, "the set of peers mended");
        }
        Ok(faults)
    }

    /// What others read of each peer that is there (M5).
    async fn faults_of_peers(&self, torrent: TorrentId, own: &Own) -> Result<Vec<Fault>, ViewsError> {
        let peers: Vec<_> = own.peers.iter().collect();
        let mut faults = Vec::new();
        for peers in peers.chunks(PAGE) {
            let mut pipeline = Pipeline::new();
            for (peer, _) in peers {
                pipeline.cmd("HMGET").arg(self.names().peer(torrent, peer));
                pipeline.arg("active").arg("completed").arg("user_id").arg("last_announce");
            }
            for ((peer, there), reply) in peers.iter().zip(self.redis().pipeline(&pipeline).await) {
                let Some(shown) = Presence::shown(there) else { continue };
                let found: Vec<Option<String>> = read_reply(reply)?;
                let complete = u8::from(shown.is_complete).to_string();
                let expected = ["1".to_owned(), complete, shown.user.to_string(), shown.last.to_string()];
                if found.iter().map(Option::as_ref).eq(expected.iter().map(Some)) {
                    continue;
                }
                let key = self.names().peer(torrent, peer);
                faults.push(written_anew(&key, shown));
            }
        }
        if !faults.is_empty() {
            tracing::warn!(%torrent, peers = faults.len(), "keys of active peers were not as written; mended");
        }
        Ok(faults)
    }

    /// Carries out what puts the faults right; none if something was applied meanwhile.
    pub(super) async fn mend(
        &self,
        torrent: TorrentId,
        watermark: &str,
        faults: &[Fault],
    ) -> Result<Option<u64>, ViewsError> {
        for faults in faults.chunks(PAGE) {
            if !self.is_active() {
                return Ok(None);
            }
            let own = self.names().state(torrent);
            let mut keys: Vec<&str> = vec![&own];
            let mut numbers: BTreeMap<&str, usize> = BTreeMap::from([(own.as_str(), 1)]);
            for fault in faults {
                numbers.entry(&fault.key).or_insert_with(|| {
                    keys.push(&fault.key);
                    keys.len()
                });
            }
            let mut call = scripts::MIRROR_REPAIR.call(&keys);
            call.arg(watermark);
            for fault in faults {
                call.arg(fault.args.len())
                    .arg(fault.command)
                    .arg(numbers[fault.key.as_str()])
                    .arg(&fault.args);
            }
            if self.redis().query::<i64>(&call).await? < 0 {
                return Ok(None);
            }
        }
        Ok(Some(faults.len() as u64))
    }

    /// The torrent's places in the indexes (M10).
    async fn mend_index(&self, torrent: TorrentId) -> Result<u64, ViewsError> {
        let _alone = self.alone.lock().await;
        let mut read = redis::cmd("HGET");
        read.arg(self.names().state(torrent)).arg("c");
        let counts: Option<String> = self.redis().query(&read).await?;
        let Some(counts) = counts.as_deref().and_then(counts_of) else { return Ok(0) };
        if !self.is_active() {
            return Ok(0);
        }
        let scores = self.settle_counts(&BTreeMap::from([(torrent, counts)])).await?;
        if scores > 0 {
            tracing::warn!(%torrent, scores, "places of a torrent in the indexes mended");
        }
        Ok(scores)
    }
}

fn written_anew(key: &str, shown: &Presence) -> Fault {
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
    Fault::new("HSET", key, &fields)
}
