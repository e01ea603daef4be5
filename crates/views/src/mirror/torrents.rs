//! The first phase: the entries of each torrent, by one script a torrent.
//!
//! Calls for different torrents go together. Calls for the same torrent go one after the other, each after the answer to
//! the one before: a call that came too late would find its entries behind the watermark and skip them.

use std::collections::{BTreeMap, HashMap};

use domain::{PeerId, TorrentId, UserId};
use keyspace::{Trouble, read_reply, scripts};
use redis::{Cmd, Pipeline};

use super::Mirror;
use super::fold::{Step, TorrentWork};
use crate::error::ViewsError;

/// Entries in one call of the script, at most: what Lua can pass on at once, and not so many that others wait for long.
const CALL_ENTRIES_MAX: usize = 200;
/// Calls sent together, at most.
const CALLS_AT_ONCE_MAX: usize = 500;

/// In which sets of a user a torrent is: active, complete, incomplete, hit and run (M8).
pub(super) type Memberships = [bool; 4];

/// Counts of a torrent (M4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) announces: u64,
    pub(super) leechers: u64,
    pub(super) seeders: u64,
    pub(super) snatches: u64,
}

/// What is so after the first phase, of everything that has to be told in the second.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) torrents: BTreeMap<TorrentId, Counts>,
    pub(super) users: BTreeMap<(UserId, TorrentId), Memberships>,
    pub(super) peers: BTreeMap<(PeerId, TorrentId), bool>,
    /// Entries that had been applied before.
    pub(super) repeated: u64,
    /// Entries of torrents whose keys hold something else.
    pub(super) damaged: u64,
}

/// What the script returns.
type Reply = (Vec<u64>, u64, Vec<u64>, Vec<String>);

impl Mirror {
    pub(super) async fn apply_to_torrents(&self, torrents: &[TorrentWork]) -> Result<News, ViewsError> {
        let mut news = News::default();
        let longest = torrents.iter().map(|work| work.steps.len()).max().unwrap_or(0);
        for turn in 0..longest.div_ceil(CALL_ENTRIES_MAX) {
            let parts: Vec<(&TorrentWork, &[Step])> = torrents
                .iter()
                .filter_map(|work| Some((work, work.steps.chunks(CALL_ENTRIES_MAX).nth(turn)?)))
                .collect();
            for parts in parts.chunks(CALLS_AT_ONCE_MAX) {
                self.call(parts, &mut news).await?;
            }
        }
        Ok(news)
    }

    async fn call(&self, parts: &[(&TorrentWork, &[Step])], news: &mut News) -> Result<(), ViewsError> {
        let mut pipeline = Pipeline::new();
        let mut peers_of = Vec::with_capacity(parts.len());
        for (work, steps) in parts {
            let (call, peers) = self.call_of(work, steps);
            pipeline.add_command(call);
            peers_of.push(peers);
        }
        let replies = self.redis().pipeline(&pipeline).await;
        let mut failed = None;
        for (((work, steps), peers), reply) in parts.iter().zip(peers_of).zip(replies) {
            match read_reply::<Reply>(reply) {
                Ok(reply) => news.take(work.torrent, &peers, reply)?,
                Err(trouble) if is_damage(&trouble) => {
                    news.damaged += steps.len() as u64;
                    let torrent = work.torrent;
                    tracing::warn!(%torrent, "a key of this torrent holds another type of value: rename or remove it");
                }
                Err(trouble) => failed = failed.or(Some(trouble)),
            }
        }
        failed.map_or(Ok(()), |trouble| Err(trouble.into()))
    }

    fn call_of(&self, work: &TorrentWork, steps: &[Step]) -> (Cmd, Vec<PeerId>) {
        let (names, settings) = (self.names(), &self.settings);
        let mut numbers: HashMap<PeerId, usize> = HashMap::new();
        let mut peers = Vec::new();
        for step in steps {
            numbers.entry(step.peer).or_insert_with(|| {
                peers.push(step.peer);
                peers.len()
            });
        }
        let mut keys = vec![
            names.torrent(work.torrent, &work.info_hash),
            names.torrent_peers(work.torrent, &work.info_hash),
            names.own(work.torrent),
        ];
        for peer in &peers {
            keys.push(names.peer(work.torrent, &work.info_hash, peer));
            keys.push(names.peer_timeout(work.torrent, peer));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut call = scripts::MIRROR_TORRENT.call(&keys);
        call.arg(work.info_hash.to_string())
            .arg(settings.reap_after.0)
            .arg(settings.hit_and_run_active.0)
            .arg(settings.inactive_keep.0)
            .arg(peers.len());
        for peer in &peers {
            call.arg(peer.to_string());
        }
        for step in steps {
            call.arg(step.id.ms).arg(step.id.seq).arg(numbers[&step.peer]).arg(step.user.get());
            call.arg(step.kind.letter()).arg(u8::from(step.is_complete)).arg(step.at.0).arg(step.since.0);
            call.arg(step.speed_up.to_string()).arg(step.speed_down.to_string()).arg(&step.record);
        }
        (call, peers)
    }
}

/// Whether a key holds something else; inside a script Redis reports it as an error of the script.
pub(super) fn is_damage(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::WrongType { .. } => true,
        Trouble::Other { reason, .. } => reason.contains("WRONGTYPE"),
        _ => false,
    }
}

impl News {
    fn take(&mut self, torrent: TorrentId, peers: &[PeerId], reply: Reply) -> Result<(), ViewsError> {
        let (counts, repeated, told_peers, told_users) = reply;
        let [announces, leechers, seeders, snatches] = counts.as_slice() else {
            return Err(unexpected("mirror_torrent"));
        };
        let (announces, leechers, seeders, snatches) = (*announces, *leechers, *seeders, *snatches);
        self.torrents.insert(torrent, Counts { announces, leechers, seeders, snatches });
        self.repeated += repeated;
        for [number, is_active] in told_peers.as_chunks::<2>().0 {
            let peer = usize::try_from(*number).ok().and_then(|number| peers.get(number.checked_sub(1)?));
            let peer = peer.ok_or_else(|| unexpected("mirror_torrent"))?;
            self.peers.insert((*peer, torrent), *is_active == 1);
        }
        for [user, digits] in told_users.as_chunks::<2>().0 {
            let user: UserId = user.parse().map_err(|_| unexpected("mirror_torrent"))?;
            let memberships = memberships_of(digits).ok_or_else(|| unexpected("mirror_torrent"))?;
            self.users.insert((user, torrent), memberships);
        }
        Ok(())
    }
}

fn memberships_of(digits: &str) -> Option<Memberships> {
    let digits: [u8; 4] = digits.as_bytes().try_into().ok()?;
    Some(digits.map(|digit| digit == b'1'))
}

pub(super) fn unexpected(script: &str) -> ViewsError {
    let reason = format!("{script} returned something else than it should");
    ViewsError::Redis(Trouble::Other { code: "a reply nobody expected".to_owned(), reason })
}
