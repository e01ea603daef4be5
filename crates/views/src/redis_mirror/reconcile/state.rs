//! The state hash of a torrent, which is authoritative.

use std::collections::{BTreeMap, HashMap};

use domain::{InfoHash, PeerId, TorrentId, UserId};

use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::stored_peer::StoredPeer;
use crate::redis_mirror::torrent::Counts;
use crate::redis_mirror::user_figures::UserFigures;

/// Fields per `HSCAN`.
const PAGE: usize = 1000;

#[derive(Debug, Default)]
pub(in crate::redis_mirror) struct TorrentState {
    /// When reading began.
    pub(in crate::redis_mirror) watermark: String,
    pub(in crate::redis_mirror) info_hash: Option<InfoHash>,
    /// As stored; none if malformed.
    pub(in crate::redis_mirror) counts: Option<Counts>,
    pub(in crate::redis_mirror) peers: HashMap<PeerId, Vec<StoredPeer>>,
    pub(in crate::redis_mirror) users: BTreeMap<UserId, UserFigures>,
    /// Malformed or inactive peer fields.
    pub(in crate::redis_mirror) unreadable: Vec<String>,
}

impl TorrentState {
    fn read_field(&mut self, field: &str, value: &str) {
        match field.split_at_checked(1) {
            Some(("h", "")) => self.info_hash = value.parse().ok(),
            Some(("c", "")) => self.counts = counts_of(value),
            Some(("p", peer)) => match (peer.parse(), StoredPeer::parse_all(value)) {
                (Ok(peer), stored_peers) if stored_peers.iter().any(|stored| stored.is_active) => {
                    self.peers.insert(peer, stored_peers);
                }
                _ => self.unreadable.push(field.to_owned()),
            },
            Some(("u", user)) => self.users.extend(user.parse().ok().zip(UserFigures::parse(value))),
            _ => {}
        }
    }

    /// Active users under all peer ids.
    pub(in crate::redis_mirror) fn active(&self) -> impl Iterator<Item = (&PeerId, &StoredPeer)> {
        let each = |(peer, stored_peers)| std::iter::repeat(peer).zip::<&Vec<StoredPeer>>(stored_peers);
        self.peers.iter().flat_map(each).filter(|(_, stored)| stored.is_active)
    }

    /// The counts that follow from peers and users.
    pub(in crate::redis_mirror) fn recounted(&self, announces: u64) -> Counts {
        let (mut leechers, mut seeders) = (0, 0);
        for (_, stored) in self.active() {
            *(if stored.is_complete { &mut seeders } else { &mut leechers }) += 1;
        }
        let snatches = self.users.values().filter(|figures| figures.has_snatched).count() as u64;
        Counts { announces, leechers, seeders, snatches }
    }
}

pub(in crate::redis_mirror) fn counts_of(text: &str) -> Option<Counts> {
    let mut numbers = text.split(' ').map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (announces, leechers, seeders, snatches) = (next()?, next()?, next()?, next()?);
    Some(Counts { announces, leechers, seeders, snatches })
}

impl RedisMirror {
    /// Batches continue while this reads; writes based on it must compare the watermark.
    pub(in crate::redis_mirror) async fn read_state(
        &self,
        torrent: TorrentId,
    ) -> Result<TorrentState, ViewsError> {
        let key = self.names().state(torrent);
        let watermark: Option<String> = self.redis().query(redis::cmd("HGET").arg(&key).arg("w")).await?;
        let mut state = TorrentState { watermark: watermark.unwrap_or_default(), ..TorrentState::default() };
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, fields): (u64, Vec<(String, String)>) = self.redis().query(&scan).await?;
            for (field, value) in fields {
                state.read_field(&field, &value);
            }
            cursor = next;
            if cursor == 0 {
                return Ok(state);
            }
        }
    }
}
