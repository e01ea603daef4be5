//! Entries as written and as parsed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::{
    AnnounceEvent, Cause, ClientId, ClientKey, InfoHash, NodeId, Passkey, PeerId, RunId, Seconds, SessionId,
    TorrentId, TrafficEvent, UnixTime, UserId,
};
use journal::{BadEntry, Fields, Totals, TrafficEntry};
use proptest::prelude::*;
use testkit::JOURNAL_FIELDS;

/// What our tracker writes after them.
const OURS: [&str; 9] = ["node", "sid", "up", "down", "cause", "user", "torrent", "key", "steady"];

const PASSKEY: &str = "0123456789abcdef0123456789abcdef";

/// An entry of another producer (J3): the fourteen fields and nothing else.
fn foreign() -> Vec<(String, Vec<u8>)> {
    let values = [
        PASSKEY,
        "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
        "2d5452343036302d6162636465666768696a6b6c",
        "51413",
        "203.0.113.9",
        "IPv4",
        "1048576",
        "2097152",
        "734003200",
        "started",
        "1750000000",
        "1800",
        "1860",
        "900",
    ];
    JOURNAL_FIELDS.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.into())).collect()
}

fn ours() -> Vec<(String, Vec<u8>)> {
    let values = [
        "00000000000000ff",
        "150b89c31afd823e-0000002a",
        "5",
        "6",
        "timeout",
        "7",
        "8",
        "0badcafe",
        "1750007200",
    ];
    let own = OURS.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.into()));
    foreign().into_iter().chain(own).collect()
}

fn parse(pairs: Vec<(String, Vec<u8>)>) -> Result<TrafficEntry, BadEntry> {
    TrafficEntry::parse(&pairs.into_iter().collect())
}

/// Our entry with another value in one field.
fn parse_with(field: &str, value: impl AsRef<[u8]>) -> Result<TrafficEntry, BadEntry> {
    let mut pairs = ours();
    pairs.iter_mut().find(|(name, _)| name == field).unwrap().1 = value.as_ref().to_vec();
    parse(pairs)
}

fn parse_without(fields: &[&str]) -> Result<TrafficEntry, BadEntry> {
    let mut pairs = ours();
    pairs.retain(|(name, _)| !fields.contains(&name.as_str()));
    parse(pairs)
}

fn event() -> TrafficEvent {
    TrafficEvent {
        passkey: Some(PASSKEY.parse().unwrap()),
        user: UserId::new(7).unwrap(),
        torrent: TorrentId::new(8),
        info_hash: InfoHash([0xab; 20]),
        peer_id: PeerId(*b"-TR4060-abcdefghijkl"),
        port: 51_413,
        ip: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)),
        uploaded_delta: 1 << 20,
        downloaded_delta: u64::MAX,
        left: Some(0),
        event: AnnounceEvent::Completed,
        at: UnixTime(1_750_000_000),
        steady: UnixTime(1_750_007_200),
        since_last: Seconds(0),
        interval: Seconds(1_860),
        min_interval: Seconds(900),
        node: NodeId(255),
        session: SessionId { client: ClientId(0x150b_89c3_1afd_823e), run: RunId(42) },
        uploaded_total: 5,
        downloaded_total: 6,
        cause: Cause::Announce,
        key: ClientKey(0x0bad_cafe),
        uncredited_upload: 0,
    }
}

#[test]
fn j2_our_entries_begin_with_the_fourteen_fields_in_order() {
    let fields = TrafficEntry::fields_of(&event());
    let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name).collect();
    let expected: Vec<&[u8]> = JOURNAL_FIELDS.iter().chain(&OURS).map(|name| name.as_bytes()).collect();
    assert_eq!(names, expected);
}

#[test]
fn j2_values_are_written_as_the_site_expects_them() {
    let fields = TrafficEntry::fields_of(&event());
    let values: Vec<&str> = fields.iter().map(|(_, value)| std::str::from_utf8(value).unwrap()).collect();
    let expected = [
        PASSKEY,
        "abababababababababababababababababababab",
        "2d5452343036302d6162636465666768696a6b6c",
        "51413",
        "203.0.113.9",
        "IPv4",
        "1048576",
        "18446744073709551615",
        "0",
        "completed",
        "1750000000",
        "0",
        "1860",
        "900",
        "00000000000000ff",
        "150b89c31afd823e-0000002a",
        "5",
        "6",
        "announce",
        "7",
        "8",
        "0badcafe",
        "1750007200",
    ];
    assert_eq!(values, expected);
}

