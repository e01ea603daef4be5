//! A UDP tracker client (BEP 15, with the URL of BEP 41).

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{AnnounceEvent, InfoHash};

use crate::Family;
use crate::announce::Announce;
use crate::reply::{SwarmCounts, compact_v4, compact_v6};

/// What opens a connect request.
pub const PROTOCOL_ID: u64 = 0x0417_2710_1980;
/// The longest text of one URL data option.
const OPTION_TEXT_MAX: usize = 255;
/// A packet that is lost is sent again after this long.
const RESEND_AFTER: Duration = Duration::from_millis(500);
/// How often a packet is sent before the test has failed.
const ATTEMPTS: u32 = 20;

/// The reply to a UDP announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpAnnounceReply {
    /// Seconds until the next announce.
    pub interval: u32,
    pub leechers: u32,
    pub seeders: u32,
    /// Peers of the address family of the request.
    pub peers: Vec<SocketAddr>,
}

/// The message of an error packet.
pub type UdpRefusal = String;

/// A socket with its tracker.
pub struct RawUdp {
    socket: UdpSocket,
    server: SocketAddr,
    last_transaction: u32,
}

impl RawUdp {
    /// A socket of its own, for this tracker.
    #[track_caller]
    pub fn new(server: SocketAddr) -> Self {
        let family = if server.is_ipv4() { Family::V4 } else { Family::V6 };
        Self::from_address(family.loopback(), server)
    }

    /// The same, sending from this address of the machine.
    #[track_caller]
    pub fn from_address(local: IpAddr, server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((local, 0)).expect("some port is free");
        socket.connect(server).expect("loopback is reachable");
        RawUdp { socket, server, last_transaction: 0x0101_0000 }
    }

