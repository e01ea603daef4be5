//! HTTP against `aquatic_http_protocol`: each side parses what the other writes.
//!
//! Deliberate differences, which the inputs leave out: names without `=` and values with one, which it misparses;
//! unknown events, negative numbers and missing counters, which it refuses; passkeys, which it does not support;
//! `downloaded` in its scrape replies, which it always writes as zero.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aquatic_http_protocol::common as theirs;
use aquatic_http_protocol::request as their_request;
use aquatic_http_protocol::response as their_response;
use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, PeerId, Seconds, UnixTime};
use proptest::prelude::*;
use wire::bencode;
use wire::http::{
    AnnounceReply, Failure, MAX_SCRAPE_HASHES, Received, RetryIn, Route, ScrapeEntry, ScrapeQuery,
    parse_announce, parse_target, write_scrape_reply,
};

use crate::plain_query::target_of;

const FROM: Received =
    Received { ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), trusts_ip: true, now: UnixTime(1_700_000_000) };

/// The target of the request that they write.
fn target_written_by_them(request: &their_request::Request, suffix: &[u8]) -> String {
    let mut head = Vec::new();
    request.write(&mut head, suffix).expect("writing to memory");
    let head = String::from_utf8(head).expect("they write ASCII");
    head.split(' ').nth(1).expect("method, target, version").to_owned()
}

fn any_announce() -> impl Strategy<Value = their_request::AnnounceRequest> {
    let ids = (any::<[u8; 20]>(), any::<[u8; 20]>(), any::<u16>());
    let counters = (any::<usize>(), any::<usize>(), any::<usize>());
    let rest = (0..4_u8, any::<Option<u32>>(), prop::option::of("[ -~]{1,30}"));
    (ids, counters, rest).prop_map(|(ids, counters, rest)| their_request::AnnounceRequest {
        info_hash: theirs::InfoHash(ids.0),
        peer_id: theirs::PeerId(ids.1),
        port: ids.2,
        bytes_uploaded: counters.0,
        bytes_downloaded: counters.1,
        bytes_left: counters.2,
        event: match rest.0 {
            0 => theirs::AnnounceEvent::Empty,
            1 => theirs::AnnounceEvent::Started,
            2 => theirs::AnnounceEvent::Completed,
            _ => theirs::AnnounceEvent::Stopped,
        },
        numwant: rest.1.map(|numwant| numwant as usize),
        key: rest.2.map(|key| key.as_str().into()),
    })
}

/// Their announce, converted to our type.
fn to_our_query(request: &their_request::AnnounceRequest) -> Announce {
    Announce {
        info_hash: InfoHash(request.info_hash.0),
        peer_id: PeerId(request.peer_id.0),
        port: request.port,
        uploaded: request.bytes_uploaded as u64,
        downloaded: request.bytes_downloaded as u64,
        left: Some(request.bytes_left as u64),
        event: match request.event {
            theirs::AnnounceEvent::Empty => AnnounceEvent::None,
            theirs::AnnounceEvent::Started => AnnounceEvent::Started,
            theirs::AnnounceEvent::Completed => AnnounceEvent::Completed,
            theirs::AnnounceEvent::Stopped => AnnounceEvent::Stopped,
        },
        numwant: request.numwant.map(|numwant| u32::try_from(numwant).unwrap_or(u32::MAX)),
        key: request.key.as_ref().map_or(ClientKey::NONE, |key| ClientKey::from_http(key.as_bytes())),
        ip: FROM.ip,
        passkey: None,
        families: Families::Both,
        now: FROM.now,
    }
}

