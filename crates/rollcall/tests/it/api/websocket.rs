//! Where HTTP ends and a connection of the gateway begins, over plain sockets and TLS.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use testkit::{Authority, RawHttp, Server, eventually};

use crate::api::{PATIENCE, builder, metric, quoted};

pub const HANDSHAKE: &str = "GET /connection/websocket HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n\
                         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

pub fn token(server: &Server, user: u64) -> String {
    server.cli(&["token", &user.to_string()])["token"].as_str().unwrap().to_owned()
}

/// A text message of a client, with a mask of zeros.
fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let mut bytes = vec![0x81];
    match length {
        0..126 => bytes.push(0x80 | length as u8),
        _ => bytes.extend_from_slice(&[&[0x80 | 126][..], &length.to_be_bytes()].concat()),
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

pub fn connect(server: &Server, user: u64) -> Vec<u8> {
    frame(&json!({"id": 1, "connect": {"token": token(server, user), "data": {"device": "d"}}}).to_string())
}

/// The head of an answer to a request with these headers besides those of the handshake.
fn answer(server: &Server, headers: &str) -> String {
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(format!("{HANDSHAKE}{headers}connection: close\r\n\r\n").as_bytes());
    String::from_utf8_lossy(&connection.read_to_close()).into_owned()
}

/// Reads until this has come.
pub fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains(wanted) {
        match stream.read(&mut buffer).unwrap() {
            0 => panic!("it ended after {}", String::from_utf8_lossy(&heard)),
            count => heard.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn a_connection_outlives_every_timeout_of_http_and_what_it_sent_early_is_not_lost() {
    let server = builder().set("site.request_timeout_s", 1).set("limits.header_timeout_s", 1).start();
    let read = server.api(&["read"]);
    let mut stream = TcpStream::connect(server.site_addr()).unwrap();
    let handshake = format!("{HANDSHAKE}origin: http://localhost\r\n\r\n");
    std::io::Write::write_all(&mut stream, &[handshake.as_bytes(), &connect(&server, 7)].concat()).unwrap();
    let heard = read_until(&mut stream, "\"snapshot\"");
    assert!(heard.starts_with("HTTP/1.1 101 "), "{heard}");
    assert!(
        heard.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") && heard.contains("\"connect\":{\"client\":"),
        "{heard}"
    );
    assert_eq!(metric(&read, "rollcall_gateway_connections_open"), 1.0);
    // HTTP is done with it: its place there is free.
    eventually("its place to be free", PATIENCE, || {
        (metric(&read, "rollcall_site_connections_open") <= 1.0).then_some(())
    });
    // Connections that began later and sent only the beginning of a request have met every timeout meanwhile.
    for _ in 0..2 {
        let mut unfinished = RawHttp::connect(server.site_addr());
        unfinished.send(b"GET /healthz HTTP/1.1\r\n");
        unfinished.read_to_close();
    }
    let question = json!({"id": 2, "rpc": {"method": "devices.list"}}).to_string();
    std::io::Write::write_all(&mut stream, &frame(&question)).unwrap();
    read_until(&mut stream, "\"id\":2,\"rpc\":{\"data\":");
    drop(stream);
    eventually("the connection to be gone", PATIENCE, || {
        (metric(&read, "rollcall_gateway_connections_open") == 0.0).then_some(())
    });
}

#[test]
fn connections_work_over_tls() {
    let authority = Authority::new();
    authority.install();
    let server = builder()
        .set("site.tls_cert_file", quoted(&authority.certificate_path().display().to_string()))
        .set("site.tls_key_file", quoted(&authority.key_path().display().to_string()))
        .start();
    let mut connection = authority.connect(server.site_addr()).unwrap();
    // Signs itself out, so that the server ends the connection; that is the answer.
    let sign_out =
        json!({"id": 2, "rpc": {"method": "devices.sign_out", "data": {"device": "d"}}}).to_string();
    let all = [format!("{HANDSHAKE}\r\n").as_bytes(), &connect(&server, 7), &frame(&sign_out)].concat();
    connection.send(&all);
    let heard = String::from_utf8_lossy(&connection.read_to_close()).into_owned();
    assert!(heard.starts_with("HTTP/1.1 101 "), "{heard}");
    for wanted in ["\"connect\":{\"client\":", "force disconnect"] {
        assert!(heard.contains(wanted), "{wanted} in {heard}");
    }
}

#[test]
fn a_page_that_may_sign_in_may_connect_also_behind_a_proxy_that_asks_by_another_name() {
    let page = "x-forwarded-host: dash.example.com\r\norigin: https://dash.example.com\r\n";
    let trusting = builder().set("site.trusted_proxies", "[\"127.0.0.1/32\"]").start();
    let mut connection = TcpStream::connect(trusting.site_addr()).unwrap();
    connection.write_all(format!("{HANDSHAKE}{page}\r\n").as_bytes()).unwrap();
    let answered = read_until(&mut connection, "\r\n\r\n");
    assert!(answered.starts_with("HTTP/1.1 101 "), "{answered}");
    let other = answer(&trusting, &page.replace("//dash", "//evil"));
    assert!(other.starts_with("HTTP/1.1 403 "), "{other}");
    let refused = answer(&builder().start(), page);
    assert!(refused.starts_with("HTTP/1.1 403 "), "a stranger is not believed: {refused}");
}

#[test]
fn a_refused_connection_gets_a_reason() {
    let server = builder().set("gateway.allowed_origins", "[\"https://pt.example.com\"]").start();
    let refused = answer(&server, "origin: https://evil.example.com\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("gateway.allowed_origins"), "{refused}");
    let plain = server.anonymous_api().get("/connection/websocket");
    assert_eq!((plain.status(), plain.json()["code"].as_str()), (426, Some("not_a_websocket")));
    assert_eq!(plain.reply.header("upgrade"), Some("websocket"));
    let read = server.api(&["read"]);
    assert_eq!(metric(&read, "rollcall_gateway_refused_total{reason=\"origin\"}"), 1.0);
    assert_eq!(metric(&read, "rollcall_gateway_refused_total{reason=\"not_a_websocket\"}"), 1.0);
    let without = builder().roles("tracker,site,ledger,activity").start();
    let answered = answer(&without, "");
    assert!(answered.starts_with("HTTP/1.1 404 ") && answered.contains("role gateway"), "{answered}");
}