#[test]
fn steady_time_is_written_where_it_differs_from_the_wall_clock() {
    let at = event().at;
    for (steady, is_written) in [(at, false), (at + Seconds(1), true), (at - Seconds(7200), true)] {
        let fields = TrafficEntry::fields_of(&TrafficEvent { steady, ..event() });
        assert_eq!(fields.get("steady").is_some(), is_written);
        assert_eq!(TrafficEntry::parse(&fields).unwrap().steady_at(), steady);
    }
}

#[test]
fn a_client_that_sent_no_key_has_none_in_its_entry() {
    let fields = TrafficEntry::fields_of(&TrafficEvent { key: ClientKey::NONE, ..event() });
    assert_eq!(fields.get("key"), None);
}

#[test]
fn a_client_with_unknown_counters_has_none_in_its_entry() {
    let session = SessionId { run: RunId::NONE, ..event().session };
    let fields = TrafficEntry::fields_of(&TrafficEvent { session, ..event() });
    assert!(["sid", "up", "down"].iter().all(|name| fields.get(name).is_none()));
}

#[test]
fn j2_an_unknown_left_is_a_large_signed_integer() {
    let fields = TrafficEntry::fields_of(&TrafficEvent { left: None, ..event() });
    assert_eq!(fields.get("left").unwrap(), b"9223372036854775807");
    assert_eq!(TrafficEntry::parse(&fields).unwrap().left, None);
    assert_eq!(parse_with("left", "9223372036854775806").unwrap().left, Some(i64::MAX as u64 - 1));
    assert_eq!(parse_with("left", "18446744073709551615").unwrap().left, None);
}

#[test]
fn j3_the_fourteen_fields_are_enough() {
    let entry = parse(foreign()).unwrap();
    let expected = TrafficEntry {
        passkey: Some(PASSKEY.parse().unwrap()),
        info_hash: "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d".parse().unwrap(),
        peer_id: PeerId(*b"-TR4060-abcdefghijkl"),
        port: 51_413,
        ip: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)),
        uploaded_delta: 1_048_576,
        downloaded_delta: 2_097_152,
        left: Some(734_003_200),
        event: AnnounceEvent::Started,
        at: UnixTime(1_750_000_000),
        since_last: Some(Seconds(1_800)),
        interval: Seconds(1_860),
        min_interval: Seconds(900),
        user: None,
        torrent: None,
        node: None,
        totals: None,
        cause: Cause::Announce,
        key: None,
        uncredited_upload: 0,
        steady: None,
    };
    assert_eq!(entry, expected);
}

#[test]
fn j3_the_order_of_fields_does_not_matter() {
    let mut pairs = ours();
    let expected = parse(pairs.clone()).unwrap();
    pairs.reverse();
    assert_eq!(parse(pairs.clone()).unwrap(), expected);
    pairs.rotate_left(5);
    assert_eq!(parse(pairs).unwrap(), expected);
}

#[test]
fn j2_unknown_fields_are_ignored() {
    let expected = parse(foreign()).unwrap();
    let mut pairs = foreign();
    pairs.insert(0, ("colour".to_owned(), b"green".to_vec()));
    pairs.push((String::new(), vec![0xff]));
    pairs.push(("PASSKEY".to_owned(), b"not one".to_vec()));
    assert_eq!(parse(pairs).unwrap(), expected);
}

#[test]
fn of_a_repeated_field_the_first_counts() {
    let mut pairs = foreign();
    pairs.push(("du".to_owned(), b"99".to_vec()));
    pairs.push(("port".to_owned(), b"nonsense".to_vec()));
    assert_eq!(parse(pairs), parse(foreign()));
}

#[test]
fn j2_a_missing_field_is_reported() {
    for field in JOURNAL_FIELDS {
        let outcome = parse_without(&[field]);
        match field {
            "dt" => assert_eq!(outcome.unwrap().since_last, None, "L4: the interval counts instead"),
            _ => assert_eq!(outcome, Err(BadEntry::Missing { field })),
        }
    }
    assert!(matches!(TrafficEntry::parse(&Fields::new()), Err(BadEntry::Missing { .. })));
}

