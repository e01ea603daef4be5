//! Starting on ports that are taken, and mode: what has arrived is answered, and it does not take long.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::BindError;
use testkit::ports::free_port;
use testkit::udp::{PROTOCOL_ID, announce_packet, request_head};
use testkit::{Family, RawHttp, eventually};
use tracker::StartError;
use tracker::settings::Settings;

use crate::support::certificates::Authority;
use crate::support::*;

/// Far longer than anything here takes that is not held up.
const LONG: Duration = Duration::from_secs(60);

/// A tracker with long timeouts, so that only draining ends connections.
fn start_patient(drain_timeout: Duration) -> TestTracker {
    let mut options = Options { drain_timeout, ..Options::default() };
    (options.live.limits.header_timeout, options.live.limits.idle_timeout) = (LONG, LONG);
    start_with(options)
}

fn request(client: u32) -> Vec<u8> {
    format!("GET {} HTTP/1.1\r\nHost: t\r\n\r\n", leecher(client).target(&passkey(1))).into_bytes()
}

fn wait_until_closed(server: SocketAddr) {
    eventually("the listener to close", PATIENCE, || RawHttp::try_connect(server).err());
}

/// Sends the beginning of a request, and waits until the tracker has read it.
fn begin_request(tracker: &TestTracker, bytes: &[u8]) -> RawHttp {
    let mut connection = tracker.connect();
    connection.send(bytes);
    // The tracker's only thread has answered another connection, so it has looked at this one as well.
    assert_eq!(tracker.get("/nothing").status(), 404);
    connection
}

#[test]
fn a_request_that_is_half_sent_when_the_drain_begins_is_answered() {
    let mut tracker = start_patient(LONG);
    let (server, whole) = (tracker.http_v4(), request(1));
    let (beginning, rest) = whole.split_at(40);
    let mut connection = begin_request(&tracker, beginning);
    let drain = tracker.begin_drain();
    wait_until_closed(server);
    connection.send(rest);
    assert_eq!(connection.read_reply().status(), 200);
    assert!(connection.read_to_close().is_empty());
    assert!(drain.join().unwrap() < PATIENCE);
    assert_eq!(tracker.events().len(), 1);
}

/// Also those that no thread has looked at yet: to their clients they are accepted.
#[test]
fn requests_that_have_arrived_when_the_drain_begins_are_answered() {
    let mut tracker = start_patient(LONG);
    let mut kept_alive = tracker.connect();
    kept_alive.send(&request(50));
    assert_eq!(kept_alive.read_reply().status(), 200);
    let mut connections: Vec<RawHttp> = (0..50).map(|_| tracker.connect()).collect();
    for (connection, client) in connections.iter_mut().zip(0..) {
        connection.send(&request(client % 5));
    }
    kept_alive.send(&request(50));
    let drain = tracker.begin_drain();
    for connection in connections.iter_mut().chain([&mut kept_alive]) {
        assert_eq!(connection.read_reply().status(), 200);
        assert!(connection.read_to_close().is_empty());
    }
    assert!(drain.join().unwrap() < PATIENCE);
}

#[test]
fn idle_connections_are_closed_at_once_and_new_ones_refused() {
    let authority = Authority::new();
    let mut options = Options { tls: Some(authority.install().0), drain_timeout: LONG, ..Options::default() };
    options.live.limits.idle_timeout = LONG;
    let mut tracker = start_with(options);
    let servers = [tracker.http_v4(), tracker.http_v6(), tracker.https_v4(), tracker.https_v6()];
    let mut plain = [RawHttp::connect(servers[0]), RawHttp::connect(servers[1])];
    let mut secure = [authority.connect(servers[2]), authority.connect(servers[3])];
    for connection in &mut plain {
        assert_eq!(connection.get("/nothing").status(), 404);
    }
    for connection in &mut secure {
        assert_eq!(connection.get("/nothing").status(), 404);
    }
    let silent = tracker.connect();
    let drain = tracker.begin_drain();
    assert!(plain.iter_mut().all(|connection| connection.read_to_close().is_empty()));
    assert!(secure.iter_mut().all(|connection| connection.read_to_close().is_empty()));
    assert!(drain.join().unwrap() < PATIENCE);
    for server in servers {
        assert!(RawHttp::try_connect(server).is_err(), "{server}");
    }
    drop(silent);
}

#[test]
fn a_client_that_never_finishes_does_not_hold_up_the_end() {
    let mut tracker = start_patient(Duration::from_millis(300));
    let mut connection = begin_request(&tracker, b"GET /announce");
    let took = tracker.begin_drain().join().unwrap();
    assert!(took >= Duration::from_millis(300), "it is given the time: {took:?}");
    assert!(took < PATIENCE, "{took:?}");
    assert!(connection.read_to_close().is_empty());
}

