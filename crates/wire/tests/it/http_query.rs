//! HTTP targets and queries.

use std::net::{IpAddr, Ipv4Addr};

use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId, UnixTime};
use proptest::prelude::*;
use wire::http::{MAX_SCRAPE_HASHES, QueryError, Received, Route, ScrapeQuery, parse_announce, parse_target};

use crate::plain_query::target_of;

const HASH: &str = "info_hash=%00%01%02%03%04%05%06%07%08%09%0a%0b%0c%0d%0e%0f%10%11%12%13";
const HASH_BYTES: [u8; 20] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const PEER: &str = "peer_id=-TR4000-abcdefghijkl";

/// Where queries come from: `ip` is used.
const FROM: Received =
    Received { ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), trusts_ip: true, now: UnixTime(1_700_000_000) };

fn parse(query: &[u8]) -> Result<Announce, QueryError> {
    parse_announce(&target_of(query), FROM)
}

/// A complete announce with `extra`.
fn announce(extra: &str) -> Result<Announce, QueryError> {
    parse(format!("{HASH}&{PEER}&port=6881&{extra}").as_bytes())
}

/// An announce whose info hash is given raw.
fn announce_with_hash(hash: &[u8]) -> Result<Announce, QueryError> {
    let mut query = b"info_hash=".to_vec();
    query.extend_from_slice(hash);
    query.extend_from_slice(format!("&{PEER}&port=6881").as_bytes());
    parse(&query)
}

#[test]
fn t1_a_transmission_announce_is_read_whole() {
    let query = b"info_hash=%9a%1a%f4t%fd%dd%d4%9f%90%86%fd%ab%3b%8c%b8%92%d4%e0%ab%ea\
        &peer_id=-TR4060-8j0h4fhz2x5g&port=51413&uploaded=1&downloaded=22&left=333&numwant=80\
        &key=2A72E0C0&compact=1&supportcrypto=1&event=started&ipv6=2001%3Adb8%3A%3A1";
    let expected = Announce {
        info_hash: "9a1af474fdddd49f9086fdab3b8cb892d4e0abea".parse().unwrap(),
        peer_id: PeerId(*b"-TR4060-8j0h4fhz2x5g"),
        port: 51413,
        uploaded: 1,
        downloaded: 22,
        left: Some(333),
        event: AnnounceEvent::Started,
        numwant: Some(80),
        key: ClientKey(0x2a72_e0c0),
        ip: FROM.ip,
        passkey: None,
        families: Families::Both,
        now: FROM.now,
    };
    assert_eq!(parse(query), Ok(expected));
}

#[test]
fn missing_parameters_have_a_default_or_are_reported() {
    let query = announce("").unwrap();
    assert_eq!((query.uploaded, query.downloaded, query.left), (0, 0, None));
    assert_eq!((query.event, query.numwant, query.key), (AnnounceEvent::None, None, ClientKey::NONE));
    assert_eq!((query.ip, query.passkey), (FROM.ip, None));
    let without = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(without(""), "info_hash is missing");
    assert_eq!(without("&&&=&=x&x"), "info_hash is missing");
    assert_eq!(without(HASH), "peer_id is missing");
    assert_eq!(without(&format!("{HASH}&{PEER}")), "port is missing");
    assert_eq!(without(&format!("{HASH}&{PEER}&port=")), "port is missing");
}

#[test]
fn ids_may_mix_raw_bytes_and_escapes_of_either_case() {
    let expected = InfoHash(*b"\xabab\xAB=+ \x00\xff%/?0123456.");
    let escaped = b"%aBab%Ab=+%20%00%ff%25%2F?0123456%2e";
    let raw = b"\xabab\xab=+ \x00\xff%25/?0123456.";
    for text in [&escaped[..], &raw[..]] {
        assert_eq!(announce_with_hash(text).unwrap().info_hash, expected);
    }
}

#[test]
fn a_plus_in_an_id_is_a_plus() {
    let query = format!("{HASH}&peer_id=-UT3530-+++%2b++++++++&port=1");
    assert_eq!(parse(query.as_bytes()).unwrap().peer_id, PeerId(*b"-UT3530-++++++++++++"));
}

#[test]
fn values_may_hold_equals_signs_and_names_may_stand_alone() {
    let query = format!("supportcrypto&{HASH}&no_peer_id&peer_id=-XX0000-==========%3d=&port=1&compact&&");
    let parsed = parse(query.as_bytes()).unwrap();
    assert_eq!(parsed.peer_id, PeerId(*b"-XX0000-============"));
}

