//! The state hash of a torrent, which is authoritative.

use std::collections::{BTreeMap, HashMap};

use domain::{InfoHash, PeerId, TorrentId, UserId};

use crate::error::ViewsError;
use crate::redis_mirror::RedisMirror;
use crate::redis_mirror::stored_peer::StoredPeer;
use crate::redis_mirror::torrents::{Counts, Memberships};

/// Fields per `HSCAN`.
const PAGE: usize = 1000;

/// Figures of a user on a torrent, as stored by `redis_mirror_torrent.lua`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UserFigures {
    pub(super) peers: u64,
    pub(super) active_s: u64,
    pub(super) has_leeched: bool,
    pub(super) is_complete: bool,
    pub(super) has_snatched: bool,
    pub(super) was_removed: bool,
    /// Unix time up to which `active_s` is counted.
    pub(super) counted_until: u64,
}

impl UserFigures {
    pub(super) fn parse(text: &str) -> Option<UserFigures> {
        let fields: Vec<&str> = text.split(' ').collect();
        let (peers, active_s, flags, counted_until) = match fields.as_slice() {
            [peers, active_s, flags] => (peers, active_s, flags, &"0"),
            [peers, active_s, flags, counted_until] => (peers, active_s, flags, counted_until),
            _ => return None,
        };
        let [leeched, complete, snatched, removed] = flags.as_bytes() else { return None };
        Some(UserFigures {
            peers: peers.parse().ok()?,
            active_s: active_s.parse().ok()?,
            has_leeched: *leeched == b'1',
            is_complete: *complete == b'1',
            has_snatched: *snatched == b'1',
            was_removed: *removed == b'1',
            counted_until: counted_until.parse().ok()?,
        })
    }

    pub(super) fn to_text(self) -> String {
        let flags = [self.has_leeched, self.is_complete, self.has_snatched, self.was_removed];
        let flags: String = flags.map(|flag| if flag { '1' } else { '0' }).iter().collect();
        format!("{} {} {flags} {}", self.peers, self.active_s, self.counted_until)
    }

    /// Whether the torrent is in the user's sets.
    pub(super) fn memberships(&self, hit_and_run_active_s: u64) -> Memberships {
        let is_gone = self.peers == 0;
        let is_short = self.active_s < hit_and_run_active_s;
        let is_hit_and_run = is_gone && self.has_leeched && !self.was_removed && is_short;
        [!is_gone, self.is_complete, !self.is_complete, is_hit_and_run]
    }
}

#[derive(Debug, Default)]
pub(super) struct TorrentState {
    /// When reading began.
    pub(super) watermark: String,
    pub(super) info_hash: Option<InfoHash>,
    /// As stored; none if malformed.
    pub(super) counts: Option<Counts>,
    pub(super) peers: HashMap<PeerId, Vec<StoredPeer>>,
    pub(super) users: BTreeMap<UserId, UserFigures>,
    /// Malformed or inactive peer fields.
    pub(super) unreadable: Vec<String>,
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
    pub(super) fn active(&self) -> impl Iterator<Item = (&PeerId, &StoredPeer)> {
        let each = |(peer, stored_peers)| std::iter::repeat(peer).zip::<&Vec<StoredPeer>>(stored_peers);
        self.peers.iter().flat_map(each).filter(|(_, stored)| stored.is_active)
    }

    /// The counts that follow from peers and users.
    pub(super) fn recounted(&self, announces: u64) -> Counts {
        let (mut leechers, mut seeders) = (0, 0);
        for (_, stored) in self.active() {
            *(if stored.is_complete { &mut seeders } else { &mut leechers }) += 1;
        }
        let snatches = self.users.values().filter(|figures| figures.has_snatched).count() as u64;
        Counts { announces, leechers, seeders, snatches }
    }
}

pub(super) fn counts_of(text: &str) -> Option<Counts> {
    let mut numbers = text.split(' ').map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (announces, leechers, seeders, snatches) = (next()?, next()?, next()?, next()?);
    Some(Counts { announces, leechers, seeders, snatches })
}

impl RedisMirror {
    /// Batches continue while this reads; writes based on it must compare the watermark.
    pub(super) async fn read_state(&self, torrent: TorrentId) -> Result<TorrentState, ViewsError> {
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
