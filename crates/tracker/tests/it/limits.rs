//! Limits on floods, connections, slow and malformed requests.

mod members;

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use testkit::udp::{PROTOCOL_ID, announce_packet, request_head};
use testkit::{AnnounceReply, RawHttp, RawUdp, RetryIn, SwarmCounts, eventually};
use tracker::settings::LimitSettings;

use crate::support::certificates::Authority;
use crate::support::*;

/// Another address of this machine.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SOON: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(3600);

fn start_limited(change: impl FnOnce(&mut LimitSettings)) -> TestTracker {
    start_live(|live| {
        (live.limits.header_timeout, live.limits.idle_timeout) = (NEVER, NEVER);
        change(&mut live.limits);
    })
}

fn allow_burst(limits: &mut LimitSettings, burst: u32) {
    (limits.requests_per_address_per_s, limits.request_burst_per_address) = (1, burst);
}

fn target(client: u32) -> String {
    leecher(client).target(&passkey(1))
}

/// The reason in a reply with this status.
#[track_caller]
fn failure(connection: &mut RawHttp<impl std::io::Read + Write>, status: u16) -> String {
    let reply = connection.read_reply();
    assert_eq!(reply.status(), status, "{reply:?}");
    AnnounceReply::decode(&reply.body).failure_reason.expect("a failure says why")
}

#[test]
fn a_flood_over_http_is_refused_with_retry_in_while_others_are_served() {
    let tracker = start_limited(|limits| allow_burst(limits, 10));
    let mut connection = tracker.connect();
    let mut ask = || AnnounceReply::decode(&connection.get(&target(1)).body);
    assert!((0..10).all(|_| ask().failure_reason.is_none()));
    for _ in 0..5 {
        let refused = ask();
        assert!(refused.failure_reason.expect("a reason").contains("too many requests"));
        assert_eq!(refused.retry_in, Some(RetryIn::Minutes(1)));
    }
    assert_eq!((tracker.refused("flood"), tracker.events().len()), (5, 10));
    let reply = connect_from(ELSEWHERE, tracker.http_v4()).get(&target(2));
    assert_eq!(AnnounceReply::decode(&reply.body).failure_reason, None);
    assert_eq!(tracker.ask_v6(1, &leecher(3)).failure_reason, None);
    tracker.pass(3);
    let served = (0..5).filter(|_| ask().failure_reason.is_none()).count();
    assert_eq!(served, 3, "one a second comes back");
}

#[test]
fn nonsense_counts_as_much_as_an_announce() {
    let tracker = start_limited(|limits| allow_burst(limits, 5));
    for path in ["/nothing", "/announce", "/scrape", "/00/announce", "/announce?info_hash=1"] {
        assert!(!tracker.refusal(path).contains("too many requests"));
    }
    assert!(tracker.refusal(&target(1)).contains("too many requests"));
}

#[test]
fn a_flood_over_udp_is_met_with_silence_while_others_are_served() {
    let tracker = start_limited(|limits| allow_burst(limits, 10));
    let path = format!("/{}/announce", passkey(1));
    let mut udp = tracker.udp_v4();
    let connection = udp.connect();
    for number in 0..10 {
        udp.exchange(&announce_packet(connection, 100 + number, &leecher(1), &path));
    }
    let announce = announce_packet(connection, 200, &leecher(1), &path);
    let mut scrape = request_head(connection, 2, 200);
    scrape.extend(TORRENT.0);
    for (packet, floods) in [(&announce, 1), (&scrape, 2)] {
        udp.send(packet);
        tracker.wait_refused("flood", floods);
    }
    assert_eq!(udp.receive(Duration::from_millis(20)), None, "a flood gets no replies");
    assert_eq!(tracker.events().len(), 10);
    let server = tracker.running().addresses().udp[0];
    let mut other = RawUdp::from_address(ELSEWHERE.into(), server);
    assert_eq!(other.announce(&leecher(2), &path).unwrap().leechers, 2);
}

/// The source address of a packet can be forged: unverified packets are limited, but do not use up the budget of that address.
#[test]
fn packets_without_a_valid_id_are_limited_and_lock_out_no_address() {
    let tracker = start_limited(|limits| allow_burst(limits, 10));
    let udp = tracker.udp_v4();
    let stale = announce_packet(99, 1, &leecher(1), &format!("/{}/announce", passkey(1)));
    for _ in 0..20 {
        udp.send(&request_head(PROTOCOL_ID, 0, 7));
        udp.send(&stale);
    }
    tracker.wait_refused("stale_connection_id", 20);
    let answers: Vec<Vec<u8>> = std::iter::from_fn(|| udp.receive(Duration::from_millis(20))).collect();
    let errors = answers.iter().filter(|answer| answer.starts_with(&3_u32.to_be_bytes())).count();
    assert_eq!((answers.len(), errors), (30, 10), "every connect, and as many errors as allowed");
    tracker.announce(1, &leecher(1));
}

