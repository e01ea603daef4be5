//! A shard's swarms as bytes, and back (see [`crate::copy`]).

use domain::{InfoHash, UserId};

use super::Shard;
use crate::announce::{CLIENTS_PER_USER_MAX, Rules};
use crate::copy::{BadCopy, Bytes, PeerCopy, Restored, SwarmHead};

/// Most peers have one address.
const BYTES_PER_PEER: usize = 76;

impl Shard {
    /// Appends everything to `out`.
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.peer_count() * BYTES_PER_PEER);
        for slot in self.swarm_by_hash.iter() {
            let swarm = &self.swarms[slot];
            let members = swarm.members.all();
            if members.is_empty() && swarm.snatches == 0 {
                continue;
            }
            let head = SwarmHead {
                info_hash: swarm.info_hash,
                snatches: swarm.snatches,
                peers: members.len() as u32,
            };
            head.write(out);
            for member in members {
                let peer = self.peers[member.slot()];
                let addresses = swarm.members.addresses(peer.position());
                let is_seeder = swarm.members.is_seeder(peer.position());
                let silence_max = self.longer_silences.get(&member.slot()).copied().unwrap_or_default();
                PeerCopy { peer, addresses, is_seeder, silence_max }.write(out);
            }
        }
    }

    /// Restores one swarm; its peers follow in `bytes`. Overdue peers are restored as well: the wheel expires them, so
    /// that a timeout is written to the journal. Existing peers are unchanged.
    pub(crate) fn restore(
        &mut self,
        hash_of_torrent: u64,
        head: &SwarmHead,
        bytes: &mut Bytes<'_>,
        rules: &Rules,
        mut on_peer: impl FnMut(&InfoHash, UserId),
    ) -> Result<Restored, BadCopy> {
        let mut restored = Restored { swarms: 1, ..Restored::default() };
        let swarm = self.find_or_open_swarm(hash_of_torrent, &head.info_hash, true).ok().flatten();
        if let Some(swarm) = swarm {
            self.raise_snatches(swarm, head.snatches);
        }
        for _ in 0..head.peers {
            let copy = PeerCopy::read(bytes, swarm.unwrap_or_default())?;
            if swarm.is_some_and(|swarm| self.restore_peer(swarm, &copy, rules)) {
                on_peer(&head.info_hash, copy.peer.user);
                restored.peers += 1;
            } else {
                restored.left_out += 1;
            }
        }
        Ok(restored)
    }

    fn restore_peer(&mut self, swarm: u32, copy: &PeerCopy, rules: &Rules) -> bool {
        let own = self.own_peers(swarm, copy.peer.user);
        let is_there = self.find_client(&own, &copy.peer.peer_id, copy.peer.key).is_some();
        if is_there || own.count >= CLIENTS_PER_USER_MAX || self.is_full(swarm) {
            return false;
        }
        let had_slot = self.any_leeches(&own);
        let slot = self.admit(copy.peer, copy.addresses, rules);
        self.set_silence_max(slot, copy.silence_max, rules);
        self.set_seeder(slot, copy.is_seeder);
        self.settle_slot(had_slot, swarm, copy.peer.user);
        true
    }

    /// Raises the number of completions to at least this.
    pub(crate) fn raise_snatches_of(&mut self, hash_of_torrent: u64, info_hash: &InfoHash, snatches: u32) {
        if let Ok(Some(swarm)) = self.find_or_open_swarm(hash_of_torrent, info_hash, snatches > 0) {
            self.raise_snatches(swarm, snatches);
        }
    }

    fn raise_snatches(&mut self, swarm: u32, snatches: u32) {
        let known = &mut self.swarms[swarm].snatches;
        *known = (*known).max(snatches);
    }
}
