//! Any bytes as an HTTP target or query: no panic, bounded results, and the same meaning when written again.

use std::net::{IpAddr, Ipv4Addr};

use domain::{Announce, UnixTime};
use wire::bencode;
use wire::http::{
    Failure, MAX_SCRAPE_HASHES, QueryError, Received, ScrapeQuery, parse_announce, parse_target,
};

use crate::plain_query::{self, target_of};

/// Parts of real requests. Low bytes of the input select them, so that random input passes the first check.
const PIECES: [&[u8]; 30] = [
    b"/announce?",
    b"/scrape?",
    b"http://host",
    b"/0123456789abcdef",
    b"&info_hash=",
    b"info_hash=%00%01%02%03%04%05%06%07%08%09%0a%0b%0c%0d%0e%0f%10%11%12%13&",
    b"&peer_id=-TR4000-abcdefghijkl&",
    b"&port=6881&",
    b"&port=",
    b"&uploaded=",
    b"&downloaded=",
    b"&left=",
    b"&event=stopped",
    b"&event=",
    b"&numwant=",
    b"&key=",
    b"&ip=",
    b"&ip=2001%3adb8%3a%3a1",
    b"&passkey=",
    b"&passkey=0123456789ABCDEF",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-1",
    b"0123456789",
    b"0123456789012345678901",
    b"%aB",
    b"%",
    b"&",
    b"=",
    b"+",
];

/// Where queries come from: `ip` is used.
const FROM: Received =
    Received { ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), trusts_ip: true, now: UnixTime(1_700_000_000) };

fn parse(query: &[u8]) -> Result<Announce, QueryError> {
    parse_announce(&target_of(query), FROM)
}

fn assemble(input: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in input {
        match PIECES.get(usize::from(*byte)) {
            Some(piece) => text.extend_from_slice(piece),
            None if *byte < 128 => text.extend_from_slice(PIECES[usize::from(*byte) % PIECES.len()]),
            None => text.push(byte.wrapping_mul(2)),
        }
    }
    text
}

fn check_target(text: &[u8]) {
    match parse_target(text) {
        Ok(target) => {
            assert!(target.query.len() + target.passkey.map_or(0, <[u8]>::len) < text.len());
            let _ = (target.path_passkey(), target.any_passkey());
            check_announce(target.query);
            check_scrape(target.query);
        }
        Err(error) => check_error(error),
    }
    check_announce(text);
    check_scrape(text);
}

fn check_announce(query: &[u8]) {
    assert_eq!(parse(query), plain_query::parse(query, FROM), "{}", query.escape_ascii());
    match parse(query) {
        Ok(parsed) => assert_eq!(parse(spell(&parsed).as_bytes()), Ok(parsed)),
        Err(error) => check_error(error),
    }
}

fn check_scrape(query: &[u8]) {
    match ScrapeQuery::parse(query) {
        Ok(parsed) => assert!((1..=MAX_SCRAPE_HASHES).contains(&parsed.info_hashes.len())),
        Err(error) => check_error(error),
    }
}

/// Every error fits into a short failure.
fn check_error(error: QueryError) {
    let mut out = Vec::new();
    Failure { reason: &error.to_string(), retry_in: None }.write(&mut out);
    assert!(bencode::parse(&out).is_ok() && out.len() < 128 && !error.label().is_empty());
}

fn escape(bytes: &[u8; 20]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}

fn spell(query: &Announce) -> String {
    let mut text = format!(
        "info_hash={}&peer_id={}&port={}&uploaded={}&downloaded={}&event={}&key={:x}",
        escape(&query.info_hash.0),
        escape(&query.peer_id.0),
        query.port,
        query.uploaded,
        query.downloaded,
        query.event,
        query.key.0
    );
    let optional = [
        query.left.map(|left| format!("&left={left}")),
        query.numwant.map(|numwant| format!("&numwant={numwant}")),
        Some(format!("&ip={}", query.ip)),
        query.passkey.map(|passkey| format!("&passkey={passkey}")),
    ];
    optional.into_iter().flatten().for_each(|part| text.push_str(&part));
    text
}

#[test]
fn fuzz_http_target_and_query() {
    bolero::check!().for_each(|input: &[u8]| {
        check_target(input);
        let assembled = assemble(input);
        check_target(&assembled);
        // After the required parameters the rest matters; only a little of it, so that not all inputs fail.
        for few in [assembled.as_slice(), &assemble(&input[..input.len().min(3)])] {
            check_target(&[PIECES[0], PIECES[5], PIECES[6], PIECES[7], few].concat());
        }
    });
}

/// Checks the fuzzing itself: the parts must be able to form a request.
#[test]
fn the_pieces_make_a_valid_announce() {
    let text = assemble(&[3, 0, 5, 6, 7, 9, 20, 11, 21, 12, 15, 23, 17, 19]);
    let target = parse_target(&text).unwrap();
    assert!(parse(target.query).is_ok());
}
