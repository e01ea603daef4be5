//! HTTP announces rendered beforehand.

use super::{Peers, ScheduledAnnounce};
use crate::announce::{PasskeyIn, headers, write_progress};
use crate::clients::TRANSMISSION;

/// The first part of every peer's request, concatenated. A request is three copies: this part, counter and event, and
/// the headers that all requests share.
pub struct HttpRequests {
    heads: Vec<u8>,
    /// The end of each peer's part.
    ends: Vec<usize>,
    headers: Vec<u8>,
}

impl HttpRequests {
    /// Renders the requests of all peers for a server at `host` (address and port).
    pub fn new(peers: &Peers, host: &str, passkey_in: PasskeyIn) -> Self {
        let (mut heads, mut ends) = (Vec::new(), Vec::with_capacity(peers.count() as usize));
        for number in 0..peers.count() {
            peers.get(number).announce.write_head(passkey_in, &mut heads);
            ends.push(heads.len());
        }
        HttpRequests { heads, ends, headers: headers(host, TRANSMISSION.agent).into_bytes() }
    }

    /// Appends one request.
    pub fn write(&self, scheduled: ScheduledAnnounce, out: &mut Vec<u8>) {
        let peer = scheduled.peer as usize;
        let start = if peer == 0 { 0 } else { self.ends[peer - 1] };
        out.extend_from_slice(&self.heads[start..self.ends[peer]]);
        write_progress(out, scheduled.uploaded, scheduled.event);
        out.extend_from_slice(&self.headers);
    }
}

#[cfg(test)]
mod tests {
    use domain::AnnounceEvent;

    use super::*;
    use crate::announce::Announce;
    use crate::load::Shape;

    #[test]
    fn a_rendered_request_is_that_of_the_announce() {
        let peers = Peers::new(Shape { torrents: 2, peers: 4 });
        let requests = HttpRequests::new(&peers, "127.0.0.1:6969", PasskeyIn::Path);
        for event in [AnnounceEvent::None, AnnounceEvent::Started] {
            let mut out = Vec::new();
            requests.write(ScheduledAnnounce { peer: 2, uploaded: 1_000_016_384, event }, &mut out);
            let announce = Announce { uploaded: 1_000_016_384, event, ..peers.get(2).announce };
            assert_eq!(out, announce.request("127.0.0.1:6969"));
        }
    }
}
