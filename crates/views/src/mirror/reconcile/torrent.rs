//! One torrent: what is known of it, what should follow from that, and what does.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::{InfoHash, PeerId, TorrentId, UserId};
use keyspace::{Reply, read_reply};
use redis::Pipeline;

use crate::error::ViewsError;
use crate::mirror::Mirror;
use crate::mirror::record::Record;
use crate::mirror::torrents::{Counts, News, is_damage};

/// Fields, members and commands in one go.
const PAGE: usize = 1000;

/// What a look at a torrent found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) mended: u64,
    pub(super) overdue: Vec<(TorrentId, PeerId)>,
}

/// The figures of a user on a torrent, as the script keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UserFigures {
    peers: u64,
    active_s: u64,
    has_leeched: bool,
    is_complete: bool,
    has_snatched: bool,
}

impl UserFigures {
    fn parse(text: &str) -> Option<UserFigures> {
        let words: Vec<&str> = text.split(' ').collect();
        let [peers, active_s, flags] = words.as_slice() else { return None };
        let [leeched, complete, snatched] = flags.as_bytes() else { return None };
        Some(UserFigures {
            peers: peers.parse().ok()?,
            active_s: active_s.parse().ok()?,
            has_leeched: *leeched == b'1',
            is_complete: *complete == b'1',
            has_snatched: *snatched == b'1',
        })
    }

    fn to_text(self) -> String {
        let digit = u8::from;
        let flags = (digit(self.has_leeched), digit(self.is_complete), digit(self.has_snatched));
        format!("{} {} {}{}{}", self.peers, self.active_s, flags.0, flags.1, flags.2)
    }
}

/// What our hash of a torrent holds.
#[derive(Debug, Default)]
struct Own {
    info_hash: Option<InfoHash>,
    records: HashMap<PeerId, Record>,
    users: BTreeMap<UserId, UserFigures>,
}

/// A peer that is there.
#[derive(Clone, Copy, Debug)]
struct Present {
    is_complete: bool,
    user: UserId,
}

impl Mirror {
    /// Looks at one torrent and mends it. Nobody writes meanwhile.
    pub(super) async fn look_at(&self, torrent: TorrentId) -> Result<Looked, ViewsError> {
        let _alone = self.alone.lock().await;
        let looked = match self.compare(torrent).await {
            Err(ViewsError::Redis(trouble)) if is_damage(&trouble) => {
                tracing::warn!(%torrent, "a key of this torrent holds another type of value: rename or remove it");
                Looked::default()
            }
            looked => looked?,
        };
        Ok(looked)
    }

    async fn compare(&self, torrent: TorrentId) -> Result<Looked, ViewsError> {
        let mut own = self.read_own(torrent).await?;
        let Some(info_hash) = own.info_hash else {
            return Ok(Looked::default());
        };
        let now = self.parts.clock.now();
        let present = self.read_present(torrent, &info_hash, &own).await?;
        let overdue = own
            .records
            .iter()
            .filter(|(peer, record)| present.contains_key(peer) && record.at + self.settings.reap_after < now)
            .map(|(peer, _)| (torrent, *peer))
            .collect();
        let mut mended = self.mend_lost(torrent, &info_hash, &own, &present).await?;
        mended += self.mend_users(torrent, &mut own, &present).await?;
        mended += self.mend_members(torrent, &info_hash, &present).await?;
        mended += self.mend_counts(torrent, &info_hash, &own, &present).await?;
        mended += self.mend_sets(torrent, &own, &present).await?;
        Ok(Looked { mended, overdue })
    }

