//! UDP announces rendered beforehand (BEP 15, with the path of BEP 41).

use domain::AnnounceEvent;

use crate::population::{Peer, Population};
use crate::schedule::ScheduledAnnounce;

/// BEP 15: what a connect request begins with.
pub const PROTOCOL_ID: u64 = 0x0417_2710_1980;
/// BEP 15: the action of a connect.
pub const ACTION_CONNECT: u32 = 0;
/// BEP 15: the action of an announce.
pub const ACTION_ANNOUNCE: u32 = 1;
/// BEP 15: the action of an error.
pub const ACTION_ERROR: u32 = 3;

const ANNOUNCE_BYTES: usize = 98;
/// `/`, the 32 digits of our passkeys, `/announce`.
const PATH_BYTES: usize = 1 + 32 + 9;
/// An announce with its path: option 2 (URLData) and its length, the path, option 0 (EndOfOptions).
pub const PACKET_BYTES: usize = ANNOUNCE_BYTES + 2 + PATH_BYTES + 1;

/// Every peer's packet, concatenated. Connection id, transaction, counter and event are filled in when sent.
pub struct UdpPackets {
    packets: Vec<u8>,
}

impl UdpPackets {
    /// Renders the packets of all peers.
    pub fn new(population: &Population) -> Self {
        let mut packets = Vec::with_capacity(population.peers() as usize * PACKET_BYTES);
        for number in 0..population.peers() {
            write_packet(&mut packets, &population.peer(number));
        }
        UdpPackets { packets }
    }

    /// Writes one packet.
    pub fn write(
        &self,
        scheduled: ScheduledAnnounce,
        connection_id: u64,
        transaction: u32,
        out: &mut [u8; PACKET_BYTES],
    ) {
        let start = scheduled.peer as usize * PACKET_BYTES;
        out.copy_from_slice(&self.packets[start..start + PACKET_BYTES]);
        out[..8].copy_from_slice(&connection_id.to_be_bytes());
        out[12..16].copy_from_slice(&transaction.to_be_bytes());
        out[72..80].copy_from_slice(&scheduled.uploaded.to_be_bytes());
        out[80..84].copy_from_slice(&event_number(scheduled.event).to_be_bytes());
    }
}

pub fn connect_request(transaction: u32) -> [u8; 16] {
    let mut packet = [0; 16];
    packet[..8].copy_from_slice(&PROTOCOL_ID.to_be_bytes());
    packet[8..12].copy_from_slice(&ACTION_CONNECT.to_be_bytes());
    packet[12..].copy_from_slice(&transaction.to_be_bytes());
    packet
}

/// The connection id of a connect reply; none if it does not belong to `transaction`.
pub fn connection_id(reply: &[u8], transaction: u32) -> Option<u64> {
    let (action, echoed) = action_and_transaction(reply)?;
    let id = reply.get(8..16)?;
    (action == ACTION_CONNECT && echoed == transaction)
        .then(|| u64::from_be_bytes(id.try_into().expect("eight bytes were taken")))
}

/// The header of every reply.
pub fn action_and_transaction(reply: &[u8]) -> Option<(u32, u32)> {
    let action = reply.get(..4)?.try_into().expect("four bytes were taken");
    let transaction = reply.get(4..8)?.try_into().expect("four bytes were taken");
    Some((u32::from_be_bytes(action), u32::from_be_bytes(transaction)))
}

fn write_packet(out: &mut Vec<u8>, peer: &Peer) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]); // connection id
    out.extend_from_slice(&ACTION_ANNOUNCE.to_be_bytes());
    out.extend_from_slice(&[0; 4]); // transaction
    out.extend_from_slice(&peer.info_hash.0);
    out.extend_from_slice(&peer.peer_id.0);
    out.extend_from_slice(&0_u64.to_be_bytes()); // downloaded
    out.extend_from_slice(&peer.left.to_be_bytes());
    out.extend_from_slice(&[0; 8 + 4 + 4]); // uploaded, event, address
    out.extend_from_slice(&peer.key.0.to_be_bytes());
    out.extend_from_slice(&50_i32.to_be_bytes()); // numwant
    out.extend_from_slice(&peer.port.to_be_bytes());
    debug_assert_eq!(out.len() - start, ANNOUNCE_BYTES);
    out.extend_from_slice(&[2, PATH_BYTES as u8]);
    out.extend_from_slice(format!("/{}/announce", peer.passkey).as_bytes());
    out.push(0);
    assert_eq!(out.len() - start, PACKET_BYTES, "passkeys of the population have 32 digits");
}

fn event_number(event: AnnounceEvent) -> u32 {
    match event {
        AnnounceEvent::None => 0,
        AnnounceEvent::Completed => 1,
        AnnounceEvent::Started => 2,
        AnnounceEvent::Stopped => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Shape;

    #[test]
    fn a_packet_is_laid_out_as_bep_15_and_bep_41_say() {
        let population = Population::new(Shape { torrents: 2, peers: 4 });
        let peer = population.peer(3);
        let mut packet = [0; PACKET_BYTES];
        let scheduled = ScheduledAnnounce { peer: 3, uploaded: 77, event: AnnounceEvent::Started };
        UdpPackets::new(&population).write(scheduled, 0x0102_0304_0506_0708, 9, &mut packet);
        assert_eq!(packet[..16], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 9]);
        assert_eq!(packet[16..36], peer.info_hash.0);
        assert_eq!(packet[36..56], peer.peer_id.0);
        assert_eq!(packet[72..80], 77_u64.to_be_bytes());
        assert_eq!(packet[80..84], 2_u32.to_be_bytes());
        assert_eq!(packet[92..96], 50_i32.to_be_bytes());
        assert_eq!(packet[96..98], peer.port.to_be_bytes());
        assert_eq!(packet[98..100], [2, 42]);
        assert_eq!(packet[100..142], *format!("/{}/announce", peer.passkey).as_bytes());
        assert_eq!(packet[142..], [0]);
    }

    #[test]
    fn a_connection_id_is_taken_only_from_the_reply_to_ones_own_request() {
        let mut reply = connect_request(5);
        reply[..8].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(connection_id(&reply, 5), Some(5));
        assert_eq!(connection_id(&reply, 6), None);
        assert_eq!(connection_id(&reply[..15], 5), None);
    }
}
