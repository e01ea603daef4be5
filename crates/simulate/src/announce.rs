//! An announce as values, encoded for HTTP or UDP.

use std::fmt::Write as _;

use domain::{AnnounceEvent, InfoHash, Passkey, PeerId, percent};

/// Bytes in one option of BEP 41.
const OPTION_TEXT_MAX: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    pub passkey: Passkey,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    /// The `User-Agent` over HTTP.
    pub agent: &'static str,
    /// Identifies the client when its peer id changes.
    pub key: u32,
    pub port: u16,
    /// Since the client started.
    pub uploaded: u64,
    /// Since the client started.
    pub downloaded: u64,
    pub left: u64,
    pub event: AnnounceEvent,
    pub numwant: i32,
}

impl Announce {
    /// An HTTP request with `Connection: close`.
    pub fn request(&self, host: &str) -> String {
        let mut request = format!(
            "GET /announce/{}?info_hash={}&peer_id={}&port={}&uploaded={}&downloaded={}&left={}&corrupt=0&key={:08X}",
            self.passkey,
            percent::encode(&self.info_hash.0),
            percent::encode(&self.peer_id.0),
            self.port,
            self.uploaded,
            self.downloaded,
            self.left,
            self.key
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

    /// A UDP packet (BEP 15), with the passkey as URL data (BEP 41).
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    use domain::UnixTime;
    use wire::http::{Received, parse_announce, parse_target};
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
        let received = Received { ip: Ipv4Addr::LOCALHOST.into(), trusts_ip: false, now: UnixTime(0) };
        let query = parse_announce(target.query, received).unwrap();
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
        let read = read.announce(Ipv4Addr::LOCALHOST.into(), UnixTime(0));
        assert_eq!(
            (read.info_hash, read.peer_id, read.event),
            (announce.info_hash, announce.peer_id, announce.event)
        );
    }
}
