//! Attacks: slow, long, forged and broken requests. Each is refused and counted, and affects no other client.

use testkit::{Api, RawHttp, Server, eventually, eventually_equal};

use crate::api::{PATIENCE, answered, builder, exchange, metric, problem};

/// Connections closed or refused for this reason.
fn refused(reader: &Api, reason: &str) -> f64 {
    metric(reader, &format!("rollcall_site_connections_refused_total{{reason=\"{reason}\"}}"))
}

/// The rest of a head, with which the connection ends.
const END: &str = "host: x\r\nconnection: close\r\n\r\n";

#[track_caller]
fn assert_lives(server: &Server) {
    assert_eq!(server.anonymous_api().get("/healthz").ok()["state"], "alive");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn a_slow_head_is_cut_off_and_counted() {
    let server = builder().set("limits.header_timeout_s", 1).start();
    let read = server.api(&["read"]);
    let mut silent = RawHttp::connect(server.site_addr());
    let mut slow = RawHttp::connect(server.site_addr());
    slow.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ");
    // A trickling request has no more time than a silent one.
    let mut dripping = RawHttp::connect(server.site_addr());
    dripping.send(b"GET /healthz HTTP/1.1\r\n");
    eventually("the connection to be cut off", PATIENCE, || dripping.try_send(b"x: y\r\n").err());
    assert!(slow.read_to_close().is_empty());
    assert!(silent.read_to_close().is_empty());
    eventually_equal(3.0, PATIENCE, || refused(&read, "slow_head"));
    eventually_equal(1.0, PATIENCE, || metric(&read, "rollcall_site_connections_open"));
    assert_lives(&server);
}

/// A client that sends requests and never reads is disconnected.
#[test]
fn an_answer_that_is_not_read_ends_its_connection() {
    let server = builder().set("site.request_timeout_s", 1).start();
    let read = server.api(&["read"]);
    let mut greedy = RawHttp::connect(server.site_addr());
    // Far more than fits the buffers of both systems.
    greedy.send("GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000).as_bytes());
    eventually_equal(1.0, PATIENCE, || refused(&read, "slow_reader"));
    eventually_equal(1.0, PATIENCE, || metric(&read, "rollcall_site_connections_open"));
}

/// A connection that was used and is kept for later is no attack.
#[test]
fn an_idle_connection_is_closed_and_releases_its_permit() {
    let server = builder().set("limits.header_timeout_s", 1).start();
    let read = server.api(&["read"]);
    let mut kept = RawHttp::connect(server.site_addr());
    assert_eq!(kept.get("/healthz").status(), 200);
    assert!(kept.read_to_close().is_empty());
    assert_eq!(refused(&read, "slow_head"), 0.0);
    let mut used = RawHttp::connect(server.site_addr());
    assert_eq!(used.get("/healthz").status(), 200);
    used.send(b"GET /");
    assert!(used.read_to_close().is_empty());
    eventually_equal(1.0, PATIENCE, || refused(&read, "slow_head"));
}

#[test]
fn a_long_head_is_refused_with_431() {
    let server = builder().start();
    let read = server.api(&["read"]);
    let long_value = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n{END}", "a".repeat(100_000));
    let many = "x: y\r\n".repeat(101);
    for request in [long_value, format!("GET /healthz HTTP/1.1\r\n{many}{END}")] {
        let mut connection = RawHttp::connect(server.site_addr());
        // The server need not read all of it.
        let _ = connection.try_send(request.as_bytes());
        let reply = String::from_utf8(connection.read_to_close()).unwrap();
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 431 "), "{reply}");
    }
    let uri = format!("GET /{} HTTP/1.1\r\n{END}", "a".repeat(7000));
    assert_eq!(exchange(server.site_addr(), uri.as_bytes()).status(), 404, "that is long, but not too long");
    eventually_equal(2.0, PATIENCE, || refused(&read, "head_too_large"));
    assert_lives(&server);
}

#[test]
fn what_is_not_http_is_refused_with_400() {
    let server = builder().start();
    let read = server.api(&["read"]);
    let mut count = 0.0;
    for head in [
        &b"GET /healthz HTTP/1.1\r\nx-a: b\x01c\r\n"[..],
        b"GET /healthz HTTP/1.1\r\nx-a: b\x00c\r\n",
        b"GET /healthz HTTP/1.1\r\nx-a: b\rinjected: c\r\n",
        b"GET /healthz HTTP/1.1\r\nx a: b\r\n",
        b"GET /healthz HTTP/1.1\r\nx-a : b\r\n",
        b"GET /healthz HTTP/1.1\r\n folded: b\r\n",
        b"GET /health\x00z HTTP/1.1\r\n",
        b"GET /a b HTTP/1.1\r\n",
        b"G@T /healthz HTTP/1.1\r\n",
        b"GET /healthz HTTP/3.0\r\n",
        b"nonsense\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ncontent-length: -1\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ncontent-length: 1e3\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\n",
        b"POST /api/v1/users HTTP/1.1\r\ntransfer-encoding: xchunked\r\n",
        b"POST /api/v1/users HTTP/1.0\r\ntransfer-encoding: chunked\r\n",
    ] {
        let mut connection = RawHttp::connect(server.site_addr());
        connection.send(head);
        let _ = connection.try_send(END.as_bytes());
        let reply = String::from_utf8(connection.read_to_close()).unwrap();
        let shown = String::from_utf8_lossy(head).into_owned();
        assert!(reply.starts_with("HTTP/1.1 400 "), "{shown:?}: {reply}");
        count += 1.0;
    }
    eventually_equal(count, PATIENCE, || refused(&read, "bad_http"));
    assert_lives(&server);
}

/// Where a body ends must not be a matter of opinion, or a second request hides in the first.
#[test]
fn nothing_is_smuggled_behind_a_body_with_two_lengths() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    let key = admin.key().unwrap();
    let hidden = format!("GET /api/v1/stats HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n");
    for lengths in [
        format!("content-length: {}\r\ntransfer-encoding: chunked", 5 + hidden.len()),
        format!("transfer-encoding: chunked\r\ncontent-length: {}", 5 + hidden.len()),
        "transfer-encoding: chunked\r\ncontent-length: 0".to_owned(),
    ] {
        let request = format!(
            "POST /api/v1/users/lookup HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n\
             {lengths}\r\n\r\n0\r\n\r\n{hidden}"
        );
        let mut connection = RawHttp::connect(server.site_addr());
        connection.send(request.as_bytes());
        let replies = String::from_utf8(connection.read_to_close()).unwrap();
        assert!(replies.starts_with("HTTP/1.1 400 "), "an empty body is no JSON: {replies}");
        assert_eq!(replies.matches("HTTP/1.1").count(), 1, "{replies}");
    }
    for chunks in [
        "xyz\r\nabc\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "fffffffffffffffff\r\na",
        "3\r\nabcdef\r\n0\r\n\r\n",
    ] {
        let request = format!(
            "POST /api/v1/users/lookup HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\n\r\n{chunks}"
        );
        let reply = exchange(server.site_addr(), request.as_bytes());
        assert_eq!(reply.status(), 400, "{chunks:?}");
    }
    assert_lives(&server);
}

#[test]
fn paths_that_climb_or_hide_lead_nowhere() {
    let server = builder().start();
    let (stranger, admin) = (server.anonymous_api(), server.api(&["admin"]));
    for target in [
        "/../etc/passwd",
        "/docs/../../etc/passwd",
        "/api/v1/../../metrics",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/docs/%2e%2e/metrics",
        "//api/v1/users",
        "/api//v1/users",
        "/api/v1/users/",
        "/API/V1/users",
        "/api\\v1\\users",
        "/%00",
        "/api/v1/users%00",
        "/healthz%20",
        "/healthz;x=y",
        "/%61pi/v1/users",
    ] {
        for api in [&stranger, &admin] {
            assert_eq!(problem(&api.get(target), 404), "unknown_path", "{target}");
        }
    }
    for target in
        ["/api/v1/users/%2e%2e", "/api/v1/users/1%00", "/api/v1/users/%ff", "/api/v1/torrents/..%2f..%2fx"]
    {
        assert_eq!(problem(&stranger.get(target), 401), "unauthorized", "{target}");
        assert_eq!(problem(&admin.get(target), 400), "bad_request", "{target}");
    }
    // A whole address instead of a path asks for the same, with the same rights.
    assert_eq!(stranger.get("http://elsewhere.example/healthz").status(), 200);
    assert_eq!(stranger.get("http://elsewhere.example/api/v1/users").status(), 401);
    for request in
        ["GET healthz HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "CONNECT elsewhere.example:443 HTTP/1.1\r\n"]
    {
        let status = exchange(server.site_addr(), format!("{request}{END}").as_bytes()).status();
        assert!((400..500).contains(&status), "{request}: {status}");
    }
    assert!(answered(&admin, "(none)", 404) >= 32.0);
    assert_lives(&server);
}

#[test]
fn old_http_is_spoken_and_its_connections_end() {
    let server = builder().start();
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(b"GET /healthz HTTP/1.0\r\n\r\n");
    let reply = connection.read_reply();
    assert_eq!((reply.status(), reply.status_line.split(' ').next()), (200, Some("HTTP/1.0")));
    assert!(connection.read_to_close().is_empty());
    // Requests behind each other are answered in their order.
    let mut connection = RawHttp::connect(server.site_addr());
    connection
        .send(format!("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /nothing HTTP/1.1\r\n{END}").as_bytes());
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(connection.read_reply().status(), 404);
}

#[test]
fn one_connection_too_many_is_turned_away() {
    let server = builder().set("site.connections_max", 5).start();
    let read = server.api(&["read"]);
    let open = || -> Vec<RawHttp> {
        (0..5)
            .map(|_| {
                let mut connection = RawHttp::connect(server.site_addr());
                assert_eq!(connection.get("/healthz").status(), 200);
                connection
            })
            .collect()
    };
    let held = eventually("room for five", PATIENCE, || std::panic::catch_unwind(open).ok());
    let mut extra = RawHttp::connect(server.site_addr());
    let reply = String::from_utf8(extra.read_to_close()).unwrap();
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    drop(held);
    eventually("room again", PATIENCE, || {
        let mut connection = RawHttp::try_connect(server.site_addr()).ok()?;
        connection.try_send(format!("GET /healthz HTTP/1.1\r\n{END}").as_bytes()).ok()?;
        connection.try_read_reply().ok().filter(|reply| reply.status() == 200)
    });
    let turned_away = eventually("room for a question", PATIENCE, || {
        std::panic::catch_unwind(|| refused(&read, "too_many_connections")).ok()
    });
    assert!(turned_away >= 1.0);
}

#[test]
fn values_that_are_echoed_cannot_break_out() {
    let server = builder().set("site.cors_origins", "[\"https://pt.example.com\"]").start();
    let (stranger, read) = (server.anonymous_api(), server.api(&["read"]));
    let evil = "https://pt.example.com.evil.example";
    let reply = stranger.send("GET", "/healthz", &[("origin", evil)], None);
    assert_eq!(reply.reply.header("access-control-allow-origin"), None);
    // Carriage returns in a query stay in the query.
    let reply = read.get("/api/v1/users?cursor=%0d%0aset-cookie:%20a=b");
    assert_eq!(problem(&reply, 400), "bad_request");
    assert_eq!(reply.reply.header("set-cookie"), None);
    let reply = read.get("/api/v1/users?%3Cscript%3E=1");
    assert_eq!(problem(&reply, 400), "bad_request");
    assert_eq!(reply.reply.header("x-content-type-options"), Some("nosniff"));
    let forwarded = read.send("GET", "/api/v1/stats", &[("x-forwarded-for", "not an address")], None);
    assert_eq!(forwarded.status(), 200, "the header of an untrusted client is ignored");
}