#[test]
fn a_bad_escape_in_an_id_is_an_error_that_names_it() {
    let bad_hash = QueryError::BadEscape { parameter: "info_hash" };
    for text in [&b"%"[..], b"%1", b"%g1", b"%1g", b"0123456789012345678%", b"%%30"] {
        assert_eq!(announce_with_hash(text), Err(bad_hash), "{}", text.escape_ascii());
    }
    let query = format!("{HASH}&peer_id=-XX0000-abcdefghijk%zz&port=1");
    let error = parse(query.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "peer_id has a bad %-escape");
    assert_eq!(error.label(), "bad_escape");
}

#[test]
fn ids_are_exactly_twenty_bytes() {
    let wrong = Err(QueryError::WrongLength { parameter: "info_hash" });
    for length in (0..70).filter(|length| *length != 20 && *length != 32) {
        assert_eq!(announce_with_hash(&vec![b'a'; length]), wrong, "{length}");
        assert_eq!(announce_with_hash("%61".repeat(length).as_bytes()), wrong, "{length}");
    }
    for length in [0, 19, 21, 32] {
        let query = format!("{HASH}&peer_id={}&port=1", "a".repeat(length));
        let error = parse(query.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "peer_id must be 20 bytes");
    }
}

#[test]
fn t1_a_v2_hash_counts_by_its_first_twenty_bytes() {
    let query = announce_with_hash(b"%00bcdefghijklmnopqrstuvwxyz01234%FF").unwrap();
    assert_eq!(query.info_hash, InfoHash(*b"\0bcdefghijklmnopqrst"));
}

#[test]
fn unknown_events_are_plain_announces() {
    for (text, event) in [
        ("started", AnnounceEvent::Started),
        ("completed", AnnounceEvent::Completed),
        ("stopped", AnnounceEvent::Stopped),
        ("paused", AnnounceEvent::None),
        ("empty", AnnounceEvent::None),
        ("", AnnounceEvent::None),
        ("%", AnnounceEvent::None),
    ] {
        assert_eq!(announce(&format!("event={text}")).unwrap().event, event);
    }
}

#[test]
fn numwant_is_none_unless_it_is_a_number_of_peers() {
    for (text, numwant) in [
        ("0", Some(0)),
        ("50", Some(50)),
        ("4294967296", Some(u32::MAX)),
        ("99999999999999999999999999", Some(u32::MAX)),
        ("-1", None),
        ("", None),
        ("many", None),
    ] {
        assert_eq!(announce(&format!("numwant={text}")).unwrap().numwant, numwant);
    }
}

#[test]
fn left_is_clamped_or_unknown_and_refused_only_if_it_is_no_number() {
    for (text, left) in [
        ("0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", Some(u64::MAX)),
        ("999999999999999999999999", Some(u64::MAX)),
        ("-1", None),
        ("-99999999999999999999999", None),
        ("", None),
    ] {
        assert_eq!(announce(&format!("left={text}")).unwrap().left, left, "{text}");
    }
    for text in ["x", "1x", "-x", "--1", "1.5", "0x10", "+1"] {
        let error = announce(&format!("left={text}")).unwrap_err();
        assert_eq!(error.to_string(), "left must be a decimal number", "{text}");
    }
}

#[test]
fn counters_that_cannot_be_right_are_refused_by_name() {
    let message = |extra: &str| announce(extra).unwrap_err().to_string();
    assert_eq!(announce("uploaded=18446744073709551615").unwrap().uploaded, u64::MAX);
    assert_eq!(announce("uploaded=&downloaded=").unwrap().uploaded, 0);
    assert_eq!(message("uploaded=18446744073709551616"), "uploaded is too large");
    assert_eq!(message("downloaded=99999999999999999999"), "downloaded is too large");
    assert_eq!(message("uploaded=-1"), "uploaded must be a decimal number");
    assert_eq!(message("downloaded=1e9"), "downloaded must be a decimal number");
}

#[test]
fn ports_are_sixteen_bits_and_may_be_zero() {
    let port = |text: &str| parse(format!("{HASH}&{PEER}&port={text}").as_bytes()).map(|q| q.port);
    assert_eq!(port("0"), Ok(0));
    assert_eq!(port("65535"), Ok(65535));
    assert_eq!(port("65536"), Err(QueryError::TooLarge { parameter: "port" }));
    assert_eq!(port("99999999999999999999999"), Err(QueryError::TooLarge { parameter: "port" }));
    assert_eq!(port("-1"), Err(QueryError::NotANumber { parameter: "port" }));
}

#[test]
fn of_a_repeated_parameter_the_first_counts() {
    let query =
        announce("info_hash=%zz&peer_id=short&port=x&left=1&left=x&event=stopped&event=started").unwrap();
    assert_eq!(query.info_hash, InfoHash(HASH_BYTES));
    assert_eq!(query.peer_id, PeerId(*b"-TR4000-abcdefghijkl"));
    assert_eq!((query.port, query.left, query.event), (6881, Some(1), AnnounceEvent::Stopped));
}

