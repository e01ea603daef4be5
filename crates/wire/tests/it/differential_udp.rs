//! UDP against `aquatic_udp_protocol`: each side parses what the other writes.
//!
//! Deliberate differences, which the inputs leave out: ports of zero and unknown events, which it refuses and we
//! accept; more hashes than a scrape may contain; and options after an announce, which it ignores.

use std::net::Ipv4Addr;
use std::num::NonZeroU16;

use aquatic_udp_protocol as aquatic;
use domain::{AnnounceEvent, ClientKey, InfoHash, PeerId, Seconds, UnixTime};
use proptest::prelude::*;
use wire::udp::{
    AnnounceRequest, ConnectionId, MAX_SCRAPE_HASHES, Request, ScrapeEntry, TransactionId, parse_request,
    write_announce_reply, write_connect_reply, write_error, write_scrape_reply,
};

fn written_by_them(request: impl Into<aquatic::Request>) -> Vec<u8> {
    let mut packet = Vec::new();
    request.into().write_bytes(&mut packet).expect("writing to memory");
    packet
}

fn any_announce() -> impl Strategy<Value = aquatic::AnnounceRequest> {
    let ids = (any::<i64>(), any::<i32>(), any::<[u8; 20]>(), any::<[u8; 20]>());
    let counters = (any::<i64>(), any::<i64>(), any::<i64>());
    let rest = (0..4_u8, any::<[u8; 4]>(), any::<i32>(), any::<i32>(), any::<NonZeroU16>());
    (ids, counters, rest).prop_map(|(ids, counters, rest)| aquatic::AnnounceRequest {
        connection_id: aquatic::ConnectionId::new(ids.0),
        action_placeholder: Default::default(),
        transaction_id: aquatic::TransactionId::new(ids.1),
        info_hash: aquatic::InfoHash(ids.2),
        peer_id: aquatic::PeerId(ids.3),
        bytes_downloaded: aquatic::NumberOfBytes::new(counters.0),
        bytes_left: aquatic::NumberOfBytes::new(counters.1),
        bytes_uploaded: aquatic::NumberOfBytes::new(counters.2),
        event: match rest.0 {
            0 => aquatic::AnnounceEvent::None,
            1 => aquatic::AnnounceEvent::Started,
            2 => aquatic::AnnounceEvent::Completed,
            _ => aquatic::AnnounceEvent::Stopped,
        }
        .into(),
        ip_address: aquatic::Ipv4AddrBytes(rest.1),
        key: aquatic::PeerKey::new(rest.2),
        peers_wanted: aquatic::NumberOfPeers::new(rest.3),
        port: aquatic::Port::new(rest.4),
    })
}

fn assert_same_announce(ours: &AnnounceRequest<'_>, theirs: &aquatic::AnnounceRequest) {
    let connection = theirs.connection_id.0.get().cast_unsigned();
    let transaction = theirs.transaction_id.0.get().cast_unsigned();
    assert_eq!(ours.connection, ConnectionId(connection));
    assert_eq!(ours.transaction, TransactionId(transaction));
    let announce = ours.announce(Ipv4Addr::LOCALHOST.into(), UnixTime(0));
    assert_eq!(announce.info_hash, InfoHash(theirs.info_hash.0));
    assert_eq!(announce.peer_id, PeerId(theirs.peer_id.0));
    assert_eq!(announce.downloaded, theirs.bytes_downloaded.0.get().cast_unsigned());
    assert_eq!(announce.left, Some(theirs.bytes_left.0.get().cast_unsigned()));
    assert_eq!(announce.uploaded, theirs.bytes_uploaded.0.get().cast_unsigned());
    let event = match aquatic::AnnounceEvent::from(theirs.event) {
        aquatic::AnnounceEvent::None => AnnounceEvent::None,
        aquatic::AnnounceEvent::Started => AnnounceEvent::Started,
        aquatic::AnnounceEvent::Completed => AnnounceEvent::Completed,
        aquatic::AnnounceEvent::Stopped => AnnounceEvent::Stopped,
    };
    assert_eq!(announce.event, event);
    assert_eq!(announce.key, ClientKey(theirs.key.0.get().cast_unsigned()));
    assert_eq!(announce.numwant, u32::try_from(theirs.peers_wanted.0.get()).ok());
    assert_eq!(announce.port, theirs.port.0.get());
    assert!(ours.url_data().is_empty());
}

