//! Disabled users are not present: no connection, no heartbeat, no page of their own.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use testkit::{ApiReply, Server, ServerBuilder, eventually};

use crate::api::websocket::{HANDSHAKE, connect, read_until, token};
use crate::api::{PATIENCE, builder, problem, quoted};

/// The body of the close frame: 3507, with which SDKs do not reconnect.
const CLOSED: &[u8] = b"\x0d\xb3permission denied";

fn with_secret() -> ServerBuilder {
    builder().set("gateway.token_hmac_secret", quoted("a secret that all gateways share"))
}

/// A connection on which `connect` has been sent.
fn open(server: &Server, user: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.site_addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let handshake = format!("{HANDSHAKE}\r\n");
    stream.write_all(&[handshake.as_bytes(), &connect(server, user)].concat()).unwrap();
    stream
}

/// A connection that has its snapshot.
fn open_and_greeted(server: &Server, user: u64) -> TcpStream {
    let mut stream = open(server, user);
    read_until(&mut stream, "\"snapshot\"");
    stream
}

/// Waits for the end of a connection, and asserts that it was closed permanently.
#[track_caller]
fn assert_closed_for_good(mut stream: TcpStream) {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let is_closed = rest.windows(CLOSED.len()).any(|part| part == CLOSED);
    assert!(is_closed, "{}", String::from_utf8_lossy(&rest));
}

fn as_person(server: &Server, token: &str, (method, target): (&str, &str)) -> ApiReply {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = (method == "POST").then_some(br#"{"device":"phone-1"}"#.as_slice());
    server.anonymous_api().send(method, target, &headers, body)
}

const ME: (&str, &str) = ("GET", "/api/v1/me");
const HEARTBEAT: (&str, &str) = ("POST", "/api/v1/presence/heartbeat");

/// Asks until the answer has this status: a change of a user takes effect within a second.
#[track_caller]
fn until_status(server: &Server, token: &str, asked: (&str, &str), status: u16) -> ApiReply {
    eventually(&format!("{status} for {asked:?}"), PATIENCE, || {
        Some(as_person(server, token, asked)).filter(|reply| reply.status() == status)
    })
}

#[test]
fn a_disabled_user_gets_no_connection_no_heartbeat_and_no_page() {
    let server = builder().start();
    server.add_user(7);
    let token = token(&server, 7);
    as_person(&server, &token, HEARTBEAT).ok();
    server.cli(&["user", "disable", "7"]);
    let refused = until_status(&server, &token, ME, 403);
    assert_eq!(problem(&refused, 403), "user_disabled");
    assert_eq!(problem(&until_status(&server, &token, HEARTBEAT, 403), 403), "user_disabled");
    assert_closed_for_good(open(&server, 7));
    let read = server.api(&["read"]);
    eventually("the heartbeats from before to count no more", PATIENCE, || {
        (read.get("/api/v1/presence/7").ok()["status"] == "offline").then_some(())
    });
    // A person without a tracker account is served as before.
    open_and_greeted(&server, 8);
    server.cli(&["user", "enable", "7"]);
    until_status(&server, &token, ME, 200);
    open_and_greeted(&server, 7);
}

#[test]
fn a_connected_user_who_is_disabled_or_removed_is_disconnected_at_every_gateway() {
    let one = with_secret().start();
    let file = one.data_folder().join("rollcall.db");
    let database = format!("sqlite://{}", file.display());
    let other = with_secret().set("database.url", quoted(&database)).roles("tracker,gateway,site").start();
    let admin = one.api(&["admin"]);
    let sql = || crate::api::sqlite(&one, "UPDATE users SET enabled = 0 WHERE id = 3");
    let command = |args: &[&str]| drop(one.cli(args));
    let ways: [(u64, &dyn Fn()); 4] = [
        (1, &|| command(&["user", "disable", "1"])),
        (2, &|| assert_eq!(admin.json("PATCH", "/api/v1/users/2", &json!({"enabled": false})).status(), 200)),
        (3, &sql),
        (4, &|| command(&["user", "remove", "4"])),
    ];
    for (user, disable) in ways {
        one.add_user(user);
        let connections = [&one, &other].map(|server| open_and_greeted(server, user));
        disable();
        connections.into_iter().for_each(assert_closed_for_good);
    }
}
