//! The clients against the do-nothing servers, over real sockets: every announce is answered and counted.

use std::net::SocketAddr;
use std::time::Duration;

use bench::BenchError;
use bench::baseline;
use bench::load::http::{HttpClient, HttpShape};
use bench::load::http_requests::HttpRequests;
use bench::load::udp::{UdpClient, UdpShape};
use bench::load::udp_packets::UdpPackets;
use bench::load::{LoadResult, Until, Waiting};
use bench::population::{Population, Shape};
use bench::process::free_address;
use bench::schedule::Schedule;
use domain::clock::Stopwatch;

const SHAPE: Shape = Shape { torrents: 20, peers: 200 };
/// Long enough for a slow machine; the servers' threads end with the test's process.
const LIFETIME: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);

fn start(serve: fn(SocketAddr, usize, Duration) -> Result<(), BenchError>, reply_bytes: usize) -> SocketAddr {
    let address = free_address().expect("loopback has free ports");
    std::thread::spawn(move || serve(address, reply_bytes, LIFETIME));
    address
}

fn connect(address: SocketAddr, shape: HttpShape) -> HttpClient {
    let watch = Stopwatch::start();
    loop {
        match HttpClient::connect(address, shape) {
            Ok(client) => return client,
            Err(error) => assert!(watch.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::yield_now();
    }
}

fn over_http(shape: HttpShape, until: Until) -> LoadResult {
    let address = start(baseline::http::serve, 300);
    let population = Population::new(SHAPE);
    let requests = HttpRequests::new(&population, &address.to_string());
    let mut schedule = Schedule::new(SHAPE.peers, 1);
    connect(address, shape).run(&requests, &mut schedule, until, |_| {}).expect("the server answers")
}

#[test]
fn every_http_announce_is_answered_once() {
    let shapes = [(1, 1, Waiting::Sleep), (8, 1, Waiting::Spin), (3, 4, Waiting::Sleep)];
    for (connections, pipeline, waiting) in shapes {
        let tally = over_http(HttpShape { connections, pipeline, waiting }, Until::Announces(1_001));
        assert_eq!(tally.replies, 1_001, "{connections} connections, {pipeline} in flight");
        assert_eq!(tally.reply_bytes, 1_001 * 300);
        assert_eq!(tally.failures, 0);
    }
}

#[test]
fn fewer_announces_than_connections_are_enough() {
    assert_eq!(
        over_http(HttpShape { connections: 8, pipeline: 2, waiting: Waiting::Sleep }, Until::Announces(3))
            .replies,
        3
    );
}

#[test]
fn a_timed_run_ends_by_itself() {
    let tally = over_http(
        HttpShape { connections: 4, pipeline: 1, waiting: Waiting::Sleep },
        Until::Elapsed(Duration::from_millis(50)),
    );
    assert!(tally.replies > 0);
    assert!(tally.elapsed >= Duration::from_millis(50));
}

#[test]
fn every_udp_announce_is_answered_once() {
    over_udp(Waiting::Sleep);
    over_udp(Waiting::Spin);
}

fn over_udp(waiting: Waiting) {
    let address = start(baseline::udp::serve, 140);
    let population = Population::new(SHAPE);
    let packets = UdpPackets::new(&population);
    let mut schedule = Schedule::new(SHAPE.peers, 1);
    let watch = Stopwatch::start();
    // Until the server has bound its port, the kernel refuses on its behalf.
    let tally = loop {
        let mut client = UdpClient::bind(address, UdpShape { batches_in_flight: 4, waiting })
            .expect("loopback has free ports");
        match client.run(&packets, &mut schedule, Until::Announces(1_001), |_| {}) {
            Ok(tally) => break tally,
            Err(error) => assert!(watch.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(tally.replies + tally.lost, 1_001);
    assert_eq!(tally.reply_bytes, tally.replies * 140);
    assert_eq!(tally.failures, 0);
    assert!(tally.lost < 100, "{} lost", tally.lost);
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let address = free_address().expect("loopback has free ports");
    assert!(
        HttpClient::connect(address, HttpShape { connections: 1, pipeline: 1, waiting: Waiting::Sleep })
            .is_err()
    );
}
