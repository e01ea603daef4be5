//! Removal of peers by an operator: by torrent, by user or client, by port.

use domain::{InfoHash, PeerId, UserId};

use super::Shard;
use crate::announce::Departure;
use crate::peer::Peer;

impl Shard {
    pub(crate) fn remove_torrent(
        &mut self,
        hash_of_torrent: u64,
        info_hash: &InfoHash,
        mut departed: impl FnMut(Departure),
    ) {
        let Some(swarm) = self.find_swarm(hash_of_torrent, info_hash) else { return };
        self.swarm_by_hash.remove(hash_of_torrent, swarm);
        while let Some(member) = self.swarms[swarm].members.all().last() {
            let slot = member.slot();
            departed(self.departure(slot));
            self.leave(slot);
        }
        self.swarms.release(swarm);
    }

    /// Removes all peers for which `is_out` is true. Reads every record of the shard: for rare operations.
    pub(crate) fn remove_peers(
        &mut self,
        is_out: impl Fn(UserId, &PeerId) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        let slots: Vec<u32> =
            self.live_peers().filter(|(_, peer)| is_out(peer.user, &peer.peer_id)).map(|(s, _)| s).collect();
        for slot in slots {
            departed(self.departure(slot));
            self.leave(slot);
        }
    }

    /// Removes all peers with an address whose port `is_banned`. Reads every record of the shard.
    pub(crate) fn remove_peers_on_ports(
        &mut self,
        is_banned: impl Fn(u16) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        let is_out = |(_, peer): &(u32, &Peer)| {
            let addresses = self.swarms[peer.swarm()].members.addresses(peer.position());
            [addresses.socket_v4(), addresses.socket_v6()]
                .iter()
                .flatten()
                .any(|address| is_banned(address.port()))
        };
        let slots: Vec<u32> = self.live_peers().filter(is_out).map(|(slot, _)| slot).collect();
        for slot in slots {
            departed(self.departure(slot));
            self.leave(slot);
        }
    }
}
