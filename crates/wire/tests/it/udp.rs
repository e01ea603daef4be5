//! UDP packets, byte by byte.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId, Seconds, UnixTime};
use proptest::prelude::*;
use wire::http::QueryError;
use wire::udp::{
    AnnounceRequest, ConnectionId, Header, MAX_SCRAPE_HASHES, MAX_URL_DATA_BYTES, PacketError, Request,
    ScrapeEntry, TransactionId, parse_request, write_announce_reply, write_connect_reply, write_error,
    write_scrape_reply,
};

const HEADER: Header =
    Header { connection: ConnectionId(0x0102_0304_0506_0708), transaction: TransactionId(0xdead_beef) };

fn header(action: u32) -> Vec<u8> {
    [&HEADER.connection.0.to_be_bytes()[..], &action.to_be_bytes(), &HEADER.transaction.0.to_be_bytes()]
        .concat()
}

fn announce(event: u32, numwant: i32, options: &[u8]) -> Vec<u8> {
    [
        &header(1)[..],
        b"abcdefghijklmnopqrst",
        b"-TR4000-abcdefghijkl",
        &1_u64.to_be_bytes(),
        &2_u64.to_be_bytes(),
        &3_u64.to_be_bytes(),
        &event.to_be_bytes(),
        &[192, 0, 2, 1],
        &0xcafe_f00d_u32.to_be_bytes(),
        &numwant.to_be_bytes(),
        &6881_u16.to_be_bytes(),
        options,
    ]
    .concat()
}

fn parse_announce(packet: &[u8]) -> AnnounceRequest<'_> {
    match parse_request(packet) {
        Ok(Request::Announce(request)) => request,
        other => panic!("not an announce: {other:?}"),
    }
}

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const NOW: UnixTime = UnixTime(1_700_000_000);

fn url_option(content: &[u8]) -> Vec<u8> {
    [&[2, u8::try_from(content.len()).expect("at most 255 bytes")], content].concat()
}

#[test]
fn t1_connect_needs_the_magic_number() {
    let mut packet = hex("0000041727101980 00000000 deadbeef");
    assert_eq!(parse_request(&packet), Ok(Request::Connect { transaction: HEADER.transaction }));
    packet.extend_from_slice(b"padding is ignored");
    assert_eq!(parse_request(&packet), Ok(Request::Connect { transaction: HEADER.transaction }));
    packet[7] ^= 1;
    let error = parse_request(&packet).unwrap_err();
    assert_eq!(error, PacketError::WrongMagic { transaction: HEADER.transaction });
    assert_eq!((error.transaction(), error.connection()), (Some(HEADER.transaction), None));
}

#[test]
fn t1_announce_fields_stand_where_bep_15_puts_them() {
    let packet = announce(2, 50, &[]);
    assert_eq!(packet.len(), 98);
    let request = parse_announce(&packet);
    assert_eq!((request.connection, request.transaction), (HEADER.connection, HEADER.transaction));
    let expected = Announce {
        passkey: None,
        info_hash: InfoHash(*b"abcdefghijklmnopqrst"),
        peer_id: PeerId(*b"-TR4000-abcdefghijkl"),
        key: ClientKey(0xcafe_f00d),
        ip: FROM,
        port: 6881,
        uploaded: 3,
        downloaded: 1,
        left: Some(2),
        event: AnnounceEvent::Started,
        numwant: Some(50),
        families: Families::V4,
        now: NOW,
    };
    assert_eq!(request.announce(FROM, NOW), expected);
    assert_eq!(request.announce(IpAddr::from([0x2001; 8]), NOW).families, Families::V6);
    assert_eq!(request.url_data(), Cow::Borrowed(&b""[..]));
    assert_eq!(request.passkey(), Ok(None));
}

