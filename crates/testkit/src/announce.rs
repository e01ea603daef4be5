//! An announce as values, to be sent over HTTP or UDP.

use std::fmt::Write;

use domain::{AnnounceEvent, InfoHash, Passkey, PeerId, percent};

/// An announce. Fields that are `None` are left out of the query.
#[derive(Clone, Debug)]
pub struct Announce {
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub port: u16,
    pub uploaded: u64,
    pub downloaded: u64,
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    /// `numwant`.
    pub numwant: Option<i32>,
    pub key: Option<u32>,
    /// Further text for an HTTP query, such as `&ip=192.0.2.1`, exactly as it is to be sent.
    pub extra: String,
}

impl Announce {
    /// A leecher's announce; `client` fills the end of a peer id that looks like Transmission's.
    pub fn leecher(info_hash: InfoHash, client: u32) -> Self {
        let mut peer_id = *b"-TR3000-............";
        peer_id[12..].copy_from_slice(format!("{client:08x}").as_bytes());
        Announce {
            info_hash,
            peer_id: PeerId(peer_id),
            // Replies are matched by port, so each client has its own.
            port: 20_000 + (client % 10_000) as u16,
            uploaded: 0,
            downloaded: 0,
            left: Some(1_000_000),
            event: AnnounceEvent::None,
            numwant: None,
            key: None,
            extra: String::new(),
        }
    }

    pub fn seeder(info_hash: InfoHash, client: u32) -> Self {
        Announce { left: Some(0), ..Self::leecher(info_hash, client) }
    }

    /// The same client with this event.
    pub fn with_event(&self, event: AnnounceEvent) -> Self {
        Announce { event, ..self.clone() }
    }

    /// The same client with these totals.
    pub fn with_totals(&self, uploaded: u64, downloaded: u64, left: u64) -> Self {
        Announce { uploaded, downloaded, left: Some(left), ..self.clone() }
    }

    /// The same client with more in its HTTP query.
    pub fn with_extra(&self, extra: &str) -> Self {
        Announce { extra: extra.to_owned(), ..self.clone() }
    }

    /// The query of an HTTP announce, without the question mark.
    pub fn query(&self) -> String {
        let mut query = format!(
            "info_hash={}&peer_id={}&port={}&uploaded={}&downloaded={}&compact=1",
            percent::encode(&self.info_hash.0),
            percent::encode(&self.peer_id.0),
            self.port,
            self.uploaded,
            self.downloaded
        );
        let mut add =
            |text: std::fmt::Arguments<'_>| query.write_fmt(text).expect("a text can be written to");
        if let Some(left) = self.left {
            add(format_args!("&left={left}"));
        }
        if self.event != AnnounceEvent::None {
            add(format_args!("&event={}", self.event));
        }
        if let Some(numwant) = self.numwant {
            add(format_args!("&numwant={numwant}"));
        }
        if let Some(key) = self.key {
            add(format_args!("&key={key:08x}"));
        }
        query + &self.extra
    }

    /// The request target with the passkey in front: `/<passkey>/announce?…`.
    pub fn target(&self, passkey: &Passkey) -> String {
        format!("/{passkey}/announce?{}", self.query())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_percent_encoded_and_absent_fields_left_out() {
        let mut announce = Announce::leecher(InfoHash([0xab; 20]), 7).with_event(AnnounceEvent::Started);
        announce.left = None;
        announce.key = Some(0xbeef);
        let expected = format!(
            "info_hash={}&peer_id=-TR3000-....00000007&port=20007&uploaded=0&downloaded=0&compact=1\
             &event=started&key=0000beef&x=1",
            "%AB".repeat(20)
        );
        assert_eq!(announce.with_extra("&x=1").query(), expected);
    }
}
