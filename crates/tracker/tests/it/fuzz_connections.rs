//! Any bytes in front of a connection, and any bytes on it: no panic, no state, and an end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use net::proxy_protocol::{HEADER_MAX, Parsed, parse};

use crate::support::*;

fn check_header(bytes: &[u8]) {
    if let Parsed::Complete(header) = parse(bytes) {
        assert!(header.length <= bytes.len() && header.length <= HEADER_MAX);
        assert_eq!(parse(&bytes[..header.length]), Parsed::Complete(header), "what follows does not matter");
        assert_ne!(parse(&bytes[..header.length - 1]), Parsed::Complete(header));
    }
}

#[test]
fn fuzz_proxy_header() {
    bolero::check!().with_test_time(Duration::from_secs(1)).for_each(|input: &[u8]| {
        check_header(input);
        for start in [
            &b"PROXY TCP4 "[..],
            b"PROXY TCP6 ::1 ",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x21",
        ] {
            check_header(&[start, input].concat());
        }
    });
}

/// Over a real connection: for any input the server replies in HTTP or not at all, closes, and keeps no connection
/// counted.
#[test]
fn fuzz_http_connection() {
    let tracker = start();
    let address = tracker.http_v4();
    bolero::check!().with_test_time(Duration::from_secs(2)).for_each(|input: &[u8]| {
        for start in [&b""[..], b"GET /", b"GET /announce?info_hash=", b"GET / HTTP/1.1\r\n"] {
            let mut connection = TcpStream::connect(address).unwrap();
            connection.set_read_timeout(Some(PATIENCE)).unwrap();
            // The server may hang up before all has been sent.
            let _ = connection.write_all(start).and_then(|()| connection.write_all(input));
            let _ = connection.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            if connection.read_to_end(&mut answer).is_ok() {
                assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "), "{answer:?}");
            }
        }
    });
    assert!(tracker.events().is_empty());
    tracker.announce(1, &leecher(1));
}
