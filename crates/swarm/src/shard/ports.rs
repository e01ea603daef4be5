//! Peers that leave because of the port they listen on.

use super::Shard;
use crate::announce::Departure;
use crate::peer::Peer;

impl Shard {
    /// Takes out all peers with an address whose port `is_banned`. Reads every record of the shard.
    pub(crate) fn remove_peers_on_ports(
        &mut self,
        is_banned: impl Fn(u16) -> bool,
        mut departed: impl FnMut(Departure),
    ) {
        let is_out = |(_, peer): &(u32, &Peer)| {
            let member = &self.swarms[peer.swarm()].members.all()[peer.position() as usize];
            [member.address_v4(), member.address_v6()]
                .iter()
                .flatten()
                .any(|address| is_banned(address.port()))
        };
        let slots: Vec<u32> = self.living().filter(is_out).map(|(slot, _)| slot).collect();
        for slot in slots {
            departed(self.departure(slot));
            self.leave(slot);
        }
    }
}
