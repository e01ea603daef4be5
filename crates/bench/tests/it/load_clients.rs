//! The load clients against the fixed-response servers, over real sockets: every announce is answered and counted.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use bench::baseline::FixedReply;
use bench::process::free_address;
use bench::sockets::Protocol;
use simulate::announce::PasskeyIn;
use simulate::load::{
    HttpClient, HttpRequests, HttpShape, LoadClient, LoadResult, Peers, Schedule, Shape, UdpClient,
    UdpPackets, UdpShape, Until, Waiting, keeps_alive, udp_answers,
};

const SHAPE: Shape = Shape { torrents: 20, peers: 200 };

fn over_http(shape: HttpShape, until: Until) -> LoadResult {
    let server = FixedReply::start(0, Protocol::Http, 300).unwrap();
    let host = server.address.to_string();
    let requests = Arc::new(HttpRequests::new(&Peers::new(SHAPE), &host, PasskeyIn::Path));
    let mut client = HttpClient::connect(server.address, requests, shape).unwrap();
    client.run(&mut Schedule::new(SHAPE.peers, 1), until).unwrap()
}

#[test]
fn every_http_announce_is_answered_once() {
    let shapes = [(1, 1, Waiting::Sleep), (8, 1, Waiting::Spin), (3, 4, Waiting::Sleep)];
    for (connections, pipeline, waiting) in shapes {
        let tally = over_http(
            HttpShape { connections, pipeline, waiting, keep_alive: true },
            Until::Announces(1_001),
        );
        assert_eq!(tally.replies, 1_001, "{connections} connections, {pipeline} in flight");
        assert_eq!(tally.reply_bytes, 1_001 * 300);
        assert_eq!(tally.failures, 0);
    }
}

#[test]
fn fewer_announces_than_connections_are_enough() {
    assert_eq!(
        over_http(
            HttpShape { connections: 8, pipeline: 2, waiting: Waiting::Sleep, keep_alive: true },
            Until::Announces(3)
        )
        .replies,
        3
    );
}

#[test]
fn a_timed_run_ends_by_itself() {
    let tally = over_http(
        HttpShape { connections: 4, pipeline: 1, waiting: Waiting::Sleep, keep_alive: true },
        Until::Elapsed(Duration::from_millis(50)),
    );
    assert!(tally.replies > 0);
    assert!(tally.elapsed >= Duration::from_millis(50));
}

/// As a tracker that closes after each reply receives them.
#[test]
fn without_keep_alive_every_announce_has_a_connection_of_its_own() {
    let shape = HttpShape { connections: 8, pipeline: 1, waiting: Waiting::Sleep, keep_alive: false };
    let tally = over_http(shape, Until::Announces(101));
    assert_eq!((tally.replies, tally.reply_bytes), (101, 101 * 300));
    let server = FixedReply::start(0, Protocol::Http, 300).unwrap();
    assert_eq!(keeps_alive(server.address, b"GET / HTTP/1.1\r\n\r\n"), Some(true));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closing = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nde").unwrap();
    });
    assert_eq!(keeps_alive(closing, b"GET "), Some(false));
}

#[test]
fn every_udp_announce_is_answered_once() {
    over_udp(Waiting::Sleep);
    over_udp(Waiting::Spin);
}

fn over_udp(waiting: Waiting) {
    let server = FixedReply::start(0, Protocol::Udp, 140).unwrap();
    assert!(udp_answers(server.address));
    let packets = Arc::new(UdpPackets::new(&Peers::new(SHAPE)));
    let shape = UdpShape { batches_in_flight: 4, waiting };
    let mut client = UdpClient::bind(server.address, packets, shape).unwrap();
    let tally = client.run(&mut Schedule::new(SHAPE.peers, 1), Until::Announces(1_001)).unwrap();
    assert_eq!(tally.replies + tally.lost, 1_001);
    assert_eq!(tally.reply_bytes, tally.replies * 140);
    assert_eq!(tally.failures, 0);
    assert!(tally.lost < 100, "{} lost", tally.lost);
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let address = free_address().expect("loopback has free ports");
    let requests = Arc::new(HttpRequests::new(&Peers::new(SHAPE), "x", PasskeyIn::Query));
    let shape = HttpShape { connections: 1, pipeline: 1, waiting: Waiting::Sleep, keep_alive: true };
    assert!(HttpClient::connect(address, requests, shape).is_err());
}
