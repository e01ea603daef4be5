//! What a peer says: an announce as values, written for HTTP or for UDP.

use std::fmt::Write as _;

use domain::{AnnounceEvent, InfoHash, Passkey, PeerId};

/// The options of BEP 41 hold so many bytes each.
const OPTION_TEXT_MAX: usize = 255;

/// An announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Whose client it is.
    pub passkey: Passkey,
    /// The torrent.
    pub info_hash: InfoHash,
    /// The client.
    pub peer_id: PeerId,
    /// What the client calls itself over HTTP.
    pub agent: &'static str,
    /// What links its announces.
    pub key: u32,
    /// Where it listens.
    pub port: u16,
    /// Bytes it has sent since it was started.
    pub uploaded: u64,
    /// Bytes it has received since it was started.
    pub downloaded: u64,
    /// Bytes it still wants.
    pub left: u64,
    /// Why it announces.
    pub event: AnnounceEvent,
    /// How many peers it wants.
    pub numwant: i32,
}

impl Announce {
    /// The whole request over HTTP, on a connection that ends with it.
    pub fn request(&self, host: &str) -> String {
        let mut request = format!("GET /announce/{}?info_hash=", self.passkey);
        percent_encode(&self.info_hash.0, &mut request);
        request.push_str("&peer_id=");
        percent_encode(&self.peer_id.0, &mut request);
        let _ = write!(
            request,
            "&port={}&uploaded={}&downloaded={}&left={}&corrupt=0&key={:08X}",
            self.port, self.uploaded, self.downloaded, self.left, self.key
        );
        if self.event != AnnounceEvent::None {
            let _ = write!(request, "&event={}", self.event);
        }
        let _ = write!(
            request,
            "&numwant={}&compact=1&no_peer_id=1 HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {}\r\nConnection: close\r\n\r\n",
            self.numwant, self.agent
        );
        request
    }

    /// The packet over UDP (BEP 15), with the passkey behind it (BEP 41).
    pub fn packet(&self, connection: u64, transaction: u32) -> Vec<u8> {
        let event: u32 = match self.event {
            AnnounceEvent::None => 0,
            AnnounceEvent::Completed => 1,
            AnnounceEvent::Started => 2,
            AnnounceEvent::Stopped => 3,
        };
        let mut packet = Vec::with_capacity(160);
        packet.extend(connection.to_be_bytes());
        packet.extend(1_u32.to_be_bytes());
        packet.extend(transaction.to_be_bytes());
        packet.extend(self.info_hash.0);
        packet.extend(self.peer_id.0);
        packet.extend(self.downloaded.to_be_bytes());
        packet.extend(self.left.to_be_bytes());
        packet.extend(self.uploaded.to_be_bytes());
        packet.extend(event.to_be_bytes());
        packet.extend([0; 4]); // no address of its own
        packet.extend(self.key.to_be_bytes());
        packet.extend(self.numwant.to_be_bytes());
        packet.extend(self.port.to_be_bytes());
        for part in format!("/announce/{}", self.passkey).as_bytes().chunks(OPTION_TEXT_MAX) {
            packet.extend([2, part.len() as u8]);
            packet.extend(part);
        }
        packet
    }
}

/// Writes bytes as clients write ids in a query: what is not plainly allowed becomes `%xx`.
fn percent_encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::http::{AnnounceQuery, parse_target};
    use wire::udp::{Request, parse_request};

    fn announce() -> Announce {
        Announce {
            passkey: Passkey::from_random_bytes([0xab; 16]),
            info_hash: InfoHash([0x01; 20]),
            peer_id: PeerId(*b"-TR4060-abcdefghijkl"),
            agent: "Transmission/4.0.6",
            key: 0xbeef,
            port: 51_413,
            uploaded: 11,
            downloaded: 22,
            left: 33,
            event: AnnounceEvent::Started,
            numwant: 80,
        }
    }

    #[test]
    fn the_tracker_reads_over_http_what_was_meant() {
        let announce = announce();
        let request = announce.request("127.0.0.1:6969");
        let path = request.split(' ').nth(1).unwrap();
        let target = parse_target(path.as_bytes()).unwrap();
        assert_eq!(target.path_passkey().unwrap(), Some(announce.passkey));
        let query = AnnounceQuery::parse(path.split_once('?').unwrap().1.as_bytes()).unwrap();
        assert_eq!(
            (query.info_hash, query.peer_id, query.port),
            (announce.info_hash, announce.peer_id, 51_413)
        );
        assert_eq!((query.uploaded, query.downloaded, query.left), (11, 22, Some(33)));
        assert_eq!((query.event, query.key.0), (AnnounceEvent::Started, 0xbeef));
    }

    #[test]
    fn the_tracker_reads_over_udp_what_was_meant() {
        let announce = announce();
        let packet = announce.packet(7, 9);
        let Request::Announce(read) = parse_request(&packet).unwrap() else { panic!("not an announce") };
        assert_eq!(read.passkey().unwrap(), Some(announce.passkey));
        assert_eq!(
            (read.info_hash, read.peer_id, read.event),
            (announce.info_hash, announce.peer_id, announce.event)
        );
    }
}
