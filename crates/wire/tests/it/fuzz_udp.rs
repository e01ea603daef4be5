//! Any bytes as a UDP packet: no panic, bounded results, errors with their transaction.

use std::net::Ipv4Addr;

use domain::UnixTime;
use wire::udp::{MAX_SCRAPE_HASHES, MAX_URL_DATA_BYTES, Request, parse_request};

fn check_packet(packet: &[u8]) {
    match parse_request(packet) {
        Ok(Request::Connect { .. }) => assert!(packet.len() >= 16),
        Ok(Request::Announce(announce)) => {
            assert!(packet.len() >= 98);
            let url = announce.url_data();
            assert!(url.len() <= MAX_URL_DATA_BYTES && url.len() <= packet.len() - 98);
            let _ = announce.passkey();
            let _ = announce.announce(Ipv4Addr::LOCALHOST.into(), UnixTime(0));
        }
        Ok(Request::Scrape(scrape)) => {
            assert!((1..=MAX_SCRAPE_HASHES).contains(&scrape.info_hashes().count()));
        }
        Err(error) => {
            assert_eq!(error.transaction().is_some(), packet.len() >= 16);
            let claimed = error.connection().map(|connection| connection.0.to_be_bytes().to_vec());
            assert!(claimed.is_none_or(|claimed| packet.starts_with(&claimed)));
            assert!(error.to_string().len() < 64 && !error.label().is_empty());
        }
    }
}

/// The input with a header that is likely to be accepted: a connect, an announce or a scrape.
fn with_header(input: &[u8], action: u8) -> Vec<u8> {
    [&0x417_2710_1980_u64.to_be_bytes()[..], &[0, 0, 0, action], input].concat()
}

#[test]
fn fuzz_udp_request() {
    bolero::check!().for_each(|input: &[u8]| {
        check_packet(input);
        for action in 0..4 {
            check_packet(&with_header(input, action));
        }
        // Options directly after an announce of zeros; with short lengths, so that several follow each other.
        let mut packet = with_header(&[0; 86], 1);
        packet.extend_from_slice(input);
        check_packet(&packet);
        packet.truncate(98);
        packet.extend(input.iter().map(|byte| byte % 8));
        check_packet(&packet);
        let even = input.len() - input.len() % 20;
        check_packet(&with_header(&[&[0; 4], &input[..even]].concat(), 2));
    });
}
