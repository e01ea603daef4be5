//! Bencoded replies as values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use domain::InfoHash;

use crate::bencode::Value;

/// BEP 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryIn {
    Minutes(i64),
    Never,
}

/// What the tracker left out is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnounceReply {
    /// Seconds until the next announce.
    pub interval: Option<i64>,
    /// The least number of seconds until the next announce.
    pub min_interval: Option<i64>,
    pub complete: Option<i64>,
    pub incomplete: Option<i64>,
    /// How often the torrent was completed.
    pub downloaded: Option<i64>,
    /// IPv4 peers, compact or not.
    pub peers: Option<Vec<SocketAddr>>,
    pub peers6: Option<Vec<SocketAddr>>,
    /// Why the announce was refused.
    pub failure_reason: Option<String>,
    /// When a refused client may come back.
    pub retry_in: Option<RetryIn>,
    pub warning_message: Option<String>,
    /// BEP 24.
    pub external_ip: Option<IpAddr>,
}

impl AnnounceReply {
    /// Panics on a malformed reply.
    #[track_caller]
    pub fn decode(body: &[u8]) -> Self {
        let reply = Value::decode(body);
        let integer = |key| reply.get(key).map(|value| value.as_integer().expect("a number"));
        let text = |key| reply.get(key).map(|value| value.as_text().expect("a string"));
        AnnounceReply {
            interval: integer("interval"),
            min_interval: integer("min interval"),
            complete: integer("complete"),
            incomplete: integer("incomplete"),
            downloaded: integer("downloaded"),
            peers: reply.get("peers").map(read_peers),
            peers6: reply.get("peers6").map(|value| compact_v6(value.as_bytes().expect("a string"))),
            failure_reason: text("failure reason"),
            retry_in: reply.get("retry in").map(read_retry_in),
            warning_message: text("warning message"),
            external_ip: reply
                .get("external ip")
                .map(|value| read_address(value.as_bytes().expect("a string"))),
        }
    }

    /// All peers, of both families.
    pub fn all_peers(&self) -> Vec<SocketAddr> {
        self.peers.iter().chain(&self.peers6).flatten().copied().collect()
    }
}

/// What a scrape says of one torrent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmCounts {
    pub complete: i64,
    pub incomplete: i64,
    /// How often the torrent was completed.
    pub downloaded: i64,
}

impl SwarmCounts {
    /// The counts of one torrent; none if it is not in the reply, the failure reason if it was refused.
    #[track_caller]
    pub fn decode(body: &[u8], info_hash: &InfoHash) -> Result<Option<SwarmCounts>, String> {
        let reply = Value::decode(body);
        if let Some(reason) = reply.get("failure reason") {
            return Err(reason.as_text().expect("a string"));
        }
        let Some(Value::Dict(files)) = reply.get("files") else {
            panic!("a scrape without `files`: {:?}", String::from_utf8_lossy(body));
        };
        Ok(files.get(&info_hash.0[..]).map(|file| {
            let integer = |key| file.get(key).and_then(Value::as_integer).expect("a number");
            SwarmCounts {
                complete: integer("complete"),
                incomplete: integer("incomplete"),
                downloaded: integer("downloaded"),
            }
        }))
    }
}

fn read_retry_in(value: &Value) -> RetryIn {
    match value {
        Value::Integer(minutes) => RetryIn::Minutes(*minutes),
        Value::Bytes(text) if text == b"never" => RetryIn::Never,
        other => panic!("`retry in` is a number of minutes or `never`, not {other:?}"),
    }
}

fn read_peers(value: &Value) -> Vec<SocketAddr> {
    match value {
        Value::Bytes(bytes) => compact_v4(bytes),
        Value::List(peers) => peers.iter().map(read_peer_dictionary).collect(),
        other => panic!("`peers` is a string or a list, not {other:?}"),
    }
}

fn read_peer_dictionary(peer: &Value) -> SocketAddr {
    let ip = peer.get("ip").and_then(Value::as_text).expect("a peer has an `ip`");
    let port = peer.get("port").and_then(Value::as_integer).expect("a peer has a `port`");
    SocketAddr::new(ip.parse().expect("`ip` is an address"), u16::try_from(port).expect("a port has 16 bits"))
}

/// Reads IPv4 peers of six bytes each.
#[track_caller]
pub fn compact_v4(bytes: &[u8]) -> Vec<SocketAddr> {
    read_compact::<4>(bytes, |octets| IpAddr::V4(Ipv4Addr::from(octets)))
}

/// Reads IPv6 peers of eighteen bytes each.
#[track_caller]
pub fn compact_v6(bytes: &[u8]) -> Vec<SocketAddr> {
    read_compact::<16>(bytes, |octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

#[track_caller]
fn read_compact<const N: usize>(bytes: &[u8], address: impl Fn([u8; N]) -> IpAddr) -> Vec<SocketAddr> {
    assert!(
        bytes.len().is_multiple_of(N + 2),
        "{} bytes are no list of peers of {} bytes",
        bytes.len(),
        N + 2
    );
    let read_one = |peer: &[u8]| {
        let octets = peer[..N].try_into().expect("the chunk is long enough");
        SocketAddr::new(address(octets), u16::from_be_bytes([peer[N], peer[N + 1]]))
    };
    bytes.chunks(N + 2).map(read_one).collect()
}

fn read_address(bytes: &[u8]) -> IpAddr {
    match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).expect("its length was checked")),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).expect("its length was checked")),
        other => panic!("an address has 4 or 16 bytes, not {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announce_reply_is_read_in_full() {
        let body =
            b"d8:completei2e10:downloadedi1e11:external ip4:\x7f\0\0\x0110:incompletei3e8:intervali1800e\
                     12:min intervali900e5:peers6:\x7f\0\0\x01\x1a\xe115:warning message2:hie";
        let reply = AnnounceReply::decode(body);
        assert_eq!((reply.complete, reply.incomplete, reply.downloaded), (Some(2), Some(3), Some(1)));
        assert_eq!((reply.interval, reply.min_interval), (Some(1800), Some(900)));
        assert_eq!(reply.all_peers(), ["127.0.0.1:6881".parse().expect("an address")]);
        assert_eq!(reply.external_ip, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert_eq!(reply.warning_message.as_deref(), Some("hi"));
        assert_eq!((reply.peers6, reply.failure_reason, reply.retry_in), (None, None, None));
    }

    #[test]
    fn a_refusal_is_read_with_its_retry() {
        let reply = AnnounceReply::decode(b"d14:failure reason4:busy8:retry ini5ee");
        assert_eq!(reply.failure_reason.as_deref(), Some("busy"));
        assert_eq!(reply.retry_in, Some(RetryIn::Minutes(5)));
        let for_good = AnnounceReply::decode(b"d14:failure reason2:no8:retry in5:nevere");
        assert_eq!(for_good.retry_in, Some(RetryIn::Never));
    }

    #[test]
    fn a_scrape_names_the_torrents_it_knows() {
        let known = InfoHash(*b"aaaaaaaaaaaaaaaaaaaa");
        let body = b"d5:filesd20:aaaaaaaaaaaaaaaaaaaad8:completei1e10:downloadedi4e10:incompletei2eeee";
        let counts = SwarmCounts { complete: 1, incomplete: 2, downloaded: 4 };
        assert_eq!(SwarmCounts::decode(body, &known), Ok(Some(counts)));
        assert_eq!(SwarmCounts::decode(body, &InfoHash([0; 20])), Ok(None));
        assert_eq!(SwarmCounts::decode(b"d14:failure reason2:noe", &known), Err("no".to_owned()));
    }
}
