//! The load clients against the fixed-response servers, over real sockets: every announce is answered and counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bench::baseline;
use bench::process::free_address;
use domain::clock::Stopwatch;
use simulate::SimulationError;
use simulate::load::{
    HttpClient, HttpRequests, HttpShape, LoadClient, LoadResult, Peers, Schedule, Shape, UdpClient,
    UdpPackets, UdpShape, Until, Waiting,
};

const SHAPE: Shape = Shape { torrents: 20, peers: 200 };
/// Long enough for a slow machine; the servers' threads end with the test's process.
const LIFETIME: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);

fn start(serve: fn(SocketAddr, usize, Duration) -> anyhow::Result<()>, reply_bytes: usize) -> SocketAddr {
    let address = free_address().expect("loopback has free ports");
    std::thread::spawn(move || serve(address, reply_bytes, LIFETIME));
    address
}

/// Runs a client once the server has started: until then, the kernel refuses on its behalf.
fn announce(until: Until, connect: impl Fn() -> Result<Box<dyn LoadClient>, SimulationError>) -> LoadResult {
    let watch = Stopwatch::start();
    loop {
        let mut schedule = Schedule::new(SHAPE.peers, 1);
        match connect().and_then(|mut client| client.run(&mut schedule, until, &mut |_| {})) {
            Ok(tally) => return tally,
            Err(error) => assert!(watch.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::yield_now();
    }
}

fn over_http(shape: HttpShape, until: Until) -> LoadResult {
    let address = start(baseline::http::serve, 300);
    let requests = Arc::new(HttpRequests::new(&Peers::new(SHAPE), &address.to_string()));
    announce(until, || Ok(Box::new(HttpClient::connect(address, Arc::clone(&requests), shape)?)))
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
    let packets = Arc::new(UdpPackets::new(&Peers::new(SHAPE)));
    let shape = UdpShape { batches_in_flight: 4, waiting };
    let tally = announce(Until::Announces(1_001), || {
        Ok(Box::new(UdpClient::bind(address, Arc::clone(&packets), shape)?))
    });
    assert_eq!(tally.replies + tally.lost, 1_001);
    assert_eq!(tally.reply_bytes, tally.replies * 140);
    assert_eq!(tally.failures, 0);
    assert!(tally.lost < 100, "{} lost", tally.lost);
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let address = free_address().expect("loopback has free ports");
    let requests = Arc::new(HttpRequests::new(&Peers::new(SHAPE), "x"));
    let shape = HttpShape { connections: 1, pipeline: 1, waiting: Waiting::Sleep };
    assert!(HttpClient::connect(address, requests, shape).is_err());
}