#[test]
fn j3_each_of_our_own_fields_may_be_missing() {
    for field in OURS {
        let entry = parse_without(&[field]).unwrap();
        let is_without = match field {
            "node" => entry.node.is_none(),
            "sid" | "up" | "down" => entry.totals.is_none(),
            "cause" => entry.cause == Cause::Announce,
            "user" => entry.user.is_none(),
            "key" => entry.key.is_none(),
            "steady" => entry.steady.is_none() && entry.steady_at() == entry.at,
            _ => entry.torrent.is_none(),
        };
        assert!(is_without, "{field}");
    }
}

fn assert_malformed(field: &str, value: &[u8]) {
    let shown = String::from_utf8_lossy(value);
    match parse_with(field, value) {
        Err(error @ BadEntry::Malformed { field: named, .. }) => {
            assert_eq!(named, field, "{shown}");
            assert!(error.to_string().starts_with(&format!("{field}: expected ")), "{error}");
        }
        other => panic!("{field} = {shown:?} gave {other:?}"),
    }
}

#[test]
fn j5_invalid_numbers_are_refused() {
    let numbers =
        ["port", "du", "dd", "left", "ts", "dt", "interval", "min_interval", "up", "down", "user", "steady"];
    let strange: [&[u8]; 14] = [
        b"",
        b" ",
        b"-1",
        b"-0",
        b"+1",
        b" 1",
        b"1 ",
        b"1.0",
        b"1e3",
        b"0x10",
        b"one",
        b"1\0",
        b"\xff\xfe",
        b"340282366920938463463374607431768211456",
    ];
    for field in numbers {
        for value in strange {
            assert_malformed(field, value);
        }
    }
}

#[test]
fn j5_each_number_has_its_own_limit() {
    let limits = [
        ("port", "65535", "65536"),
        ("du", "18446744073709551615", "18446744073709551616"),
        ("dd", "18446744073709551615", "18446744073709551616"),
        ("left", "18446744073709551615", "18446744073709551616"),
        ("ts", "4294967295", "4294967296"),
        ("dt", "31622400", "31622401"),
        ("interval", "4294967295", "4294967296"),
        ("min_interval", "4294967295", "4294967296"),
        ("up", "18446744073709551615", "18446744073709551616"),
        ("down", "18446744073709551615", "18446744073709551616"),
        ("user", "9223372036854775807", "9223372036854775808"),
        ("torrent", "9223372036854775807", "9223372036854775808"),
    ];
    for (field, greatest, too_great) in limits {
        parse_with(field, greatest).unwrap_or_else(|error| panic!("{greatest}: {error}"));
        assert_malformed(field, too_great.as_bytes());
    }
    for field in ["user", "torrent"] {
        assert_malformed(field, b"0");
    }
}

#[test]
fn j5_other_invalid_fields_are_refused() {
    let forty = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d";
    for field in ["infohash", "peer_id"] {
        assert_malformed(field, b"");
        assert_malformed(field, &forty.as_bytes()[1..]);
        assert_malformed(field, format!("{forty}0").as_bytes());
        assert_malformed(field, forty.replace('a', "g").as_bytes());
        assert_malformed(field, &[0xc3; 40]);
        assert_malformed(field, "é".repeat(20).as_bytes());
    }
    for value in ["", "localhost", "203.0.113", "203.0.113.999", "2001:db8::g", "203.0.113.9:80", "[::1]"] {
        assert_malformed("ip", value.as_bytes());
    }
    for value in ["", "ipv4", "4", "IPv5", "IPv4 "] {
        assert_malformed("af", value.as_bytes());
    }
    for value in ["", "Started", "paused", "started "] {
        assert_malformed("event", value.as_bytes());
    }
    for value in ["", "Timeout", "death"] {
        assert_malformed("cause", value.as_bytes());
    }
    for value in ["", "ff", "00000000000000fg", "+0000000000000ff", "00000000000000ff0"] {
        assert_malformed("node", value.as_bytes());
    }
    for value in ["", "-", "150b89c31afd823e", "150b89c31afd823e-", "150b89c31afd823e-+000002a"] {
        assert_malformed("sid", value.as_bytes());
    }
    for value in ["", "badcafe", "0badcafe0", "+badcafe", "0badcafg"] {
        assert_malformed("key", value.as_bytes());
    }
    for field in ["ip", "af", "event", "cause", "node", "sid", "passkey", "key"] {
        assert_malformed(field, b"\xff\xfe");
    }
}