/// One bucket per address, for all protocols.
#[test]
fn http_and_udp_share_the_limit() {
    let tracker = start_limited(|limits| allow_burst(limits, 2));
    tracker.udp_v4().announce(&leecher(1), &format!("/{}/announce", passkey(1))).unwrap();
    tracker.announce(1, &leecher(1));
    assert!(tracker.refusal(&target(1)).contains("too many requests"));
}

/// Connects, asks as a client does, and reads why it may not.
#[track_caller]
fn turned_away(mut connection: RawHttp) {
    // The server may have closed the connection by then; its reply is still readable.
    let _ = connection.try_send(format!("GET {} HTTP/1.1\r\n\r\n", target(9)).as_bytes());
    let reply = connection.read_reply();
    assert_eq!((reply.status(), reply.header("connection")), (503, Some("close")));
    let reply = AnnounceReply::decode(&reply.body);
    assert_eq!(reply.failure_reason.as_deref(), Some("too many connections"));
    assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)));
    assert!(connection.read_to_close().is_empty());
}

#[test]
fn total_connections_are_limited_and_a_close_releases_a_permit() {
    let tracker = start_limited(|limits| limits.connections_max = 2);
    let mut first = tracker.connect();
    let mut second = RawHttp::connect(tracker.http_v6());
    assert_eq!((first.get(&target(1)).status(), second.get(&target(1)).status()), (200, 200));
    for refused in 1..=3 {
        turned_away(connect_from(ELSEWHERE, tracker.http_v4()));
        assert_eq!(tracker.refused("too_many_connections"), refused);
    }
    assert_eq!(second.get(&target(1)).status(), 200, "who is in stays in");
    drop(first);
    eventually("a place to come back", PATIENCE, || {
        let mut connection = tracker.connect();
        let _ = connection.try_send(format!("GET {} HTTP/1.1\r\n\r\n", target(1)).as_bytes());
        (connection.try_read_reply().ok()?.status() == 200).then_some(())
    });
}

#[test]
fn connections_from_one_address_are_limited_while_others_are_served() {
    let tracker = start_limited(|limits| limits.connections_per_address_max = 1);
    let mut first = tracker.connect();
    assert_eq!(first.get(&target(1)).status(), 200);
    turned_away(tracker.connect());
    assert_eq!(tracker.refused("too_many_connections_from_address"), 1);
    assert_eq!(connect_from(ELSEWHERE, tracker.http_v4()).get(&target(2)).status(), 200);
    assert_eq!(RawHttp::connect(tracker.http_v6()).get(&target(3)).status(), 200);
    drop(first);
    eventually("the place to come back", PATIENCE, || {
        let mut connection = tracker.connect();
        let _ = connection.try_send(format!("GET {} HTTP/1.1\r\n\r\n", target(1)).as_bytes());
        (connection.try_read_reply().ok()?.status() == 200).then_some(())
    });
}

#[test]
fn a_head_that_does_not_arrive_in_time_is_answered_408() {
    let tracker = start_limited(|limits| limits.header_timeout = SOON);
    let request = format!("GET {} HTTP/1.1\r\nHost: t\r\n\r\n", target(1));
    for (sent, count) in [&request[..1], &request[..40], &request[..request.len() - 1]].into_iter().zip(1..) {
        let mut connection = tracker.connect();
        connection.send(sent.as_bytes());
        assert!(failure(&mut connection, 408).contains("in time"));
        assert!(connection.read_to_close().is_empty());
        assert_eq!(tracker.refused("slow_head"), count);
    }
    assert_eq!(tracker.events().len(), 0);
}

#[test]
fn a_head_that_comes_byte_by_byte_is_cut_off_all_the_same() {
    let tracker = start_limited(|limits| limits.header_timeout = SOON);
    let mut connection = tracker.connect();
    connection.send(b"GET /");
    eventually("the slow client to be cut off", PATIENCE, || {
        let _ = connection.try_send(b"x");
        (tracker.refused("slow_head") == 1).then_some(())
    });
}

