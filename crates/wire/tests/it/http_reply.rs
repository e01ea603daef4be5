//! Bencoded replies, byte by byte.

use std::net::IpAddr;

use domain::{InfoHash, Seconds};
use wire::bencode;
use wire::http::{AnnounceReply, Failure, RetryIn, ScrapeEntry, write_scrape_reply};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    bencode::parse(&out).expect("replies are strict bencode, with sorted keys");
    out
}

const EMPTY_SWARM: AnnounceReply<'static> = AnnounceReply {
    complete: 0,
    incomplete: 1,
    downloaded: 0,
    interval: Seconds(1800),
    min_interval: Seconds(60),
    external_ip: IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 9)),
    peers: &[],
    peers6: &[],
    warning: None,
};

#[test]
fn an_empty_swarm_still_sends_peers() {
    assert_eq!(
        written(|out| EMPTY_SWARM.write(out)).escape_ascii().to_string(),
        "d8:completei0e10:downloadedi0e11:external ip4:\\xcb\\x00q\\t10:incompletei1e\
         8:intervali1800e12:min intervali60e5:peers0:e"
    );
}

#[test]
fn t1_both_families_and_a_warning_are_sent_when_there_are_any() {
    let reply = AnnounceReply {
        complete: 4_294_967_295,
        downloaded: 7,
        external_ip: "2001:db8::1".parse().unwrap(),
        peers: b"\x7f\0\0\x01\x1a\xe1\x7f\0\0\x02\x1a\xe1",
        peers6: b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x1a\xe1",
        warning: Some("too fast"),
        ..EMPTY_SWARM
    };
    assert_eq!(
        written(|out| reply.write(out)).escape_ascii().to_string(),
        "d8:completei4294967295e10:downloadedi7e\
         11:external ip16: \\x01\\r\\xb8\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\
         10:incompletei1e8:intervali1800e12:min intervali60e\
         5:peers12:\\x7f\\x00\\x00\\x01\\x1a\\xe1\\x7f\\x00\\x00\\x02\\x1a\\xe1\
         6:peers618:\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x1a\\xe1\
         15:warning message8:too faste"
    );
}

#[test]
fn t2_a_failure_has_a_reason_and_a_retry_time() {
    let failure = |retry_in| written(|out| Failure { reason: "unknown torrent", retry_in }.write(out));
    assert_eq!(failure(None), b"d14:failure reason15:unknown torrente");
    assert_eq!(
        failure(Some(RetryIn::Minutes(5))),
        b"d14:failure reason15:unknown torrent8:intervali300e8:retry ini5ee"
    );
    assert_eq!(failure(Some(RetryIn::Never)), b"d14:failure reason15:unknown torrent8:retry in5:nevere");
}

#[test]
fn lengths_count_bytes_not_characters() {
    let failure = Failure { reason: "nö", retry_in: None };
    assert_eq!(written(|out| failure.write(out)), "d14:failure reason3:nöe".as_bytes());
}

#[test]
fn t1_a_scrape_reply_is_sorted_and_names_each_hash_once() {
    let entry = |byte, complete| ScrapeEntry {
        info_hash: InfoHash([byte; 20]),
        complete,
        downloaded: 2,
        incomplete: 3,
    };
    let mut entries = [entry(b'b', 10), entry(0xff, 30), entry(b'a', 20), entry(b'b', 10)];
    assert_eq!(
        written(|out| write_scrape_reply(&mut entries, None, out)).escape_ascii().to_string(),
        format!(
            "d5:filesd20:{}d8:completei20e10:downloadedi2e10:incompletei3ee\
             20:{}d8:completei10e10:downloadedi2e10:incompletei3ee\
             20:{}d8:completei30e10:downloadedi2e10:incompletei3eeee",
            "a".repeat(20),
            "b".repeat(20),
            "\\xff".repeat(20),
        )
    );
    assert_eq!(
        written(|out| write_scrape_reply(&mut [], Some(Seconds(900)), out)),
        b"d5:filesde5:flagsd20:min_request_intervali900eee"
    );
}

#[test]
fn replies_are_appended() {
    let mut out = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    Failure { reason: "no", retry_in: None }.write(&mut out);
    assert_eq!(out, b"HTTP/1.1 200 OK\r\n\r\nd14:failure reason2:noe");
}
