//! Proxies: client addresses, trust, and malformed headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use testkit::{AnnounceReply, HttpReply, RawHttp, RetryIn};
use tracker::settings::LiveSettings;

use crate::support::certificates::Authority;
use crate::support::*;

const SIGNATURE_V2: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Not among the trusted, but of this machine.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn trust(live: &mut LiveSettings) {
    live.proxies.trusted =
        vec!["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
}

fn expect_proxy_protocol(live: &mut LiveSettings) {
    trust(live);
    live.proxies.proxy_protocol = true;
    live.limits.header_timeout = Duration::from_secs(20);
}

fn believe_headers(headers: &[&str]) -> TestTracker {
    start_live(|live| {
        trust(live);
        live.proxies.forwarded_headers = headers.iter().map(|name| (*name).to_owned()).collect();
    })
}

/// Version 2 with an address, and a field of ours behind it, as load balancers add.
fn header_v2(client: &str) -> Vec<u8> {
    let client: SocketAddr = client.parse().unwrap();
    let (family, mut addresses) = match client.ip() {
        IpAddr::V4(ip) => (0x11, [ip.octets(), [10, 0, 0, 1]].concat()),
        IpAddr::V6(ip) => (0x21, [ip.octets(), [0; 16]].concat()),
    };
    addresses.extend(client.port().to_be_bytes());
    addresses.extend(6969_u16.to_be_bytes());
    addresses.extend([0xea, 0, 3, b'v', b'p', b'c']);
    let mut header = SIGNATURE_V2.to_vec();
    header.extend([0x21, family]);
    header.extend((addresses.len() as u16).to_be_bytes());
    header.extend(addresses);
    header
}

fn request(client: u32, headers: &str) -> Vec<u8> {
    let target = leecher(client).target(&passkey(1));
    format!("GET {target} HTTP/1.1\r\nHost: t\r\n{headers}\r\n").into_bytes()
}

/// Announces with these headers, and returns where the tracker sees the client.
#[track_caller]
fn seen_at(tracker: &TestTracker, headers: &str) -> String {
    let reply = ask_with(tracker, headers);
    assert_eq!(reply.status(), 200, "{headers:?}: {reply:?}");
    let told = AnnounceReply::decode(&reply.body).external_ip.expect("the client is told its address");
    assert_eq!(told, tracker.last_event().ip, "what the client is told is what is written down");
    told.to_string()
}

fn ask_with(tracker: &TestTracker, headers: &str) -> HttpReply {
    let mut connection = tracker.connect();
    connection.send(&request(1, headers));
    connection.read_reply()
}

#[test]
fn the_proxy_protocol_gives_the_address_in_both_versions() {
    let tracker = start_live(expect_proxy_protocol);
    for (header, ip) in [
        (b"PROXY TCP4 192.0.2.1 10.0.0.1 5678 80\r\n".to_vec(), "192.0.2.1"),
        (b"PROXY TCP6 2001:db8::1 ::1 5678 80\r\n".to_vec(), "2001:db8::1"),
        (b"PROXY TCP6 ::ffff:192.0.2.3 ::1 5678 80\r\n".to_vec(), "192.0.2.3"),
        (header_v2("192.0.2.4:5678"), "192.0.2.4"),
        (header_v2("[2001:db8::5]:5678"), "2001:db8::5"),
    ] {
        for server in [tracker.http_v4(), tracker.http_v6()] {
            let mut connection = RawHttp::connect(server);
            connection.send(&[header.as_slice(), &request(1, "")].concat());
            assert_eq!(connection.read_reply().status(), 200);
            assert_eq!(tracker.last_event().ip.to_string(), ip);
            // The header stands for the whole connection, not for its first request.
            connection.send(&request(1, ""));
            assert_eq!(connection.read_reply().status(), 200);
            assert_eq!(tracker.last_event().ip.to_string(), ip);
        }
    }
}

#[test]
fn a_proxys_own_requests_have_its_own_address() {
    let tracker = start_live(expect_proxy_protocol);
    let mut local = header_v2("192.0.2.4:5678");
    local[12] = 0x20;
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), b"PROXY UNKNOWN what ever 1 2\r\n".to_vec(), local] {
        let mut connection = tracker.connect();
        connection.send(&[header.as_slice(), &request(1, "")].concat());
        assert_eq!(connection.read_reply().status(), 200);
        assert_eq!(tracker.last_event().ip, IpAddr::from([127, 0, 0, 1]));
    }
}

#[test]
fn the_proxy_header_may_come_in_pieces() {
    let tracker = start_live(expect_proxy_protocol);
    let v1 = b"PROXY TCP4 192.0.2.1 10.0.0.1 5678 80\r\n".to_vec();
    for header in [v1, header_v2("192.0.2.1:5678")] {
        let whole = [header.as_slice(), &request(1, "")].concat();
        let mut connection = tracker.connect();
        for piece in whole.chunks(9) {
            connection.send(piece);
            // The tracker's only thread has answered another connection, so it has looked at this one as well.
            assert_eq!(proxied(&tracker, "/nothing").status(), 404);
        }
        assert_eq!(connection.read_reply().status(), 200);
        assert_eq!(tracker.last_event().ip.to_string(), "192.0.2.1");
    }
}