/// The patience of an idle connection once hid that of a head: the alarm had been set for the former.
#[test]
fn a_slow_head_on_a_connection_that_was_idle_is_cut_off_in_the_time_of_a_head() {
    let tracker = start_limited(|limits| limits.header_timeout = SOON);
    let mut connection = tracker.connect();
    assert_eq!(connection.get(&target(1)).status(), 200);
    // A client that connects and sends nothing is closed after the header timeout.
    assert!(tracker.connect().read_to_close().is_empty());
    connection.send(b"GET /announce");
    assert!(failure(&mut connection, 408).contains("in time"));
    assert_eq!(tracker.refused("slow_head"), 1);
}

#[test]
fn a_slow_head_behind_a_whole_one_is_cut_off_and_the_whole_one_answered() {
    let tracker = start_limited(|limits| limits.header_timeout = SOON);
    let mut connection = tracker.connect();
    connection.send(format!("GET {} HTTP/1.1\r\n\r\nGET /announce", target(1)).as_bytes());
    assert_eq!(connection.read_reply().status(), 200);
    failure(&mut connection, 408);
}

#[test]
fn an_idle_connection_is_closed_silently() {
    let tracker = start_limited(|limits| limits.idle_timeout = SOON);
    let mut connection = tracker.connect();
    for _ in 0..3 {
        assert_eq!(connection.get(&target(1)).status(), 200);
    }
    assert!(connection.read_to_close().is_empty());
    assert_eq!(tracker.tracker().counters().refused.total(), 0, "that is not counted as a refusal");
}

/// A tracker with room for two connections, of which the first is taken, and replies so long that those to a few
/// thousand requests do not fit into any socket's buffers.
fn start_for_slow_readers(authority: &Authority) -> (TestTracker, RawHttp) {
    let mut options = Options { tls: Some(authority.install().0), ..Options::default() };
    options.live.min_announce_interval = domain::Seconds(0);
    options.live.limits.header_timeout = Duration::from_secs(1);
    options.live.limits.connections_max = 2;
    (options.live.limits.requests_per_address_per_s, options.live.limits.request_burst_per_address) = (0, 0);
    let tracker = start_with(options);
    let mut first = tracker.connect();
    for client in 0..100_u32 {
        let key: domain::Passkey = format!("{:032x}", 1000 + client).parse().expect("hexadecimal digits");
        tracker.gate.put_user(
            domain::UserId::new(1000 + u64::from(client)).expect("a positive number"),
            key,
            true,
        );
        assert_eq!(first.get(&leecher(client).target(&key)).status(), 200);
    }
    (tracker, first)
}

fn greedy_requests() -> Vec<u8> {
    let announce = testkit::Announce { numwant: Some(100), ..leecher(7777) };
    format!("GET {} HTTP/1.1\r\n\r\n", announce.target(&passkey(1))).repeat(100).into_bytes()
}

/// The place of the slow reader comes back.
#[track_caller]
fn assert_cut_off_and_gone(tracker: &TestTracker) {
    tracker.wait_refused("slow_reader", 1);
    eventually("the place of the slow reader", PATIENCE, || {
        let mut connection = tracker.connect();
        let _ = connection.try_send(format!("GET {} HTTP/1.1\r\n\r\n", target(1)).as_bytes());
        (connection.try_read_reply().ok()?.status() == 200).then_some(())
    });
}

#[test]
fn a_client_that_never_reads_its_replies_is_cut_off() {
    let authority = Authority::new();
    let (tracker, _first) = start_for_slow_readers(&authority);
    let mut greedy = TcpStream::connect(tracker.http_v4()).unwrap();
    let sending = std::thread::spawn(move || {
        let requests = greedy_requests();
        while greedy.write_all(&requests).is_ok() {}
    });
    assert_cut_off_and_gone(&tracker);
    sending.join().unwrap();
}

/// Over TLS even a goodbye has to be written, for which there is no room.
#[test]
fn a_client_that_never_reads_its_replies_over_tls_is_cut_off() {
    let authority = Authority::new();
    let (tracker, _first) = start_for_slow_readers(&authority);
    let stream = TcpStream::connect(tracker.https_v4()).unwrap();
    let mut greedy = authority.try_handshake(stream, tracker.https_v4()).unwrap();
    let sending = std::thread::spawn(move || {
        let requests = greedy_requests();
        loop {
            greedy.conn.writer().write_all(&requests).unwrap();
            while greedy.conn.wants_write() {
                if greedy.conn.write_tls(&mut greedy.sock).is_err() {
                    return;
                }
            }
        }
    });
    assert_cut_off_and_gone(&tracker);
    sending.join().unwrap();
}