    async fn read_own(&self, torrent: TorrentId) -> Result<Own, ViewsError> {
        let key = self.names().own(torrent);
        let mut own = Own::default();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, fields): (u64, Vec<(String, String)>) = self.redis().query(&scan).await?;
            for (field, value) in fields {
                match field.split_at_checked(1) {
                    Some(("h", "")) => own.info_hash = value.parse().ok(),
                    Some(("p", peer)) => {
                        let record = peer.parse().ok().zip(Record::parse(&value));
                        own.records.extend(record);
                    }
                    Some(("u", user)) => {
                        let figures = user.parse().ok().zip(UserFigures::parse(&value));
                        own.users.extend(figures);
                    }
                    _ => {}
                }
            }
            cursor = next;
            if cursor == 0 {
                return Ok(own);
            }
        }
    }

    /// The peers that have a record and are active by their own keys.
    async fn read_present(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
    ) -> Result<HashMap<PeerId, Present>, ViewsError> {
        let peers: Vec<PeerId> = own.records.keys().copied().collect();
        let mut present = HashMap::with_capacity(peers.len());
        for peers in peers.chunks(PAGE) {
            let mut pipeline = Pipeline::new();
            for peer in peers {
                let key = self.names().peer(torrent, info_hash, peer);
                pipeline.cmd("HMGET").arg(key).arg("active").arg("completed").arg("user_id");
            }
            for (peer, reply) in peers.iter().zip(self.redis().pipeline(&pipeline).await) {
                let (active, completed, user): (Option<String>, Option<String>, Option<String>) =
                    read_reply(reply)?;
                let user = user.and_then(|user| user.parse().ok());
                if let (Some("1"), Some(user)) = (active.as_deref(), user) {
                    let is_complete = completed.as_deref() == Some("1");
                    present.insert(*peer, Present { is_complete, user });
                }
            }
        }
        Ok(present)
    }

    /// Peers with a record whose own key is gone or says that they are: their next announce brings them back.
    async fn mend_lost(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
        present: &HashMap<PeerId, Present>,
    ) -> Result<u64, ViewsError> {
        let lost: Vec<&PeerId> = own.records.keys().filter(|peer| !present.contains_key(*peer)).collect();
        let mut pipeline = Pipeline::new();
        for peer in &lost {
            pipeline.cmd("HDEL").arg(self.names().own(torrent)).arg(format!("p{peer}"));
            pipeline.cmd("DEL").arg(self.names().peer_timeout(torrent, peer));
            pipeline.cmd("SREM").arg(self.names().torrent_peers(torrent, info_hash)).arg(peer.to_string());
            pipeline.cmd("SREM").arg(self.names().peer_torrents(peer)).arg(torrent.get());
        }
        self.run(&pipeline).await?;
        if !lost.is_empty() {
            tracing::warn!(%torrent, peers = lost.len(), "keys of active peers were gone; the peers are too, until they announce");
        }
        Ok(lost.len() as u64)
    }

    async fn mend_users(
        &self,
        torrent: TorrentId,
        own: &mut Own,
        present: &HashMap<PeerId, Present>,
    ) -> Result<u64, ViewsError> {
        let mut peers: HashMap<UserId, u64> = HashMap::new();
        for peer in present.values() {
            *peers.entry(peer.user).or_default() += 1;
        }
        for user in peers.keys() {
            own.users.entry(*user).or_default();
        }
        let mut pipeline = Pipeline::new();
        for (user, figures) in &mut own.users {
            let counted = peers.get(user).copied().unwrap_or(0);
            if figures.peers != counted {
                tracing::warn!(%torrent, %user, before = figures.peers, after = counted, "active peers of a user mended");
                figures.peers = counted;
                pipeline.cmd("HSET").arg(self.names().own(torrent)).arg(format!("u{user}"));
                pipeline.arg(figures.to_text());
            }
        }
        self.run(&pipeline).await?;
        Ok(pipeline.len() as u64)
    }

    /// The set of a torrent's peers (M7).
    async fn mend_members(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        present: &HashMap<PeerId, Present>,
    ) -> Result<u64, ViewsError> {
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
        let expected: HashSet<String> = present.keys().map(ToString::to_string).collect();
        let mut pipeline = Pipeline::new();
        for missing in expected.difference(&found) {
            pipeline.cmd("SADD").arg(&key).arg(missing);
        }
        for surplus in found.difference(&expected) {
            pipeline.cmd("SREM").arg(&key).arg(surplus);
        }
        self.run(&pipeline).await?;
        if !pipeline.is_empty() {
            let (before, after) = (found.len(), expected.len());
            tracing::warn!(%torrent, before, after, "the set of peers mended");
        }
        Ok(pipeline.len() as u64)
    }

    /// The counts of a torrent (M4), and the indexes (M10).
    async fn mend_counts(
        &self,
        torrent: TorrentId,
        info_hash: &InfoHash,
        own: &Own,
        present: &HashMap<PeerId, Present>,
    ) -> Result<u64, ViewsError> {
        let key = self.names().torrent(torrent, info_hash);
        let mut read = redis::cmd("HMGET");
        read.arg(&key).arg("announces").arg("leechers").arg("seeders").arg("snatches");
        let before: Vec<Option<String>> = self.redis().query(&read).await?;
        let before: Vec<Option<u64>> =
            before.into_iter().map(|text| text.and_then(|text| text.parse().ok())).collect();
        let [announces, leechers, seeders, snatches] = before.as_slice() else {
            return Err(super::odd("t:t:<infohash>"));
        };
        let complete = present.values().filter(|peer| peer.is_complete).count() as u64;
        let announces = match announces {
            Some(announces) => *announces,
            None => self.announces_by_index(torrent).await?,
        };
        let counts = Counts {
            announces,
            leechers: present.len() as u64 - complete,
            seeders: complete,
            snatches: own.users.values().filter(|figures| figures.has_snatched).count() as u64,
        };
        let mut mended = 0;
        if (leechers, seeders, snatches)
            != (&Some(counts.leechers), &Some(counts.seeders), &Some(counts.snatches))
        {
            tracing::warn!(%torrent, ?before, after = ?counts, "counts of a torrent mended");
            let mut mend = redis::cmd("HSET");
            mend.arg(&key).arg("announces").arg(counts.announces).arg("leechers").arg(counts.leechers);
            mend.arg("seeders").arg(counts.seeders).arg("snatches").arg(counts.snatches);
            self.redis().query::<u64>(&mend).await?;
            mended += 1;
        }
        let scores = self.settle_counts(&BTreeMap::from([(torrent, counts)])).await?;
        if scores > 0 && mended == 0 {
            tracing::warn!(%torrent, scores, "places of a torrent in the indexes mended");
        }
        Ok(mended + scores)
    }

    /// What the index remembers of the announces of a torrent whose counts are gone.
    async fn announces_by_index(&self, torrent: TorrentId) -> Result<u64, ViewsError> {
        let mut read = redis::cmd("ZSCORE");
        read.arg(self.names().index_announces()).arg(torrent.get());
        Ok(self.redis().query::<Option<f64>>(&read).await?.unwrap_or(0.0) as u64)
    }

    /// The sets of the torrent's users (M8) and peers (M7).
    async fn mend_sets(
        &self,
        torrent: TorrentId,
        own: &Own,
        present: &HashMap<PeerId, Present>,
    ) -> Result<u64, ViewsError> {
        let mut news = News::default();
        for (user, figures) in &own.users {
            let is_gone = figures.peers == 0;
            let threshold = u64::from(self.settings.hit_and_run_active.0);
            let is_hit_and_run = is_gone && figures.has_leeched && figures.active_s < threshold;
            let memberships = [!is_gone, figures.is_complete, !figures.is_complete, is_hit_and_run];
            news.users.insert((*user, torrent), memberships);
        }
        news.peers.extend(present.keys().map(|peer| ((*peer, torrent), true)));
        let mended = self.settle_sets(&news).await?;
        if mended > 0 {
            tracing::warn!(%torrent, members = mended, "sets of users and peers mended");
        }
        Ok(mended)
    }

    async fn run(&self, pipeline: &Pipeline) -> Result<(), ViewsError> {
        let replies: Vec<Reply> = self.redis().pipeline(pipeline).await;
        for reply in replies {
            reply?;
        }
        Ok(())
    }
}