    /// The address the tracker sees.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket has an address")
    }

    pub fn send(&self, packet: &[u8]) {
        self.socket.send(packet).expect("loopback takes a packet");
    }

    /// The next packet that arrives within `limit`.
    pub fn receive(&self, limit: Duration) -> Option<Vec<u8>> {
        self.socket.set_read_timeout(Some(limit)).expect("a limit above zero");
        let mut packet = vec![0; 65_536];
        // A port without a listener is an error of the socket: for the caller it is a timeout.
        let length = self.socket.recv(&mut packet).ok()?;
        packet.truncate(length);
        Some(packet)
    }

    /// Sends a packet, again if need be, until one with the same transaction id arrives.
    #[track_caller]
    pub fn exchange(&self, packet: &[u8]) -> Vec<u8> {
        self.try_exchange(packet, RESEND_AFTER * ATTEMPTS)
            .unwrap_or_else(|| panic!("no reply from udp://{}", self.server))
    }

    /// The same, but nothing if no reply arrives in time.
    pub fn try_exchange(&self, packet: &[u8], limit: Duration) -> Option<Vec<u8>> {
        let since_start = Stopwatch::start();
        while since_start.elapsed() < limit {
            // The socket reports the error of an earlier packet here.
            let _ = self.socket.send(packet);
            match self.receive(RESEND_AFTER) {
                Some(reply) if reply.get(4..8) == packet.get(12..16) => return Some(reply),
                Some(_) => {}
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        None
    }

    /// Asks for a connection id.
    #[track_caller]
    pub fn connect(&mut self) -> u64 {
        let transaction = self.next_transaction();
        connection_id(&self.exchange(&request_head(PROTOCOL_ID, 0, transaction)))
    }

    /// Connects and announces; `url_path` is sent as URL data, such as `/<passkey>/announce`, unless it is empty.
    #[track_caller]
    pub fn announce(&mut self, announce: &Announce, url_path: &str) -> Result<UdpAnnounceReply, UdpRefusal> {
        self.try_announce(announce, url_path, RESEND_AFTER * ATTEMPTS)
            .unwrap_or_else(|| panic!("no reply from udp://{}", self.server))
    }

    /// The same, but nothing if the tracker does not reply in time, or does not accept the connection id.
    pub fn try_announce(
        &mut self,
        announce: &Announce,
        url_path: &str,
        limit: Duration,
    ) -> Option<Result<UdpAnnounceReply, UdpRefusal>> {
        let transaction = self.next_transaction();
        let reply = self.try_exchange(&request_head(PROTOCOL_ID, 0, transaction), limit)?;
        let connection = connection_id(&reply);
        let packet = announce_packet(connection, self.next_transaction(), announce, url_path);
        let reply = self.try_exchange(&packet, limit)?;
        Some(body_of(&reply, 1).map(|body| self.announce_reply(body)))
    }

    #[track_caller]
    fn announce_reply(&self, body: &[u8]) -> UdpAnnounceReply {
        assert!(body.len() >= 12, "an announce reply has at least 20 bytes");
        let list = &body[12..];
        let peers = if self.server.is_ipv4() { compact_v4(list) } else { compact_v6(list) };
        UdpAnnounceReply {
            interval: u32_at(body, 0),
            leechers: u32_at(body, 4),
            seeders: u32_at(body, 8),
            peers,
        }
    }

    /// Connects and scrapes; `url_path` follows the infohashes as URL data, unless it is empty.
    #[track_caller]
    pub fn scrape(&mut self, torrents: &[InfoHash], url_path: &str) -> Result<Vec<SwarmCounts>, UdpRefusal> {
        let connection = self.connect();
        let mut packet = request_head(connection, 2, self.next_transaction());
        torrents.iter().for_each(|info_hash| packet.extend(info_hash.0));
        packet.extend(url_data(url_path));
        let reply = self.exchange(&packet);
        let body = body_of(&reply, 2)?;
        assert_eq!(body.len(), torrents.len() * 12, "a scrape reply has 12 bytes for each torrent");
        let read_one = |entry: &[u8]| SwarmCounts {
            complete: i64::from(u32_at(entry, 0)),
            downloaded: i64::from(u32_at(entry, 4)),
            incomplete: i64::from(u32_at(entry, 8)),
        };
        Ok(body.chunks(12).map(read_one).collect())
    }

    fn next_transaction(&mut self) -> u32 {
        self.last_transaction += 1;
        self.last_transaction
    }
}

/// The first sixteen bytes of every request.
pub fn request_head(connection: u64, action: u32, transaction: u32) -> Vec<u8> {
    let mut packet = connection.to_be_bytes().to_vec();
    packet.extend(action.to_be_bytes());
    packet.extend(transaction.to_be_bytes());
    packet
}

pub fn announce_packet(connection: u64, transaction: u32, announce: &Announce, url_path: &str) -> Vec<u8> {
    let event: u32 = match announce.event {
        AnnounceEvent::None => 0,
        AnnounceEvent::Completed => 1,
        AnnounceEvent::Started => 2,
        AnnounceEvent::Stopped => 3,
    };
    let mut packet = request_head(connection, 1, transaction);
    packet.extend(announce.info_hash.0);
    packet.extend(announce.peer_id.0);
    packet.extend(announce.downloaded.to_be_bytes());
    packet.extend(announce.left.unwrap_or(u64::MAX).to_be_bytes());
    packet.extend(announce.uploaded.to_be_bytes());
    packet.extend(event.to_be_bytes());
    packet.extend([0; 4]); // no address of its own
    packet.extend(announce.key.unwrap_or(0).to_be_bytes());
    packet.extend(announce.numwant.unwrap_or(-1).to_be_bytes());
    packet.extend(announce.port.to_be_bytes());
    packet.extend(url_data(url_path));
    packet
}

/// A path as BEP 41 options: type 2, length, text; as many as it takes. Nothing for an empty path.
pub fn url_data(path: &str) -> Vec<u8> {
    let mut options = Vec::new();
    for part in path.as_bytes().chunks(OPTION_TEXT_MAX) {
        options.extend([2, part.len() as u8]);
        options.extend(part);
    }
    options
}

/// What follows the head of a reply; the message, if it is an error packet.
#[track_caller]
fn body_of(reply: &[u8], action: u32) -> Result<&[u8], UdpRefusal> {
    match u32_at(reply, 0) {
        3 => Err(String::from_utf8_lossy(&reply[8..]).into_owned()),
        got => {
            assert_eq!(got, action, "the action of the reply");
            Ok(&reply[8..])
        }
    }
}

#[track_caller]
fn connection_id(reply: &[u8]) -> u64 {
    assert_eq!(reply.len(), 16, "a connect reply has 16 bytes");
    assert_eq!(u32_at(reply, 0), 0, "the action of a connect reply");
    u64::from_be_bytes(reply[8..16].try_into().expect("its length was checked"))
}

fn u32_at(bytes: &[u8], position: usize) -> u32 {
    u32::from_be_bytes(bytes[position..position + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announce_has_98_bytes_and_then_its_url() {
        let announce = Announce::leecher(InfoHash([0xab; 20]), 7);
        let packet = announce_packet(1, 2, &announce, "/abc");
        assert_eq!(packet.len(), 98 + 6);
        assert_eq!(&packet[96..], b"\x4e\x27\x02\x04/abc");
        let long = url_data(&"x".repeat(300));
        assert_eq!((long[1], long[257], long[258], long.len()), (255, 2, 45, 304));
    }

    #[test]
    fn an_error_packet_is_a_value() {
        assert_eq!(body_of(b"\0\0\0\x03\0\0\0\x01unknown passkey", 1), Err("unknown passkey".to_owned()));
    }
}