#[test]
fn a_head_that_is_too_large_is_refused_whether_or_not_it_is_whole() {
    let tracker = start();
    let padding = |bytes: usize| format!("X-Padding: {}\r\n", "v".repeat(bytes - 13));
    let head = |bytes: usize| {
        let line = format!("GET {} HTTP/1.1\r\n", target(1));
        let padding = padding(bytes - line.len() - 2);
        format!("{line}{padding}\r\n").into_bytes()
    };
    let mut connection = tracker.connect();
    connection.send(&head(8192));
    assert_eq!(connection.read_reply().status(), 200, "as large as allowed");
    for (request, count) in [head(8193), head(12_000), head(100_000)].into_iter().zip(1..) {
        let mut connection = tracker.connect();
        connection.send(&request);
        assert!(failure(&mut connection, 431).contains("8192"));
        assert!(connection.read_to_close().is_empty());
        assert_eq!(tracker.refused("head_too_large"), count);
    }
    let mut connection = tracker.connect();
    connection.send(format!("GET {} HTTP/1.1\r\n{}\r\n", target(1), "A: b\r\n".repeat(101)).as_bytes());
    assert!(failure(&mut connection, 431).contains("headers"));
    assert_eq!(tracker.events().len(), 1);
}

#[test]
fn what_is_not_http_is_answered_with_a_reason_counted_and_changes_nothing() {
    let tracker = start();
    let get = |rest: &str| format!("GET {} {rest}", target(1)).into_bytes();
    let lower_case = [b"get ".as_slice(), &get("HTTP/1.1\r\n\r\n")[4..]].concat();
    for (request, status, reason) in [
        (b"\x00\x01\x02\xfe\xff random".to_vec(), 400, "bad_http"),
        (vec![0xff; 5000], 400, "bad_http"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 505, "bad_http"),
        (get("HTTP/3.0\r\n\r\n"), 505, "bad_http"),
        (lower_case, 400, "bad_http"),
        (get("\r\n\r\n"), 400, "bad_http"),
        (get("with a space HTTP/1.1\r\n\r\n"), 400, "bad_http"),
        (get("HTTP/1.1\r\nno colon\r\n\r\n"), 400, "bad_http"),
        (get("HTTP/1.1\r\nHost: nul\0\r\n\r\n"), 400, "bad_http"),
        (get("HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 400, "body"),
        (get("HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400, "body"),
    ] {
        let before = tracker.refused(reason);
        let mut connection = tracker.connect();
        connection.send(&request);
        assert!(!failure(&mut connection, status).is_empty());
        assert!(connection.read_to_close().is_empty(), "what follows cannot be understood");
        assert_eq!(tracker.refused(reason), before + 1, "{}", String::from_utf8_lossy(&request));
    }
    assert_eq!((tracker.scrape(&TORRENT), tracker.events().len()), (SwarmCounts::default(), 0));
}

#[test]
fn other_methods_are_answered_405() {
    let tracker = start();
    for (method, has_body) in [("HEAD", false), ("OPTIONS", false), ("PUT", false), ("POST", true)] {
        let mut connection = tracker.connect();
        let body = if has_body { "Content-Length: 7\r\n\r\nleft=10" } else { "\r\n" };
        connection.send(format!("{method} {} HTTP/1.1\r\n{body}", target(1)).as_bytes());
        let reply = connection.read_reply();
        assert_eq!((reply.status(), reply.header("allow")), (405, Some("GET")), "{method}");
        assert_eq!(reply.header("connection"), Some("close"), "{method}");
        // After HEAD a body would be read as the next response.
        match method {
            "HEAD" => assert!(reply.body.is_empty()),
            _ => assert!(AnnounceReply::decode(&reply.body).failure_reason.is_some()),
        }
    }
    assert_eq!((tracker.refused("method"), tracker.events().len()), (4, 0));
}

/// Closing at once would reset the connection under a client that is still sending, and the reason would be lost.
#[test]
fn a_client_that_is_still_sending_can_finish_and_read_why_it_was_refused() {
    let tracker = start();
    for (head, reason) in [
        (format!("POST {} HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n", target(1)), "method"),
        ("rubbish".to_owned(), "bad_http"),
        (format!("GET {} HTTP/1.1\r\nX: {}", target(1), "x".repeat(8200)), "head_too_large"),
    ] {
        let mut connection = tracker.connect();
        connection.send(head.as_bytes());
        tracker.wait_refused(reason, 1);
        for _ in 0..100 {
            connection.send(&[b'x'; 10_000]);
        }
        connection.finish_sending();
        assert!(connection.read_reply().status() >= 400);
        assert!(connection.read_to_close().is_empty());
    }
}