proptest! {
    #[test]
    fn t1_their_connects_are_ours(transaction: i32) {
        let packet = written_by_them(aquatic::ConnectRequest { transaction_id: aquatic::TransactionId::new(transaction) });
        prop_assert_eq!(parse_request(&packet), Ok(Request::Connect { transaction: TransactionId(transaction.cast_unsigned()) }));
    }

    #[test]
    fn t1_their_announces_are_ours(theirs in any_announce()) {
        let packet = written_by_them(theirs);
        match parse_request(&packet) {
            Ok(Request::Announce(ours)) => assert_same_announce(&ours, &theirs),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn t1_their_scrapes_are_ours(
        connection: i64, transaction: i32, hashes in prop::collection::vec(any::<[u8; 20]>(), 1..=MAX_SCRAPE_HASHES),
    ) {
        let packet = written_by_them(aquatic::ScrapeRequest {
            connection_id: aquatic::ConnectionId::new(connection),
            transaction_id: aquatic::TransactionId::new(transaction),
            info_hashes: hashes.iter().map(|hash| aquatic::InfoHash(*hash)).collect(),
        });
        let Ok(Request::Scrape(ours)) = parse_request(&packet) else { panic!("not read as a scrape") };
        prop_assert_eq!(ours.connection.0, connection.cast_unsigned());
        prop_assert_eq!(ours.transaction.0, transaction.cast_unsigned());
        prop_assert_eq!(ours.info_hashes().map(|hash| hash.0).collect::<Vec<_>>(), hashes);
    }

    #[test]
    fn any_packet_that_both_take_means_the_same(
        head: [u8; 8], action in 0..4_u8, body in prop::collection::vec(any::<u8>(), 0..120), connects: bool,
    ) {
        let head = if connects { 0x417_2710_1980_u64.to_be_bytes() } else { head };
        let packet = [&head[..], &[0, 0, 0, action], &body].concat();
        let Ok(theirs) = aquatic::Request::parse_bytes(&packet, 74) else { return Ok(()) };
        match (parse_request(&packet), theirs) {
            (Ok(Request::Connect { transaction }), aquatic::Request::Connect(theirs)) =>
                prop_assert_eq!(transaction.0, theirs.transaction_id.0.get().cast_unsigned()),
            (Ok(Request::Announce(ours)), aquatic::Request::Announce(theirs)) if packet.len() == 98 =>
                assert_same_announce(&ours, &theirs),
            (Ok(Request::Scrape(ours)), aquatic::Request::Scrape(theirs)) =>
                prop_assert!(ours.info_hashes().map(|hash| hash.0).eq(theirs.info_hashes.iter().map(|hash| hash.0))),
            (_, aquatic::Request::Announce(_)) if packet.len() > 98 => {} // we read the options
            (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
        }
    }

    #[test]
    fn t1_our_replies_to_connects_and_errors_are_theirs(transaction: u32, connection: u64, message in ".{0,60}") {
        let transaction_id = aquatic::TransactionId::new(transaction.cast_signed());
        let mut out = Vec::new();
        write_connect_reply(&mut out, TransactionId(transaction), ConnectionId(connection));
        let connection_id = aquatic::ConnectionId::new(connection.cast_signed());
        let expected = aquatic::Response::Connect(aquatic::ConnectResponse { transaction_id, connection_id });
        prop_assert_eq!(aquatic::Response::parse_bytes(&out, true).unwrap(), expected);

        out.clear();
        write_error(&mut out, TransactionId(transaction), &message);
        let expected = aquatic::Response::Error(aquatic::ErrorResponse { transaction_id, message: message.into() });
        prop_assert_eq!(aquatic::Response::parse_bytes(&out, false).unwrap(), expected);
    }

    #[test]
    fn t1_our_replies_to_announces_are_theirs(
        transaction: u32, interval in 0..=i32::MAX, leechers in 0..=i32::MAX, seeders in 0..=i32::MAX,
        peers in prop::collection::vec(any::<([u8; 4], NonZeroU16)>(), 0..60),
        peers6 in prop::collection::vec(any::<([u8; 16], NonZeroU16)>(), 0..60),
    ) {
        let fixed = aquatic::AnnounceResponseFixedData {
            transaction_id: aquatic::TransactionId::new(transaction.cast_signed()),
            announce_interval: aquatic::AnnounceInterval::new(interval),
            leechers: aquatic::NumberOfPeers::new(leechers),
            seeders: aquatic::NumberOfPeers::new(seeders),
        };
        let write = |compact: &[u8]| {
            let (interval, leechers) = (Seconds(interval.cast_unsigned()), leechers.cast_unsigned());
            let mut out = Vec::new();
            write_announce_reply(&mut out, TransactionId(transaction), interval, leechers, seeders.cast_unsigned(), compact);
            out
        };
        let compact: Vec<u8> = peers.iter().flat_map(|(ip, port)| [&ip[..], &port.get().to_be_bytes()].concat()).collect();
        let expected = aquatic::Response::AnnounceIpv4(aquatic::AnnounceResponse {
            fixed,
            peers: peers.iter().map(|(ip, port)| aquatic::ResponsePeer {
                ip_address: aquatic::Ipv4AddrBytes(*ip), port: aquatic::Port::new(*port),
            }).collect(),
        });
        prop_assert_eq!(aquatic::Response::parse_bytes(&write(&compact), true).unwrap(), expected);

        let compact: Vec<u8> = peers6.iter().flat_map(|(ip, port)| [&ip[..], &port.get().to_be_bytes()].concat()).collect();
        let expected = aquatic::Response::AnnounceIpv6(aquatic::AnnounceResponse {
            fixed,
            peers: peers6.iter().map(|(ip, port)| aquatic::ResponsePeer {
                ip_address: aquatic::Ipv6AddrBytes(*ip), port: aquatic::Port::new(*port),
            }).collect(),
        });
        prop_assert_eq!(aquatic::Response::parse_bytes(&write(&compact), false).unwrap(), expected);
    }

    #[test]
    fn t1_our_replies_to_scrapes_are_theirs(
        transaction: u32, stats in prop::collection::vec((0..=i32::MAX, 0..=i32::MAX, 0..=i32::MAX), 0..=MAX_SCRAPE_HASHES),
    ) {
        let mut out = Vec::new();
        write_scrape_reply(&mut out, TransactionId(transaction), stats.iter().map(|stat| ScrapeEntry {
            info_hash: InfoHash([0; 20]),
            complete: stat.0.cast_unsigned(), downloaded: stat.1.cast_unsigned(), incomplete: stat.2.cast_unsigned(),
        }));
        let expected = aquatic::Response::Scrape(aquatic::ScrapeResponse {
            transaction_id: aquatic::TransactionId::new(transaction.cast_signed()),
            torrent_stats: stats.iter().map(|stat| aquatic::TorrentScrapeStatistics {
                seeders: aquatic::NumberOfPeers::new(stat.0),
                completed: aquatic::NumberOfDownloads::new(stat.1),
                leechers: aquatic::NumberOfPeers::new(stat.2),
            }).collect(),
        });
        prop_assert_eq!(aquatic::Response::parse_bytes(&out, true).unwrap(), expected);
    }
}