#[test]
fn j2_the_family_must_match_the_address() {
    let with = |ip: &str, family: &str| {
        let mut pairs = foreign();
        pairs[4].1 = ip.into();
        pairs[5].1 = family.into();
        parse(pairs)
    };
    assert_eq!(with("203.0.113.9", "IPv6"), Err(BadEntry::WrongFamily));
    assert_eq!(with("2001:db8::1", "IPv4"), Err(BadEntry::WrongFamily));
    assert_eq!(with("2001:db8::1", "IPv6").unwrap().ip, "2001:db8::1".parse::<IpAddr>().unwrap());
    // An IPv4 client on a dual-stack socket: either family is valid.
    for family in ["IPv4", "IPv6"] {
        let entry = with("::ffff:203.0.113.9", family).unwrap();
        assert_eq!(entry.ip, IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)));
    }
}

#[test]
fn w1_upper_case_is_normalised() {
    let expected = parse(ours()).unwrap();
    for field in ["passkey", "infohash", "peer_id", "node", "sid"] {
        let (_, value) = ours().into_iter().find(|(name, _)| name == field).unwrap();
        assert_eq!(parse_with(field, value.to_ascii_uppercase()).unwrap(), expected, "{field}");
    }
    assert_eq!(expected.passkey.unwrap().to_string(), PASSKEY);
}

#[test]
fn w1_other_passkeys_are_refused() {
    let longest = "a".repeat(Passkey::MAX_DIGITS);
    assert_eq!(parse_with("passkey", &longest).unwrap().passkey.unwrap().to_string(), longest);
    for value in
        ["abcdef0", &format!("{longest}a"), "0123456789abcdeg", " 0123456789abcdef", "+123456789abcdef"]
    {
        assert_malformed("passkey", value.as_bytes());
    }
}

#[test]
fn an_empty_passkey_needs_a_user() {
    let entry = parse_with("passkey", "").unwrap();
    assert_eq!((entry.passkey, entry.user), (None, UserId::new(7)));
    let mut pairs = foreign();
    pairs[0].1.clear();
    assert_eq!(parse(pairs), Err(BadEntry::NoUser));
    assert_eq!(parse_without(&["user", "passkey"]), Err(BadEntry::Missing { field: "passkey" }));
}

#[test]
fn errors_contain_no_passkey() {
    let secret = "0123456789abcdeg";
    for value in [secret.to_owned(), secret.repeat(5), format!("+{secret}")] {
        let error = parse_with("passkey", &value).unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("01234567"), "{text}");
        }
        assert!(error.to_string().contains(&format!("{} bytes", value.len())), "{error}");
    }
    // Nor if another field is wrong.
    for field in JOURNAL_FIELDS.into_iter().filter(|field| !["passkey", "dt"].contains(field)) {
        for error in [parse_with(field, "?").unwrap_err(), parse_without(&[field]).unwrap_err()] {
            assert!(!format!("{error} {error:?}").contains("01234567"), "{error:?}");
        }
    }
}

#[test]
fn errors_show_no_more_than_the_beginning_of_a_value() {
    let error = parse_with("infohash", "x".repeat(1 << 20)).unwrap_err();
    assert!(error.to_string().len() < 200, "{} bytes", error.to_string().len());
}

#[test]
fn l3_a_client_that_has_everything_is_complete() {
    assert!(parse_with("left", "0").unwrap().is_complete());
    assert!(parse_with("event", "completed").unwrap().is_complete());
    assert!(!parse_with("left", "1").unwrap().is_complete());
}

pub fn any_ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes))),
        any::<[u8; 16]>().prop_map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))),
        any::<[u8; 4]>().prop_map(|bytes| IpAddr::V6(Ipv4Addr::from(bytes).to_ipv6_mapped())),
    ]
}

