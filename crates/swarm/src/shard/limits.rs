//! Limits per user and torrent: peer ids, and upload without leechers.

use domain::{Announce, Seconds, UnixTime, UserId};
use std::hash::BuildHasher;

use super::{OwnPeers, Shard};
use crate::announce::{AnnounceError, Rules, Terms};
use crate::peer::Credit;

/// A client reports an upload a little later than the leecher reports that it leaves.
const LEECHER_LEFT_SLACK: Seconds = Seconds(60);

impl Shard {
    /// Starts or ends a period in which remote announces are missing.
    pub(crate) fn set_receives_remote(&mut self, receives: bool) {
        self.knows_since = if receives { self.now } else { UnixTime(u32::MAX) };
    }

    pub(crate) fn join_budgets_displaced(&self) -> u64 {
        self.join_budgets.displaced()
    }

    /// Counts the peer id of an announce, unless its peer has it already, and refuses one beyond the limit.
    pub(super) fn count_peer_id(
        &mut self,
        hash_of_torrent: u64,
        known: Option<u32>,
        announce: &Announce,
        terms: &Terms,
    ) -> Result<u8, AnnounceError> {
        if known.is_some_and(|slot| self.peers[slot].has_peer_id(&announce.peer_id)) {
            return Ok(0);
        }
        let count = self.count_new_peer_id(hash_of_torrent, announce, terms.user);
        let max = terms.rules.peer_ids_per_hour_max;
        if max > 0 && count > max { Err(AnnounceError::TooManyPeerIds { count }) } else { Ok(count) }
    }

    pub(super) fn count_new_peer_id(
        &mut self,
        hash_of_torrent: u64,
        announce: &Announce,
        user: UserId,
    ) -> u8 {
        let user_on_torrent = hash_of_user_on_torrent(hash_of_torrent, user);
        let peer_id = self.hasher.hash_one(announce.peer_id) as u16;
        self.join_budgets.count_peer_id(user_on_torrent, peer_id, announce.now)
    }

    /// What an announce adds to its peer.
    pub(super) fn credit(&mut self, slot: u32, own: &OwnPeers, announce: &Announce, rules: &Rules) -> Credit {
        let last_announce = self.peers[slot].last_announce;
        self.set_silence_max(slot, rules.silence_max, rules);
        let credit = self.peers[slot].credit(announce, rules.ceiling, || self.runs.next());
        if credit.uploaded == 0 || self.had_leecher_of_others(slot, own, last_announce) {
            return credit;
        }
        let upload_without_leechers = credit.upload_claimed();
        if rules.credit_upload_without_leechers {
            return Credit { upload_without_leechers, ..credit };
        }
        if credit.implausible.is_none() {
            // The ledger credits a run by its totals, so what is not credited must lie between two runs.
            self.peers[slot].run = self.runs.next();
        }
        Credit { uploaded: 0, upload_without_leechers, uncredited_upload: upload_without_leechers, ..credit }
    }

    /// Whether another user leeched at any time since then, as far as known.
    fn had_leecher_of_others(&self, slot: u32, own: &OwnPeers, since: UnixTime) -> bool {
        let peer = &self.peers[slot];
        let swarm = &self.swarms[peer.swarm()];
        let leechers = swarm.members.leecher_count() as usize;
        leechers > own.count
            || leechers > own.slots().iter().filter(|slot| self.is_leeching(**slot)).count()
            || since < self.knows_since
            || self.own_leechers.others_ended(peer.swarm(), peer.user, swarm.members.leecher_ended)
                + LEECHER_LEFT_SLACK
                >= since
    }

    /// Records the end of leeching, if the peer leeches.
    pub(super) fn note_leecher_ends(&mut self, slot: u32) {
        if !self.is_leeching(slot) {
            return;
        }
        let (swarm, user) = (self.peers[slot].swarm(), self.peers[slot].user);
        let last_ended = std::mem::replace(&mut self.swarms[swarm].members.leecher_ended, self.now);
        if self.own_peers(swarm, user).count > 1 {
            self.own_leechers.note(swarm, user, self.now, last_ended);
        }
    }
}

/// A multiplication suffices: the torrent's hash depends on a secret, and users do not choose their ids.
pub(super) fn hash_of_user_on_torrent(hash_of_torrent: u64, user: UserId) -> u64 {
    let user = user.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(hash_of_torrent ^ user) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}
