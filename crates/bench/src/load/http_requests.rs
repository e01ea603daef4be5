//! HTTP announces rendered beforehand.

use domain::{AnnounceEvent, percent};
use wire::bencode::push_decimal;

use crate::population::{Peer, Population};
use crate::schedule::ScheduledAnnounce;

/// The first part of every peer's request, concatenated.
///
/// The counter and the event come last in the query, so that a request is three copies: this part, the digits and the
/// event, and the headers that all requests share.
pub struct HttpRequests {
    heads: Vec<u8>,
    /// The end of each peer's part.
    ends: Vec<u32>,
    tail: Vec<u8>,
}

impl HttpRequests {
    /// Renders the requests of all peers for a server at `host` (address and port).
    pub fn new(population: &Population, host: &str) -> Self {
        let mut heads = Vec::new();
        let mut ends = Vec::with_capacity(population.peers() as usize);
        for number in 0..population.peers() {
            write_head(&mut heads, &population.peer(number));
            ends.push(
                u32::try_from(heads.len()).expect("at most a few hundred bytes for each of a few peers"),
            );
        }
        // The headers of Transmission.
        let tail = format!(
            " HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Transmission/4.0.6\r\nAccept: */*\r\nAccept-Encoding: deflate, gzip\r\n\r\n"
        );
        HttpRequests { heads, ends, tail: tail.into_bytes() }
    }

    /// Appends one request.
    pub fn write(&self, scheduled: ScheduledAnnounce, out: &mut Vec<u8>) {
        let peer = scheduled.peer as usize;
        let start = if peer == 0 { 0 } else { self.ends[peer - 1] as usize };
        out.extend_from_slice(&self.heads[start..self.ends[peer] as usize]);
        push_decimal(out, scheduled.uploaded);
        match scheduled.event {
            AnnounceEvent::None => {}
            AnnounceEvent::Started => out.extend_from_slice(b"&event=started"),
            AnnounceEvent::Completed => out.extend_from_slice(b"&event=completed"),
            AnnounceEvent::Stopped => out.extend_from_slice(b"&event=stopped"),
        }
        out.extend_from_slice(&self.tail);
    }
}

fn write_head(out: &mut Vec<u8>, peer: &Peer) {
    out.extend_from_slice(format!("GET /{}/announce?info_hash=", peer.passkey).as_bytes());
    percent::push(out, &peer.info_hash.0);
    out.extend_from_slice(b"&peer_id=");
    percent::push(out, &peer.peer_id.0);
    let Peer { port, left, key, .. } = peer;
    let rest = format!(
        "&port={port}&downloaded=0&left={left}&numwant=50&key={:08x}&compact=1&supportcrypto=1&uploaded=",
        key.0
    );
    out.extend_from_slice(rest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Shape;

    #[test]
    fn a_request_is_what_a_client_would_send() {
        let population = Population::new(Shape { torrents: 2, peers: 4 });
        let requests = HttpRequests::new(&population, "127.0.0.1:6969");
        let peer = population.peer(2);
        let mut out = Vec::new();
        requests.write(
            ScheduledAnnounce { peer: 2, uploaded: 1_000_016_384, event: AnnounceEvent::Started },
            &mut out,
        );
        let text = String::from_utf8(out).expect("percent-encoded");
        assert!(text.starts_with(&format!("GET /{}/announce?info_hash=", peer.passkey)), "{text}");
        assert!(
            text.contains(&format!("&peer_id={}&", std::str::from_utf8(&peer.peer_id.0).unwrap())),
            "{text}"
        );
        assert!(text.contains(&format!("&port={}&", peer.port)), "{text}");
        assert!(
            text.contains("&uploaded=1000016384&event=started HTTP/1.1\r\nHost: 127.0.0.1:6969\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\n\r\n"));
        assert_eq!(text.matches("\r\n\r\n").count(), 1);
    }
}