prop_compose! {
    pub fn any_event()(
        (passkey, user, torrent) in (
            proptest::option::of("[0-9a-f]{8,64}".prop_map(|digits| digits.parse::<Passkey>().unwrap())),
            1..=i64::MAX as u64,
            0..=i64::MAX as u64,
        ),
        (info_hash, peer_id, port, ip) in (any::<[u8; 20]>(), any::<[u8; 20]>(), any::<u16>(), any_ip()),
        (uploaded_delta, downloaded_delta, uploaded_total, downloaded_total) in any::<(u64, u64, u64, u64)>(),
        left in proptest::option::of(0..i64::MAX as u64),
        event in proptest::sample::select(vec![
            AnnounceEvent::None,
            AnnounceEvent::Started,
            AnnounceEvent::Completed,
            AnnounceEvent::Stopped,
        ]),
        (at, steady, interval, min_interval, key) in any::<(u32, u32, u32, u32, u32)>(),
        uncredited_upload in prop_oneof![Just(0), any::<u64>()],
        run in prop_oneof![Just(RunId::NONE), any::<u32>().prop_map(RunId)],
        since_last in 0..=366_u32 * 24 * 60 * 60,
        (node, client) in any::<(u64, u64)>(),
        cause in proptest::sample::select(vec![Cause::Announce, Cause::Timeout, Cause::Removal]),
    ) -> TrafficEvent {
        TrafficEvent {
            passkey,
            user: UserId::new(user).unwrap(),
            torrent: TorrentId::new(torrent),
            info_hash: InfoHash(info_hash),
            peer_id: PeerId(peer_id),
            port,
            ip,
            uploaded_delta,
            downloaded_delta,
            left,
            event,
            at: UnixTime(at),
            steady: UnixTime(steady),
            since_last: Seconds(since_last),
            interval: Seconds(interval),
            min_interval: Seconds(min_interval),
            node: NodeId(node),
            session: SessionId { client: ClientId(client), run },
            uploaded_total,
            downloaded_total,
            cause,
            key: ClientKey(key),
            uncredited_upload,
        }
    }
}

proptest! {
    #[test]
    fn j1_every_event_is_read_as_it_was_written(event in any_event()) {
        let entry = TrafficEntry::parse(&TrafficEntry::fields_of(&event)).unwrap();
        let expected = TrafficEntry {
            passkey: event.passkey,
            info_hash: event.info_hash,
            peer_id: event.peer_id,
            port: event.port,
            ip: event.ip.to_canonical(),
            uploaded_delta: event.uploaded_delta,
            downloaded_delta: event.downloaded_delta,
            left: event.left,
            event: event.event,
            at: event.at,
            since_last: Some(event.since_last),
            interval: event.interval,
            min_interval: event.min_interval,
            user: Some(event.user),
            torrent: event.torrent,
            node: Some(event.node),
            totals: (event.session.run != RunId::NONE).then_some(Totals {
                session: event.session,
                uploaded: event.uploaded_total,
                downloaded: event.downloaded_total,
            }),
            cause: event.cause,
            key: event.key.is_some().then_some(event.key),
            uncredited_upload: event.uncredited_upload,
            steady: (event.steady != event.at).then_some(event.steady),
        };
        prop_assert_eq!(entry, expected);
    }

    /// With any value in one field the entry is parsed, or the error names that field.
    #[test]
    fn j5_any_value_in_a_field_is_parsed_or_reported(
        field in proptest::sample::select([&JOURNAL_FIELDS[..], &OURS[..]].concat()),
        value in prop_oneof![
            any::<Vec<u8>>(),
            "\\PC*".prop_map(String::into_bytes),
            "[-+]?[0-9]{0,40}".prop_map(String::into_bytes),
            "[0-9a-fA-F]{0,70}".prop_map(String::into_bytes),
        ],
    ) {
        match parse_with(field, &value) {
            Ok(_) | Err(BadEntry::NoUser) => {}
            Err(BadEntry::WrongFamily) => prop_assert!(["ip", "af"].contains(&field)),
            Err(BadEntry::Malformed { field: named, .. }) => prop_assert_eq!(named, field),
            Err(BadEntry::Missing { field: named }) => prop_assert!(false, "{} is there", named),
            Err(BadEntry::Ahead { .. }) => prop_assert!(false, "no clock was asked"),
        }
    }

    #[test]
    fn j5_parsing_never_panics(pairs: Vec<(Vec<u8>, Vec<u8>)>, names in proptest::sample::subsequence(
        [&JOURNAL_FIELDS[..], &OURS[..]].concat(), 0..21), values: Vec<Vec<u8>>) {
        let _ = TrafficEntry::parse(&pairs.into_iter().collect());
        let _ = TrafficEntry::parse(&names.into_iter().zip(values).collect());
    }
}
