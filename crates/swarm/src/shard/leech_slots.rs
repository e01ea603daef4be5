//! Leech slots of a shard (see [`crate::leech_counts`]).

use domain::{Announce, UserId};

use super::{OwnPeers, Shard};
use crate::announce::{AnnounceError, Terms};
use crate::leech_counts::SlotLimits;

impl Shard {
    /// Counts all leechers of the shard, and every change from now on.
    pub(crate) fn begin_counting(&mut self) {
        if self.counts_leeching {
            return;
        }
        self.counts_leeching = true;
        let leeching: Vec<(u32, UserId, u32)> = self
            .live_peers()
            .filter(|(slot, _)| self.is_leeching(*slot))
            .map(|(slot, peer)| (peer.swarm(), peer.user, slot))
            .collect();
        for (swarm, user, slot) in leeching {
            // A user with several leeching clients counts with the first of them.
            let own = self.own_peers(swarm, user);
            if own.slots().iter().copied().find(|slot| self.is_leeching(*slot)) == Some(slot) {
                self.leech_counts.take_unchecked(user);
            }
        }
    }

    pub(super) fn any_leeches(&self, own: &OwnPeers) -> bool {
        own.slots().iter().any(|slot| self.is_leeching(*slot))
    }

    /// Accepts an announce that leeches nothing new, or takes a slot for it: nothing that can fail may follow. Returns
    /// whether the user has a slot for this torrent from now on.
    pub(super) fn claim_slot(
        &mut self,
        swarm: u32,
        own: &OwnPeers,
        announce: &Announce,
        terms: &Terms,
    ) -> Result<bool, AnnounceError> {
        let SlotLimits { of_user, of_torrent } = terms.slots;
        if !self.counts_leeching && of_torrent.is_none() {
            return Ok(false);
        }
        let has_slot = self.any_leeches(own);
        if has_slot || announce.is_seeder() {
            return Ok(has_slot);
        }
        if let Some(limit) = of_torrent.filter(|limit| self.swarms[swarm].members.leecher_count() >= *limit) {
            return Err(AnnounceError::TorrentFull { limit });
        }
        if self.counts_leeching {
            self.leech_counts.take(terms.user, of_user)?;
        }
        Ok(true)
    }

    /// Updates the count after the swarm changed: takes a slot, regardless of the limit, or releases it. `had_slot` is
    /// the earlier result of [`Shard::any_leeches`] or [`Shard::claim_slot`].
    pub(super) fn settle_slot(&mut self, had_slot: bool, swarm: u32, user: UserId) {
        if !self.counts_leeching || had_slot == self.any_leeches(&self.own_peers(swarm, user)) {
            return;
        }
        if had_slot { self.leech_counts.release(user) } else { self.leech_counts.take_unchecked(user) }
    }

    pub(super) fn is_leeching(&self, slot: u32) -> bool {
        let peer = &self.peers[slot];
        !self.swarms[peer.swarm()].members.is_seeder(peer.position())
    }
}