fn proxied(tracker: &TestTracker, target: &str) -> HttpReply {
    let mut connection = tracker.connect();
    connection.send(b"PROXY TCP4 192.0.2.99 10.0.0.1 5678 80\r\n");
    connection.get(target)
}

#[test]
fn the_proxy_protocol_stands_before_tls() {
    let authority = Authority::new();
    let mut options = Options { tls: Some(authority.install().0), ..Options::default() };
    expect_proxy_protocol(&mut options.live);
    let tracker = start_with(options);
    let server = tracker.https_v4();
    for header in [b"PROXY TCP4 192.0.2.1 10.0.0.1 5678 443\r\n".to_vec(), header_v2("192.0.2.1:5678")] {
        let mut stream = TcpStream::connect(server).unwrap();
        std::io::Write::write_all(&mut stream, &header).unwrap();
        let stream = authority.try_handshake(stream, server).unwrap();
        let mut connection = RawHttp::over(stream, server);
        connection.send(&request(1, ""));
        assert_eq!(connection.read_reply().status(), 200);
        assert_eq!(tracker.last_event().ip.to_string(), "192.0.2.1");
    }
    let stream = TcpStream::connect(server).unwrap();
    assert!(authority.try_handshake(stream, server).is_err(), "a proxy that does not say who it speaks for");
    tracker.wait_refused("bad_proxy_header", 1);
}

#[test]
fn garbage_instead_of_the_proxy_header_ends_the_connection() {
    let tracker = start_live(expect_proxy_protocol);
    let mut long = header_v2("192.0.2.4:5678");
    (long[14], long[15]) = (0xff, 0xff);
    let mut other_version = header_v2("192.0.2.4:5678");
    other_version[12] = 0x31;
    let garbage = [
        request(1, ""),
        b"PROXY TCP4 nonsense\r\n".to_vec(),
        b"PROXY TCP4 ::1 ::1 1 1\r\n".to_vec(),
        [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat(),
        b"\r\n\r\n\0\r\nQUIT?".to_vec(),
        vec![0xff; 600],
        long,
        other_version,
    ];
    for (bytes, count) in garbage.iter().zip(1..) {
        let mut connection = tracker.connect();
        connection.send(bytes);
        assert_eq!(connection.read_to_close(), b"", "{}", String::from_utf8_lossy(bytes));
        tracker.wait_refused("bad_proxy_header", count);
    }
    assert_eq!(tracker.events().len(), 0);
}

#[test]
fn a_proxy_header_that_is_never_finished_is_cut_off() {
    let tracker = start_live(|live| {
        expect_proxy_protocol(live);
        live.limits.header_timeout = Duration::from_millis(200);
    });
    let mut cut_off = 0;
    for beginning in [&b""[..], b"PRO", b"PROXY TCP4 192.0.2.1", SIGNATURE_V2] {
        for client_closes in [false, true] {
            let mut connection = tracker.connect();
            connection.send(beginning);
            if client_closes {
                connection.finish_sending();
            }
            assert_eq!(connection.read_to_close(), b"");
            cut_off += 1;
            tracker.wait_refused("bad_proxy_header", cut_off);
        }
    }
}

#[test]
fn untrusted_senders_are_plain_connections_and_may_not_send_a_proxy_header() {
    let tracker = start_live(expect_proxy_protocol);
    let mut connection = connect_from(STRANGER, tracker.http_v4());
    connection.send(&request(1, "X-Forwarded-For: 192.0.2.7\r\n"));
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(tracker.last_event().ip, IpAddr::from(STRANGER));
    for header in [b"PROXY TCP4 192.0.2.1 10.0.0.1 5678 80\r\n".to_vec(), header_v2("192.0.2.1:5678")] {
        let mut connection = connect_from(STRANGER, tracker.http_v4());
        connection.send(&[header.as_slice(), &request(2, "")].concat());
        let reply = connection.read_reply();
        assert_eq!(reply.status(), 400);
        assert!(AnnounceReply::decode(&reply.body).failure_reason.is_some());
    }
    assert_eq!((tracker.events().len(), tracker.refused("bad_http")), (1, 2));
    assert_eq!(tracker.refused("bad_proxy_header"), 0);
}

#[test]
fn a_flood_of_one_client_behind_a_proxy_does_not_hurt_another() {
    let tracker = start_live(|live| {
        expect_proxy_protocol(live);
        (live.limits.requests_per_address_per_s, live.limits.request_burst_per_address) = (1, 5);
        live.limits.connections_per_address_max = 2;
    });
    let mut connections = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|ip| {
        let mut connection = tracker.connect();
        connection.send(format!("PROXY TCP4 {ip} 10.0.0.1 5678 80\r\n").as_bytes());
        connection
    });
    let target = leecher(1).target(&passkey(1));
    let replies: Vec<AnnounceReply> =
        (0..8).map(|_| AnnounceReply::decode(&connections[0].get(&target).body)).collect();
    assert_eq!(replies.iter().filter(|reply| reply.failure_reason.is_none()).count(), 5);
    assert_eq!(replies[7].retry_in, Some(RetryIn::Minutes(1)));
    for connection in &mut connections[1..] {
        assert_eq!(AnnounceReply::decode(&connection.get(&target).body).failure_reason, None);
    }
}