#[test]
fn names_are_compared_whole() {
    let query = announce("xport=1&ports=2&Port=3&eventually=stopped&%65vent=stopped&ke=1").unwrap();
    assert_eq!((query.port, query.event, query.key), (6881, AnnounceEvent::None, ClientKey::NONE));
}

#[test]
fn the_claimed_address_counts_only_from_a_trusted_proxy() {
    let ip = |text: &str| announce(&format!("ip={text}")).unwrap().ip;
    assert_eq!(ip("192.0.2.7"), IpAddr::from([192, 0, 2, 7]));
    assert_eq!(ip("::ffff:192.0.2.7"), IpAddr::from([192, 0, 2, 7]));
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    assert_eq!(ip("2001:db8::7"), v6);
    assert_eq!(ip("2001%3Adb8%3a%3A7"), v6);
    for text in ["", "example.org", "192.0.2", "%zz", "[::1]", &"1".repeat(100)] {
        assert_eq!(ip(text), FROM.ip, "{text}");
    }
    let query = format!("{HASH}&{PEER}&port=6881&ip=192.0.2.7");
    let untrusted = parse_announce(&target_of(query.as_bytes()), Received { trusts_ip: false, ..FROM });
    assert_eq!(untrusted.unwrap().ip, FROM.ip);
}

#[test]
fn keys_are_decoded_before_they_are_compared() {
    let key = |text: &str| announce(&format!("key={text}")).unwrap().key;
    assert_eq!(key("2a72e0c0"), ClientKey(0x2a72_e0c0));
    assert_eq!(key("%32A72E0C0"), ClientKey(0x2a72_e0c0));
    assert_eq!(key("hello%20w"), ClientKey::from_http(b"hello w"));
    assert_eq!(key("100%zz"), ClientKey::from_http(b"100%zz"));
    assert_eq!(key(&"k".repeat(4000)), key(&"k".repeat(3000)));
    assert_eq!(key(""), ClientKey::NONE);
}

#[test]
fn w1_a_passkey_parameter_is_normalised_or_refused() {
    let passkey = |text: &str| announce(&format!("passkey={text}")).map(|query| query.passkey);
    let expected = Passkey::from_ascii(b"0123456789abcdef").ok();
    assert_eq!(passkey("0123456789ABCDEF"), Ok(expected));
    assert_eq!(passkey("%30123456789abcdef"), Ok(expected));
    for text in ["", "0123456", "0123456z", "%zz", &"a".repeat(65)] {
        let error = passkey(text).unwrap_err();
        assert_eq!(error.to_string(), "passkey must be 8 to 64 hexadecimal digits", "{text}");
    }
}

#[test]
fn t1_a_scrape_takes_every_hash_up_to_the_bound() {
    let scrape = ScrapeQuery::parse(
        format!("{HASH}&x&passkey=01234567&{HASH}&info_hash=abcdefghijklmnopqrst").as_bytes(),
    );
    let scrape = scrape.unwrap();
    let other = InfoHash(*b"abcdefghijklmnopqrst");
    assert_eq!(scrape.info_hashes, [InfoHash(HASH_BYTES), InfoHash(HASH_BYTES), other]);
    assert_eq!(scrape.passkey, Passkey::from_ascii(b"01234567").ok());

    let many = format!("{HASH}&").repeat(MAX_SCRAPE_HASHES + 10);
    assert_eq!(ScrapeQuery::parse(many.as_bytes()).unwrap().info_hashes.len(), MAX_SCRAPE_HASHES);
    assert_eq!(ScrapeQuery::parse(b"passkey=01234567"), Err(QueryError::Missing { parameter: "info_hash" }));
    assert_eq!(ScrapeQuery::parse(b"info_hash=x"), Err(QueryError::WrongLength { parameter: "info_hash" }));
}

#[test]
fn t1_targets_carry_the_passkey_before_or_behind_the_route() {
    let key: Option<&[u8]> = Some(b"0123456789ABCDEF");
    for (target, route, passkey, query) in [
        (&b"/announce"[..], Route::Announce, None, &b""[..]),
        (b"/announce?", Route::Announce, None, b""),
        (b"/announce?a=b?c", Route::Announce, None, b"a=b?c"),
        (b"/0123456789ABCDEF/announce?a", Route::Announce, key, b"a"),
        (b"/announce/0123456789ABCDEF?a", Route::Announce, key, b"a"),
        (b"/scrape?a", Route::Scrape, None, b"a"),
        (b"/0123456789ABCDEF/scrape?a", Route::Scrape, key, b"a"),
        (b"/scrape/0123456789ABCDEF", Route::Scrape, key, b""),
        (b"//announce?a", Route::Announce, None, b"a"),
        (b"/announce/?a", Route::Announce, None, b"a"),
        (b"http://t.example:6969/0123456789ABCDEF/announce?a", Route::Announce, key, b"a"),
        (b"HTTPS://[::1]:6969/scrape?a=/", Route::Scrape, None, b"a=/"),
    ] {
        let parsed = parse_target(target).unwrap();
        assert_eq!(
            (parsed.route, parsed.passkey, parsed.query),
            (route, passkey, query),
            "{}",
            target.escape_ascii()
        );
    }
}