#[test]
fn events_are_numbers_and_unknown_ones_plain_announces() {
    for (number, event) in [
        (0, AnnounceEvent::None),
        (1, AnnounceEvent::Completed),
        (2, AnnounceEvent::Started),
        (3, AnnounceEvent::Stopped),
        (4, AnnounceEvent::None),
        (u32::MAX, AnnounceEvent::None),
    ] {
        assert_eq!(parse_announce(&announce(number, -1, &[])).announce(FROM, NOW).event, event);
    }
}

#[test]
fn a_negative_numwant_is_none() {
    for (numwant, expected) in [(-1, None), (i32::MIN, None), (0, Some(0)), (i32::MAX, Some(0x7fff_ffff))] {
        assert_eq!(parse_announce(&announce(0, numwant, &[])).announce(FROM, NOW).numwant, expected);
    }
}

#[test]
fn t1_the_passkey_comes_in_url_options() {
    let expected = Passkey::from_ascii(b"0123456789abcdef").ok();
    let whole = |url: &[u8]| parse_announce(&announce(0, -1, &url_option(url))).passkey();
    assert_eq!(whole(b"/0123456789ABCDEF/announce"), Ok(expected));
    assert_eq!(whole(b"/announce/0123456789abcdef"), Ok(expected));
    assert_eq!(whole(b"/announce?passkey=0123456789abcdef"), Ok(expected));
    assert_eq!(whole(b"/announce"), Ok(None));
    assert_eq!(whole(b"/"), Ok(None));
    assert_eq!(whole(b""), Ok(None));
    assert_eq!(whole(b"/elsewhere"), Err(QueryError::UnknownPath));
    assert_eq!(whole(b"/zzzzzzzz/announce"), Err(QueryError::NotAPasskey));
}

#[test]
fn url_options_are_joined_and_others_skipped() {
    let options = [
        &[1, 1][..],
        &url_option(b""),
        &url_option(b"/012345"),
        &[9, 3, 2, 9, 9],
        &url_option(b"67/announce"),
        &[0],
        &url_option(b"/never"),
    ]
    .concat();
    let packet = announce(0, -1, &options);
    let request = parse_announce(&packet);
    assert_eq!(request.url_data(), Cow::Borrowed(&b"/01234567/announce"[..]));
    assert!(matches!(request.url_data(), Cow::Owned(_)));
    assert_eq!(request.passkey(), Ok(Passkey::from_ascii(b"01234567").ok()));
    let single = announce(0, -1, &url_option(b"/01234567/announce"));
    assert!(matches!(parse_announce(&single).url_data(), Cow::Borrowed(b"/01234567/announce")));
}

#[test]
fn the_two_zero_bytes_of_old_clients_end_the_options() {
    assert_eq!(parse_announce(&announce(0, -1, &[0, 0])).url_data(), Cow::Borrowed(&b""[..]));
}

#[test]
fn a_truncated_option_is_refused() {
    for options in [&[2][..], &[2, 1], &[2, 5, 1, 2, 3, 4], &[7], &[7, 1], &[1, 1, 2, 255, 0]] {
        let packet = announce(0, -1, options);
        let error = parse_request(&packet).unwrap_err();
        assert_eq!(error, PacketError::TruncatedOption { header: HEADER });
        assert_eq!(
            (error.connection(), error.transaction()),
            (Some(HEADER.connection), Some(HEADER.transaction))
        );
        assert_eq!(
            (error.label(), error.to_string()),
            ("truncated_option", "option is truncated".to_owned())
        );
    }
}

#[test]
fn a_url_is_bounded() {
    let part = url_option(&[b'x'; 128]);
    let fits = announce(0, -1, &part.repeat(MAX_URL_DATA_BYTES / 128));
    assert_eq!(parse_announce(&fits).url_data().len(), MAX_URL_DATA_BYTES);
    let over = announce(0, -1, &part.repeat(MAX_URL_DATA_BYTES / 128 + 1));
    assert_eq!(parse_request(&over), Err(PacketError::UrlTooLong { header: HEADER }));
}

