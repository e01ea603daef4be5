//! Bodies that are too long, too slow, too deep, or not what was asked for.

use serde_json::json;
use testkit::{Api, ApiReply, RawHttp};

use crate::api::{answered, builder, metric, problem};

const LOOKUP: &str = "/api/v1/users/lookup";

fn post(api: &Api, content_type: &str, body: &[u8]) -> ApiReply {
    api.send("POST", LOOKUP, &[("content-type", content_type)], Some(body))
}

fn head(api: &Api, target: &str, length: &str) -> String {
    let key = api.key().unwrap_or("none");
    format!(
        "POST {target} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    )
}

#[test]
fn a_long_body_is_refused_with_413_and_a_slow_one_with_408() {
    let server = builder().set("site.request_timeout_s", 1).start();
    let admin = server.api(&["admin"]);
    let spaces = |count: usize| format!("{{\"passkeys\":[{}]}}", " ".repeat(count));
    assert_eq!(
        post(&admin, "application/json", spaces(1_000_000).as_bytes()).ok(),
        json!({ "items": [], "next": null })
    );
    // What is announced to be long is not waited for; what turns out to be long is not read to its end.
    for (length, body) in [
        ("content-length: 1048577", String::new()),
        ("transfer-encoding: chunked", format!("100001\r\n{}", " ".repeat(0x10_0001))),
    ] {
        for target in [LOOKUP, "/api/v1/users"] {
            let mut connection = RawHttp::connect(server.site_addr());
            connection.send(head(&admin, target, length).as_bytes());
            connection.send(body.as_bytes());
            let reply = ApiReply { reply: connection.read_reply() };
            assert_eq!(problem(&reply, 413), "too_large", "{length}");
        }
    }
    let mut slow = RawHttp::connect(server.site_addr());
    slow.send(head(&admin, "/api/v1/users", "content-length: 12").as_bytes());
    slow.send(b"{\"id\"");
    let reply = ApiReply { reply: slow.read_reply() };
    assert_eq!(problem(&reply, 408), "request_timeout");
    assert_eq!(problem(&admin.get("/api/v1/users/7"), 404), "unknown_user");
    assert_eq!((answered(&admin, LOOKUP, 413), answered(&admin, "/api/v1/users", 408)), (2.0, 1.0));
    assert_eq!(metric(&admin, "rollcall_site_timeouts_total"), 1.0);
    // Without a key no body is read.
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(head(&server.anonymous_api(), LOOKUP, "content-length: 100").as_bytes());
    assert_eq!(connection.read_reply().status(), 401);
}

#[test]
fn what_is_not_the_json_that_was_asked_for_is_refused() {
    let server = builder().start();
    let read = server.api(&["read"]);
    let good = br#"{"passkeys":[]}"#;
    assert_eq!(post(&read, "application/json", good).ok(), json!({ "items": [], "next": null }));
    assert_eq!(
        post(&read, "application/json; charset=utf-8", good).ok(),
        json!({ "items": [], "next": null })
    );
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "nonsense",
        "application/xml",
    ] {
        assert_eq!(problem(&post(&read, content_type, good), 415), "bad_body", "{content_type}");
    }
    assert_eq!(problem(&read.send("POST", LOOKUP, &[], Some(good)), 415), "bad_body");
    let deep = format!("{{\"passkeys\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = format!("{{\"passkeys\":[\"{}\"]}}", "a".repeat(500_000));
    for (body, status) in [
        (&b""[..], 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"{\"passkeys\":[],}", 400),
        (b"{\"passkeys\":[]} x", 400),
        (deep.as_bytes(), 422),
        (huge.as_bytes(), 400),
        (b"{\"passkeys\":[],\"passkeys\":[]}", 422),
        (b"{\"passkeys\":[1]}", 422),
        (b"{\"passkeys\":{}}", 422),
        (b"{\"passkeys\":[],\"more\":1}", 422),
        (b"null", 422),
    ] {
        let reply = post(&read, "application/json", body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        assert_eq!(reply.status(), status, "{shown}");
        problem(&reply, status);
        assert!(reply.reply.body.len() < 2000, "{shown}: what was sent is not sent back");
    }
    // Nesting where anything may stand goes no deeper than is safe.
    let said = format!("{{\"more\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!((400..500).contains(&post(&read, "application/json", said.as_bytes()).status()));
    assert_eq!(read.get("/healthz").status(), 200);
}
