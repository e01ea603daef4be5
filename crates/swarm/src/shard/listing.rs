//! Counts and peers for the API.

use domain::InfoHash;

use super::Shard;
use crate::announce::SwarmCounts;
use crate::members::Member;
use crate::peer_info::PeerInfo;

impl Shard {
    /// The counts of every torrent with any.
    pub(crate) fn counts_to(&self, out: &mut Vec<(InfoHash, SwarmCounts)>) {
        let swarms = self.swarm_by_hash.iter().map(|slot| &self.swarms[slot]);
        let counted = swarms.map(|swarm| (swarm.info_hash, swarm.counts()));
        out.extend(counted.filter(|(_, counts)| *counts != SwarmCounts::default()));
    }

    pub(crate) fn peers_of(&self, hash_of_torrent: u64, info_hash: &InfoHash) -> Vec<PeerInfo> {
        let Some(swarm) = self.find_swarm(hash_of_torrent, info_hash) else { return Vec::new() };
        let members = &self.swarms[swarm].members;
        let seen = |(position, member): (usize, &Member)| {
            let peer = &self.peers[member.slot()];
            let addresses = members.addresses(position as u32);
            PeerInfo {
                user: peer.user,
                peer_id: peer.peer_id,
                is_seeding: members.is_seeder(position as u32),
                v4: addresses.socket_v4(),
                v6: addresses.socket_v6(),
                uploaded: peer.uploaded,
                downloaded: peer.downloaded,
                last_announce: peer.last_announce,
            }
        };
        members.all().iter().enumerate().map(seen).collect()
    }
}