#[test]
fn urls_are_not_printed() {
    let packet = announce(0, -1, &url_option(b"/01234567/announce"));
    let shown = format!("{:?}", parse_announce(&packet));
    assert!(shown.contains("18 bytes"), "{shown}");
}

#[test]
fn short_packets_are_distinguished_by_their_length() {
    let packet = announce(0, -1, &[]);
    for length in 0..16 {
        let error = parse_request(&packet[..length]).unwrap_err();
        assert_eq!((error, error.transaction(), error.connection()), (PacketError::NoHeader, None, None));
    }
    for length in 16..98 {
        assert_eq!(parse_request(&packet[..length]), Err(PacketError::ShortAnnounce { header: HEADER }));
    }
    for action in [3, 4, u32::MAX] {
        assert_eq!(parse_request(&header(action)), Err(PacketError::UnknownAction { header: HEADER }));
    }
}

#[test]
fn t1_a_scrape_lists_whole_hashes_up_to_the_bound() {
    let scrape = |list: &[u8]| {
        let packet = [&header(2)[..], list].concat();
        parse_request(&packet).map(|request| match request {
            Request::Scrape(scrape) => scrape.info_hashes().collect::<Vec<_>>(),
            other => panic!("not a scrape: {other:?}"),
        })
    };
    let expected = [InfoHash(*b"bbbbbbbbbbbbbbbbbbbb"), InfoHash(*b"aaaaaaaaaaaaaaaaaaaa")];
    assert_eq!(scrape(b"bbbbbbbbbbbbbbbbbbbbaaaaaaaaaaaaaaaaaaaa").unwrap(), expected);
    assert_eq!(scrape(&[0; 20 * MAX_SCRAPE_HASHES]).unwrap().len(), MAX_SCRAPE_HASHES);
    assert_eq!(scrape(&[0; 20 * 500]).unwrap().len(), MAX_SCRAPE_HASHES);
    for length in [0, 1, 19, 21, 39] {
        assert_eq!(scrape(&vec![0; length]), Err(PacketError::BadHashList { header: HEADER }));
    }
}

#[test]
fn t1_replies_are_laid_out_as_bep_15_says() {
    let mut out = Vec::new();
    write_connect_reply(&mut out, HEADER.transaction, HEADER.connection);
    assert_eq!(out, hex("00000000 deadbeef 0102030405060708"));

    out.clear();
    write_announce_reply(&mut out, HEADER.transaction, Seconds(1800), 5, 6, &[127, 0, 0, 1, 0x1a, 0xe1]);
    assert_eq!(out, hex("00000001 deadbeef 00000708 00000005 00000006 7f0000011ae1"));

    out.clear();
    let entry =
        ScrapeEntry { info_hash: InfoHash([0; 20]), complete: 1, downloaded: 2, incomplete: u32::MAX };
    write_scrape_reply(&mut out, HEADER.transaction, [entry, ScrapeEntry { complete: 9, ..entry }]);
    assert_eq!(out, hex("00000002 deadbeef 00000001 00000002 7fffffff 00000009 00000002 7fffffff"));

    out.clear();
    write_error(&mut out, HEADER.transaction, "no");
    assert_eq!(out, hex("00000003 deadbeef 6e6f"));
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("pairs of digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

proptest! {
    #[test]
    fn any_split_of_a_url_into_options_gives_the_url_back(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..10),
        noise in prop::collection::vec(prop_oneof![Just(vec![1_u8]), (3..255_u8).prop_map(|kind| vec![kind, 2, 0, 2])], 10),
        ended: bool,
    ) {
        let mut options = Vec::new();
        for (part, noise) in parts.iter().zip(&noise) {
            options.extend_from_slice(noise);
            options.extend_from_slice(&url_option(part));
        }
        if ended {
            options.extend_from_slice(&[0, 2, 200]);
        }
        let packet = announce(0, -1, &options);
        prop_assert_eq!(&*parse_announce(&packet).url_data(), parts.concat());
    }
}