#[test]
fn forwarded_headers_are_read_in_every_form() {
    let tracker = believe_headers(&["x-forwarded-for", "forwarded"]);
    for (headers, ip) in [
        ("X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"),
        ("x-forwarded-for: 6.6.6.6, 192.0.2.2:4711 , 10.0.0.3\r\n", "192.0.2.2"),
        ("Forwarded: for=192.0.2.3\r\n", "192.0.2.3"),
        ("Forwarded: for=6.6.6.6, For=\"[2001:db8::4]:4711\";proto=https;by=10.0.0.1\r\n", "2001:db8::4"),
        ("forwarded: proto=http; FOR=192.0.2.5\r\nForwarded: for=10.0.0.9\r\n", "192.0.2.5"),
        // The first header of the list that is there counts, wherever it stands.
        ("Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 192.0.2.6\r\n", "192.0.2.6"),
        ("X-Real-Ip: 6.6.6.6\r\n", "127.0.0.1"),
    ] {
        assert_eq!(seen_at(&tracker, headers), ip, "{headers}");
    }
}

#[test]
fn a_header_of_the_operators_choice_is_read() {
    let tracker = believe_headers(&["cf-connecting-ip"]);
    assert_eq!(seen_at(&tracker, "CF-Connecting-IP: 2001:db8::9\r\n"), "2001:db8::9");
    assert_eq!(seen_at(&tracker, "X-Forwarded-For: 6.6.6.6\r\nCF-Connecting-IP: 192.0.2.9\r\n"), "192.0.2.9");
    assert_eq!(seen_at(&tracker, "X-Forwarded-For: 6.6.6.6\r\n"), "127.0.0.1", "not in the list");
}

#[test]
fn an_address_that_cannot_be_read_is_refused_and_counted() {
    let tracker = believe_headers(&["x-forwarded-for", "forwarded"]);
    let bad = [
        "X-Forwarded-For: unknown\r\n",
        "X-Forwarded-For:\r\n",
        "Forwarded: for=_hidden\r\n",
        "Forwarded: by=1\r\n",
    ];
    for headers in bad {
        let reply = ask_with(&tracker, headers);
        assert_eq!(reply.status(), 400, "{headers}");
        let reason = AnnounceReply::decode(&reply.body).failure_reason.expect("a reason");
        assert!(reason.contains("proxy"), "{reason}");
    }
    assert_eq!((tracker.refused("bad_forwarded_address"), tracker.events().len()), (4, 0));
}

#[test]
fn forwarded_headers_of_untrusted_senders_are_ignored() {
    let tracker = believe_headers(&["x-forwarded-for", "forwarded", "cf-connecting-ip"]);
    let forged = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\n";
    let mut connection = connect_from(STRANGER, tracker.http_v4());
    connection.send(&request(1, forged));
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(tracker.last_event().ip, IpAddr::from(STRANGER));
}

#[test]
fn ip_in_the_query_is_accepted_only_through_a_trusted_proxy() {
    let tracker = believe_headers(&["x-forwarded-for"]);
    let elsewhere = leecher(1).with_extra("&ip=192.0.2.7").target(&passkey(1));
    let ask = |mut connection: RawHttp, headers: &str| {
        connection.send(format!("GET {elsewhere} HTTP/1.1\r\n{headers}\r\n").as_bytes());
        assert_eq!(connection.read_reply().status(), 200);
        tracker.last_event().ip.to_string()
    };
    assert_eq!(ask(connect_from(STRANGER, tracker.http_v4()), ""), "127.0.0.2");
    assert_eq!(ask(tracker.connect(), ""), "192.0.2.7");
    assert_eq!(ask(RawHttp::connect(tracker.http_v6()), ""), "192.0.2.7");
}

/// A client behind a proxy is not trusted like the proxy.
#[test]
fn ip_in_the_query_of_a_client_behind_a_proxy_is_ignored() {
    let tracker = believe_headers(&["x-forwarded-for"]);
    let elsewhere = leecher(1).with_extra("&ip=198.51.100.1").target(&passkey(1));
    let mut connection = tracker.connect();
    connection.send(format!("GET {elsewhere} HTTP/1.1\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n").as_bytes());
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(tracker.last_event().ip.to_string(), "192.0.2.7");
}