/// An id as clients write it: some bytes plain, some escaped in either case.
fn spell(bytes: &[u8; 20], choices: u32) -> String {
    let spell_one = |(at, byte): (usize, &u8)| match choices >> at & 1 {
        _ if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        0 => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().enumerate().map(spell_one).collect()
}

proptest! {
    #[test]
    fn t1_their_announces_are_ours(request in any_announce()) {
        let target = target_written_by_them(&their_request::Request::Announce(request.clone()), b"/0123456789abcdef");
        let parsed = parse_target(target.as_bytes()).unwrap();
        prop_assert_eq!((parsed.route, parsed.passkey), (Route::Announce, Some(&b"0123456789abcdef"[..])));
        prop_assert_eq!(parse_announce(&target_of(parsed.query), FROM).unwrap(), to_our_query(&request));
    }

    #[test]
    fn both_read_a_client_s_spelling_alike(
        hash: [u8; 20], peer: [u8; 20], choices: u32, numbers: (u16, u64, u64, u64), numwant: u64,
        order in Just((0..7).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let parts = [
            format!("info_hash={}", spell(&hash, choices)),
            format!("peer_id={}", spell(&peer, choices >> 10)),
            format!("port={}&supportcrypto=1", numbers.0),
            format!("uploaded={}&downloaded={}", numbers.1, numbers.2),
            format!("left={}&compact=1", numbers.3),
            format!("numwant={numwant}&event=started"),
            "key=a1b2c3d4&no_peer_id=1".to_owned(),
        ];
        let query = order.iter().map(|part| parts[*part].as_str()).collect::<Vec<_>>().join("&");
        let theirs = their_request::AnnounceRequest::parse_query_string(&query).unwrap();
        prop_assert_eq!(parse_announce(&target_of(query.as_bytes()), FROM).unwrap(), to_our_query(&theirs));
    }

    #[test]
    fn t1_their_scrapes_are_ours(hashes in prop::collection::vec(any::<[u8; 20]>(), 1..=MAX_SCRAPE_HASHES)) {
        let info_hashes = hashes.iter().map(|hash| theirs::InfoHash(*hash)).collect();
        let request = their_request::Request::Scrape(their_request::ScrapeRequest { info_hashes });
        let target = target_written_by_them(&request, b"");
        let parsed = parse_target(target.as_bytes()).unwrap();
        prop_assert_eq!((parsed.route, parsed.passkey), (Route::Scrape, None));
        let ours = ScrapeQuery::parse(parsed.query).unwrap();
        prop_assert_eq!(ours.info_hashes.iter().map(|hash| hash.0).collect::<Vec<_>>(), hashes);
    }

    #[test]
    fn t1_our_replies_to_announces_are_theirs(
        counts: (u32, u32, u32), times: (u32, u32), external_ip: IpAddr, warning in prop::option::of(".{0,40}"),
        peers in prop::collection::vec(any::<(Ipv4Addr, u16)>(), 0..60),
        peers6 in prop::collection::vec(any::<(Ipv6Addr, u16)>(), 0..60),
    ) {
        let compact: Vec<u8> = peers.iter().flat_map(|(ip, port)| [&ip.octets()[..], &port.to_be_bytes()].concat()).collect();
        let compact6: Vec<u8> = peers6.iter().flat_map(|(ip, port)| [&ip.octets()[..], &port.to_be_bytes()].concat()).collect();
        let reply = AnnounceReply {
            complete: counts.0, incomplete: counts.1, downloaded: counts.2, interval: Seconds(times.0),
            min_interval: Seconds(times.1), external_ip, peers: &compact, peers6: &compact6, warning: warning.as_deref(),
        };
        let mut out = Vec::new();
        reply.write(&mut out);
        let parsed = their_response::Response::parse_bytes(&out).unwrap();
        let their_response::Response::Announce(parsed) = parsed else { panic!("not read as an announce") };
        prop_assert_eq!((parsed.complete, parsed.incomplete), (counts.0 as usize, counts.1 as usize));
        prop_assert_eq!(parsed.announce_interval, times.0 as usize);
        prop_assert_eq!(parsed.peers.0.iter().map(|peer| (peer.ip_address, peer.port)).collect::<Vec<_>>(), peers);
        prop_assert_eq!(parsed.peers6.0.iter().map(|peer| (peer.ip_address, peer.port)).collect::<Vec<_>>(), peers6);
        prop_assert_eq!(parsed.warning_message, warning);
    }

    #[test]
    fn t1_our_replies_to_scrapes_are_theirs(
        stats in prop::collection::btree_map(any::<[u8; 20]>(), any::<(u32, u32, u32)>(), 0..=MAX_SCRAPE_HASHES),
        min_request_interval: Option<u32>,
    ) {
        let mut entries: Vec<ScrapeEntry> = stats.iter().rev().map(|(hash, stat)| ScrapeEntry {
            info_hash: InfoHash(*hash), complete: stat.0, downloaded: stat.1, incomplete: stat.2,
        }).collect();
        let mut out = Vec::new();
        write_scrape_reply(&mut entries, min_request_interval.map(Seconds), &mut out);
        let parsed = their_response::Response::parse_bytes(&out).unwrap();
        let their_response::Response::Scrape(parsed) = parsed else { panic!("not read as a scrape") };
        let parsed = parsed.files.iter().map(|(hash, stat)| (hash.0, (stat.complete, stat.downloaded, stat.incomplete)));
        let expected = stats.iter().map(|(hash, stat)| (*hash, (stat.0 as usize, stat.1 as usize, stat.2 as usize)));
        prop_assert!(parsed.eq(expected));
    }

    #[test]
    fn t2_our_failures_are_theirs(reason in ".{0,60}", retry: Option<u32>, never: bool) {
        let retry_in = if never { Some(RetryIn::Never) } else { retry.map(RetryIn::Minutes) };
        let mut out = Vec::new();
        Failure { reason: &reason, retry_in }.write(&mut out);
        let parsed = their_response::Response::parse_bytes(&out).unwrap();
        let their_response::Response::Failure(parsed) = parsed else { panic!("not read as a failure") };
        prop_assert_eq!(parsed.failure_reason, reason);
    }

    #[test]
    fn our_reader_reads_their_replies(complete: u32, peers in prop::collection::vec(any::<(Ipv4Addr, u16)>(), 0..20)) {
        let peer = |(ip_address, port): &(Ipv4Addr, u16)| their_response::ResponsePeer { ip_address: *ip_address, port: *port };
        let mut out = Vec::new();
        their_response::AnnounceResponse {
            announce_interval: 1800, complete: complete as usize, incomplete: 1,
            peers: their_response::ResponsePeerListV4(peers.iter().map(peer).collect()),
            peers6: Default::default(), warning_message: None,
        }.write_bytes(&mut out).unwrap();
        let value = bencode::parse(&out).unwrap();
        prop_assert_eq!(value.get(b"complete").unwrap().as_integer(), Some(i64::from(complete)));
        prop_assert_eq!(value.get(b"peers").unwrap().as_bytes().unwrap().len(), 6 * peers.len());
    }
}
