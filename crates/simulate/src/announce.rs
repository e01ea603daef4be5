//! An announce as values, encoded for HTTP and UDP.

use std::io::Write as _;

use domain::{AnnounceEvent, InfoHash, Passkey, PeerId, percent};
use wire::bencode::push_decimal;

use crate::reply::ACTION_ANNOUNCE;

/// Bytes of a UDP announce without options.
const PACKET_BYTES: usize = 98;

/// Where an HTTP request has its passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasskeyIn {
    /// `/<passkey>/announce`, as private trackers expect it.
    Path,
    /// `/announce?passkey=<passkey>&…`: trackers that know no passkeys ignore it.
    Query,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    pub passkey: Passkey,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    /// The `User-Agent` over HTTP.
    pub agent: &'static str,
    /// Identifies the client when its peer id changes.
    pub key: Option<u32>,
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
    /// An HTTP request that keeps its connection open.
    pub fn request(&self, host: &str) -> Vec<u8> {
        let mut request = Vec::with_capacity(512);
        self.write_head(PasskeyIn::Path, &mut request);
        write_progress(&mut request, self.uploaded, self.event);
        request.extend_from_slice(headers(host, self.agent).as_bytes());
        request
    }

    /// The request up to its upload counter. Counter and event come last in the query, so that a client that announces
    /// repeatedly renders the rest once.
    pub fn write_head(&self, passkey_in: PasskeyIn, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = match passkey_in {
            PasskeyIn::Path => write!(out, "GET /{}/announce?info_hash=", self.passkey),
            PasskeyIn::Query => write!(out, "GET /announce?passkey={}&info_hash=", self.passkey),
        };
        percent::push(out, &self.info_hash.0);
        out.extend_from_slice(b"&peer_id=");
        percent::push(out, &self.peer_id.0);
        let Announce { port, downloaded, left, numwant, .. } = self;
        let _ = write!(out, "&port={port}&downloaded={downloaded}&left={left}&numwant={numwant}");
        if let Some(key) = self.key {
            let _ = write!(out, "&key={key:08x}");
        }
        out.extend_from_slice(b"&compact=1&supportcrypto=1&uploaded=");
    }

    /// A UDP packet (BEP 15), with the passkey as URL data (BEP 41).
    pub fn packet(&self, connection: u64, transaction: u32) -> Vec<u8> {
        let path = format!("/{}/announce", self.passkey);
        let mut packet = Vec::with_capacity(PACKET_BYTES + path.len() + 3);
        packet.extend([0; 8]); // connection id
        packet.extend(ACTION_ANNOUNCE.to_be_bytes());
        packet.extend([0; 4]); // transaction
        packet.extend(self.info_hash.0);
        packet.extend(self.peer_id.0);
        packet.extend(self.downloaded.to_be_bytes());
        packet.extend(self.left.to_be_bytes());
        packet.extend([0; 8 + 4 + 4]); // uploaded, event, address
        packet.extend(self.key.unwrap_or(0).to_be_bytes());
        packet.extend(self.numwant.to_be_bytes());
        packet.extend(self.port.to_be_bytes());
        packet.extend([2, u8::try_from(path.len()).expect("a passkey is shorter than one option")]);
        packet.extend(path.as_bytes());
        packet.push(0);
        fill_packet(&mut packet, (connection, transaction), self.uploaded, self.event);
        packet
    }
}

/// The upload counter and the event, at the end of a query.
pub fn write_progress(out: &mut Vec<u8>, uploaded: u64, event: AnnounceEvent) {
    push_decimal(out, uploaded);
    if event != AnnounceEvent::None {
        let _ = write!(out, "&event={event}");
    }
}

/// The end of a request: version and the headers of Transmission.
pub fn headers(host: &str, agent: &str) -> String {
    format!(
        " HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\nAccept-Encoding: deflate, gzip\r\n\r\n"
    )
}

/// Sets what changes between the packets of one client.
pub fn fill_packet(packet: &mut [u8], ids: (u64, u32), uploaded: u64, event: AnnounceEvent) {
    let event: u32 = match event {
        AnnounceEvent::None => 0,
        AnnounceEvent::Completed => 1,
        AnnounceEvent::Started => 2,
        AnnounceEvent::Stopped => 3,
    };
    packet[..8].copy_from_slice(&ids.0.to_be_bytes());
    packet[12..16].copy_from_slice(&ids.1.to_be_bytes());
    packet[72..80].copy_from_slice(&uploaded.to_be_bytes());
    packet[80..84].copy_from_slice(&event.to_be_bytes());
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
            key: Some(0xbeef),
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
        let request = String::from_utf8(announce.request("127.0.0.1:6969")).unwrap();
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
        assert!(request.contains("&uploaded=11&event=started HTTP/1.1\r\nHost: 127.0.0.1:6969\r\n"));
        assert!(request.ends_with("\r\n\r\n") && request.matches("\r\n\r\n").count() == 1);
        let without_key = Announce { key: None, ..announce }.request("x");
        assert!(!String::from_utf8(without_key).unwrap().contains("key="));
    }

    #[test]
    fn a_packet_is_laid_out_as_bep_15_and_bep_41_say() {
        let announce = announce();
        let packet = announce.packet(0x0102_0304_0506_0708, 9);
        assert_eq!(packet[..16], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 9]);
        assert_eq!(packet[98..100], [2, 42]);
        assert_eq!(packet[100..142], *format!("/{}/announce", announce.passkey).as_bytes());
        assert_eq!(packet[142..], [0]);
        let Request::Announce(read) = parse_request(&packet).unwrap() else { panic!("not an announce") };
        assert_eq!(read.passkey().unwrap(), Some(announce.passkey));
        let read = read.announce(Ipv4Addr::LOCALHOST.into(), UnixTime(0));
        assert_eq!(
            (read.info_hash, read.peer_id, read.event),
            (announce.info_hash, announce.peer_id, announce.event)
        );
        assert_eq!((read.uploaded, read.downloaded, read.left, read.port), (11, 22, Some(33), 51_413));
        assert_eq!((read.key.0, read.numwant), (0xbeef, Some(80)));
    }
}