#[test]
fn other_paths_are_refused() {
    for target in [
        &b""[..],
        b"/",
        b"*",
        b"announce",
        b"/announcement",
        b"/Announce",
        b"/a/b/announce",
        b"/announce/a/b",
        b"/announce/announce/x",
        b"/key/other",
        b"?/announce",
        b"ftp://host/announce",
        b"http:/announce",
        b"http://host",
        b"http://host?/announce",
    ] {
        assert_eq!(parse_target(target), Err(QueryError::UnknownPath), "{}", target.escape_ascii());
    }
}

#[test]
fn w1_the_passkey_of_a_target_is_decoded_and_normalised() {
    let expected = Passkey::from_ascii(b"0123456789abcdef").ok();
    let passkey = |target: &[u8]| parse_target(target).unwrap().any_passkey();
    assert_eq!(passkey(b"/0123456789ABCDEF/announce"), Ok(expected));
    assert_eq!(passkey(b"/announce/%30123456789abcde%66"), Ok(expected));
    assert_eq!(passkey(b"/announce?x=1&passkey=0123456789ABCDEF"), Ok(expected));
    assert_eq!(passkey(b"/0123456789ABCDEF/announce?passkey=nonsense"), Ok(expected));
    assert_eq!(passkey(b"/announce?x=1"), Ok(None));
    assert_eq!(passkey(b"/announce?passkey=nonsense"), Err(QueryError::NotAPasskey));
    assert_eq!(parse_target(b"/short/announce").unwrap().path_passkey(), Err(QueryError::NotAPasskey));
    assert_eq!(parse_target(b"/announce?passkey=01234567").unwrap().path_passkey(), Ok(None));
}

#[test]
fn targets_do_not_print_their_secrets() {
    let shown = format!("{:?}", parse_target(b"/01234567/announce?passkey=01234567").unwrap());
    assert!(!shown.contains("0123"), "{shown}");
}

/// Writes each byte raw, `%xx` or `%XX`, as `choices` say; what would end the value or begin an escape is escaped.
fn encode(bytes: &[u8], choices: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for (byte, choice) in bytes.iter().zip(choices.iter().cycle()) {
        match choice % 3 {
            0 if *byte != b'&' && *byte != b'%' => text.push(*byte),
            1 => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => text.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    text
}

proptest! {
    #[test]
    fn any_announce_survives_any_spelling_and_order(
        hash: [u8; 20], peer: [u8; 20], port: u16, uploaded: u64, downloaded: u64, left: Option<u64>,
        event in 0..4_usize, numwant: Option<u32>, key: u32, ip: Option<IpAddr>,
        choices in prop::collection::vec(any::<u8>(), 1..40), order in Just((0..9).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let events = [AnnounceEvent::None, AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped];
        let parts = [
            [b"info_hash=".to_vec(), encode(&hash, &choices)].concat(),
            [b"peer_id=".to_vec(), encode(&peer, &choices)].concat(),
            format!("port={port}&compact").into_bytes(),
            format!("uploaded={uploaded}&downloaded={downloaded}").into_bytes(),
            left.map_or(vec![], |left| format!("left={left}").into_bytes()),
            format!("event={}", events[event]).into_bytes(),
            format!("numwant={}", numwant.map_or(-1, i64::from)).into_bytes(),
            format!("key={key:08X}").into_bytes(),
            ip.map_or(vec![], |ip| [b"ip=".to_vec(), encode(ip.to_string().as_bytes(), &choices)].concat()),
        ];
        let query: Vec<Vec<u8>> = order.iter().map(|part| parts[*part].clone()).collect();
        let parsed = parse(&query.join(&b'&'));
        prop_assert_eq!(parsed, Ok(Announce {
            info_hash: InfoHash(hash), peer_id: PeerId(peer), port, uploaded, downloaded, left, event: events[event],
            numwant, key: ClientKey(key), ip: ip.map_or(FROM.ip, |ip| ip.to_canonical()), passkey: None,
            families: Families::Both, now: FROM.now,
        }));
    }
}
