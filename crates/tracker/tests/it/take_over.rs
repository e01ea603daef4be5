//! One tracker takes the sockets of another: what waits in them is answered by the second, what is open by the first, and
//! nothing by neither.

use std::net::TcpListener;
use std::time::Duration;

use net::ShutdownMode;
use testkit::udp::announce_packet;
use testkit::{RawHttp, eventually};
use tracker::settings::Settings;
use tracker::{BoundSockets, InheritedSockets};

use crate::support::certificates::Authority;
use crate::support::*;

const LONG: Duration = Duration::from_secs(60);
/// Enough to see that nothing comes.
const A_WHILE: Duration = Duration::from_millis(200);

fn settings(authority: &Authority) -> Settings {
    let tls = Some(authority.files());
    let mut options = Options { tls, workers: 2, drain_timeout: LONG, ..Options::default() };
    (options.live.limits.header_timeout, options.live.limits.idle_timeout) = (LONG, LONG);
    settings_of(options)
}

/// A tracker, and copies of its sockets.
fn start_with_copies(settings: &Settings) -> (TestTracker, InheritedSockets) {
    let ports = BoundSockets::open(settings).unwrap();
    let copies = ports.duplicates().unwrap();
    (try_start_on(settings, ports, None).unwrap(), copies)
}

fn request(client: u32) -> String {
    format!("GET {} HTTP/1.1\r\nHost: t\r\n\r\n", leecher(client).target(&passkey(1)))
}

#[test]
fn t3_a_second_tracker_goes_on_where_the_first_stood_still() {
    let authority = Authority::new();
    authority.install();
    let settings = settings(&authority);
    let (mut first, inherited) = start_with_copies(&settings);
    let mut kept_alive = first.connect();
    assert_eq!(kept_alive.get("/nothing").status(), 404);
    let mut secure = authority.connect(first.https_v4());
    assert_eq!(secure.get("/nothing").status(), 404);
    let mut udp = first.udp_v4();
    let id = udp.connect();
    let path = format!("/{}/announce", passkey(1));

    // The first stands still: what comes waits, what is open is served.
    let accept_gate = first.running().accept_gate().clone();
    assert!(accept_gate.close());
    let mut waiting: Vec<RawHttp> = (0..20).map(|_| first.connect()).collect();
    waiting
        .iter_mut()
        .zip(0..)
        .for_each(|(connection, client)| connection.send(request(client % 5).as_bytes()));
    udp.send(&announce_packet(id, 7, &leecher(1), &path));
    assert!(udp.receive(A_WHILE).is_none(), "no process reads packets");
    assert_eq!(kept_alive.get("/nothing").status(), 404);
    assert!(first.events().is_empty());

    let ids = first.running().connection_ids();
    let second =
        try_start_on(&settings, BoundSockets::inherit(&settings, inherited).unwrap(), Some(ids)).unwrap();
    assert_eq!(second.running().addresses(), first.running().addresses());
    let mode = first.begin_shutdown(ShutdownMode::HandOver);
    for connection in &mut waiting {
        let reply = connection.read_reply();
        assert_eq!((reply.status(), reply.header("connection")), (200, None));
    }
    assert_eq!(udp.receive(PATIENCE).unwrap()[..8], [1_u32.to_be_bytes(), 7_u32.to_be_bytes()].concat());
    assert_eq!(second.events().len(), 21);

    eventually("the first to be told", PATIENCE, || (!accept_gate.close()).then_some(()));

    // Connections that are open end with their next answers: of several that came together, with the last.
    kept_alive.send(format!("{}{}", request(1), request(2)).as_bytes());
    let (one, other) = (kept_alive.read_reply(), kept_alive.read_reply());
    assert_eq!((one.status(), one.header("connection")), (200, None));
    assert_eq!((other.status(), other.header("connection")), (200, Some("close")));
    assert!(kept_alive.read_to_close().is_empty());
    assert_eq!(secure.get("/nothing").header("connection"), Some("close"));
    assert!(mode.join().unwrap() < LONG / 2, "nothing else holds it up");
    assert_eq!((first.events().len(), second.events().len()), (2, 21));
    second.announce(1, &leecher(3));
    drop(second);
}