#[test]
fn packets_that_are_queued_when_the_drain_begins_are_answered() {
    let mut tracker = start_patient(LONG);
    let mut udp = tracker.udp_v4();
    let connection = udp.connect();
    for number in 0..100 {
        let path = format!("/{}/announce", passkey(1));
        udp.send(&announce_packet(connection, number, &leecher(number % 5), &path));
    }
    let drain = tracker.begin_drain();
    for number in 0..100_u32 {
        let reply = udp.receive(PATIENCE).unwrap_or_else(|| panic!("no reply to packet {number}"));
        assert_eq!(reply[..8], [1_u32.to_be_bytes(), number.to_be_bytes()].concat());
    }
    assert!(drain.join().unwrap() < PATIENCE);
    assert_eq!(tracker.events().len(), 100);
}

/// A busy tracker is never without a packet for long, and must come to an end all the same.
#[test]
fn packets_that_never_cease_do_not_hold_up_the_end() {
    let mut tracker = start_patient(LONG);
    let server = tracker.running().addresses().udp[0];
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let sending = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        while !is_done.load(Ordering::Relaxed) {
            socket.send_to(&request_head(PROTOCOL_ID, 0, 7), server).unwrap();
            let _ = socket.recv(&mut [0; 100]);
        }
    });
    let packets = Arc::clone(tracker.tracker());
    eventually("packets to arrive", PATIENCE, || (packets.counters().packets.get() > 10).then_some(()));
    let took = tracker.begin_drain().join().unwrap();
    done.store(true, Ordering::Relaxed);
    sending.join().unwrap();
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn the_ports_are_free_again_after_the_end() {
    let mut tracker = start_patient(LONG);
    let (http, udp) = (tracker.http_v4(), tracker.running().addresses().udp[0]);
    let mut connection = tracker.connect();
    assert_eq!(connection.get("/nothing").status(), 404);
    tracker.drain();
    let settings =
        Settings { http_addresses: vec![http], udp_addresses: vec![udp], ..settings_of(Options::default()) };
    let again = try_start(&settings).unwrap();
    assert_eq!((again.http_v4(), again.running().addresses().udp[0]), (http, udp));
    again.announce(1, &leecher(1));
}

/// Starts with these settings, which fails because of the last address; the others are free again afterwards.
#[track_caller]
fn assert_taken(settings: &Settings, taken: SocketAddr, said_protocol: &str) {
    let error = try_start(settings).err().expect("an address is taken");
    let text = error.to_string();
    assert!(text.contains(&taken.to_string()), "{text}");
    assert!(text.contains(said_protocol) && text.contains("the port is taken"), "{text}");
    match error {
        StartError::Bind(BindError { address, listener, .. }) => {
            assert_eq!((address, listener), (taken, said_protocol));
        }
        other => panic!("{other:?}"),
    }
    for address in settings.http_addresses.iter().chain(&settings.https_addresses) {
        assert!(*address == taken || TcpListener::bind(address).is_ok(), "{address}");
    }
    for address in &settings.udp_addresses {
        assert!(*address == taken || UdpSocket::bind(address).is_ok(), "{address}");
    }
}

#[test]
fn a_taken_port_is_named_and_nothing_is_left_half_started() {
    let authority = Authority::new();
    let first = start_with(Options { tls: Some(authority.install().0), workers: 2, ..Options::default() });
    let addresses = first.running().addresses().clone();
    let free = |family: Family| family.loopback_at(free_port());
    let none = Settings {
        http_addresses: vec![],
        https_addresses: vec![],
        udp_addresses: vec![],
        ..settings_of(Options { tls: Some(authority.files()), workers: 2, ..Options::default() })
    };
    for (taken, family) in [(0, Family::V4), (1, Family::V6)] {
        let http = addresses.http[taken];
        assert_taken(
            &Settings { http_addresses: vec![free(Family::V4), free(Family::V6), http], ..none.clone() },
            http,
            "HTTP",
        );
        let https = addresses.https[taken];
        assert_taken(
            &Settings {
                http_addresses: vec![free(family)],
                https_addresses: vec![free(family), https],
                ..none.clone()
            },
            https,
            "HTTPS",
        );
        let udp = addresses.udp[taken];
        assert_taken(
            &Settings {
                http_addresses: vec![free(Family::V4)],
                https_addresses: vec![free(Family::V6)],
                udp_addresses: vec![free(family), udp],
                ..none.clone()
            },
            udp,
            "UDP",
        );
    }
    first.announce(1, &leecher(1));
}

#[test]
fn an_address_of_another_machine_is_explained() {
    let elsewhere: SocketAddr = "192.0.2.1:6969".parse().unwrap();
    let settings = Settings { udp_addresses: vec![elsewhere], ..settings_of(Options::default()) };
    let text = try_start(&settings).err().expect("that is not ours").to_string();
    assert!(text.contains("192.0.2.1:6969") && text.contains("does not have that address"), "{text}");
}