#[test]
fn a_valve_that_is_opened_again_lets_in_what_waited() {
    let tracker = start_with(Options::default());
    let accept_gate = tracker.running().accept_gate().clone();
    for _ in 0..3 {
        assert!(accept_gate.close());
        let mut connection = tracker.connect();
        connection.send(request(1).as_bytes());
        let udp = tracker.udp_v6();
        udp.send(&testkit::udp::request_head(testkit::udp::PROTOCOL_ID, 0, 1));
        assert!(udp.receive(Duration::from_millis(20)).is_none());
        accept_gate.open();
        assert_eq!(connection.read_reply().status(), 200);
        assert!(udp.receive(PATIENCE).is_some());
    }
}

#[test]
fn an_idle_connection_does_not_delay_the_shutdown() {
    let settings = settings_of(Options { drain_timeout: Duration::from_millis(400), ..Options::default() });
    let (mut first, inherited) = start_with_copies(&settings);
    let mut silent = first.connect();
    assert_eq!(silent.get("/nothing").status(), 404);
    let took = first.begin_shutdown(ShutdownMode::HandOver).join().unwrap();
    assert!(took >= Duration::from_millis(200), "it is given time: {took:?}");
    assert!(took < PATIENCE, "{took:?}");
    assert!(silent.read_to_close().is_empty());
    // No process serves yet, and no client was refused.
    let mut waiting = RawHttp::connect(inherited.http[0].local_addr().unwrap());
    waiting.send(request(1).as_bytes());
    let second = try_start_on(&settings, BoundSockets::inherit(&settings, inherited).unwrap(), None).unwrap();
    assert_eq!(waiting.read_reply().status(), 200);
    drop(second);
}

/// The configuration may have changed in between: other workers, an address more, another less.
#[test]
fn new_addresses_are_bound_and_removed_ones_closed() {
    let before = settings_of(Options { workers: 3, ..Options::default() });
    let (mut first, inherited) = start_with_copies(&before);
    let addresses = first.running().addresses().clone();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let after = Settings {
        http_addresses: vec![addresses.http[0], free],
        udp_addresses: vec![addresses.udp[1]],
        ..settings_of(Options { workers: 1, ..Options::default() })
    };
    let second = try_start_on(&after, BoundSockets::inherit(&after, inherited).unwrap(), None).unwrap();
    first.begin_shutdown(ShutdownMode::HandOver).join().unwrap();
    assert_eq!(second.running().addresses().http, [addresses.http[0], free]);
    assert_eq!(second.running().addresses().udp, [addresses.udp[1]]);
    // The system gives connections to all three sockets of the first, so all three are served.
    for _ in 0..30 {
        assert_eq!(RawHttp::connect(addresses.http[0]).get("/nothing").status(), 404);
    }
    assert_eq!(RawHttp::connect(free).get("/nothing").status(), 404);
    assert!(RawHttp::try_connect(addresses.http[1]).is_err());
}

#[test]
fn ports_can_be_shared_by_two_servers_if_both_are_configured_so() {
    let (first, _) = start_with_copies(&settings_of(Options::default()));
    let addresses = first.running().addresses().clone();
    let same = Settings {
        http_addresses: addresses.http.clone(),
        udp_addresses: addresses.udp.clone(),
        ..settings_of(Options::default())
    };
    assert!(BoundSockets::open(&same).is_err());
    let shared = Settings { share_ports: true, ..same };
    let second = try_start_on(&shared, BoundSockets::open(&shared).unwrap(), None).unwrap();
    let heard_by_both = || {
        assert_eq!(first.get("/nothing").status(), 404);
        let heard = |tracker: &TestTracker| tracker.tracker().counters().connections.get() > 0;
        (heard(&first) && heard(&second)).then_some(())
    };
    eventually("the system to spread connections", PATIENCE, heard_by_both);
}
