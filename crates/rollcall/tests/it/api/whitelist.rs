//! The whitelist (W2): `/api/v1/whitelist`.

use serde_json::{Value as Json, json};
use testkit::{Api, ApiReply, RawHttp, RedisServer, Server, eventually_equal};

use crate::api::{PATIENCE, answered, builder, detail, problem, quoted};

const PATH: &str = "/api/v1/whitelist";

fn passkey(number: u64) -> String {
    format!("{number:032x}")
}

fn count(api: &Api) -> u64 {
    api.get(PATH).ok()["count"].as_u64().unwrap()
}

fn are_listed(api: &Api, passkeys: &[String]) -> Vec<bool> {
    let checked = api.post("/api/v1/whitelist/check", &json!({ "passkeys": passkeys })).ok();
    checked["listed"].as_array().unwrap().iter().map(|one| one.as_bool().unwrap()).collect()
}

fn upload(api: &Api, query: &str, text: &str) -> ApiReply {
    api.send("PUT", &format!("{PATH}{query}"), &[("content-type", "text/plain")], Some(text.as_bytes()))
}

/// The head of an upload that is sent by hand.
fn head(api: &Api, length: &str) -> String {
    let key = api.key().unwrap();
    format!("PUT {PATH} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{length}\r\n\r\n")
}

/// The same on Redis and embedded.
fn works(server: &Server) {
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    assert_eq!(count(&read), 0);
    let change = |what: &str, passkeys: Json| {
        admin.post(&format!("{PATH}/{what}"), &json!({ "passkeys": passkeys })).ok()["changed"].clone()
    };
    assert_eq!(change("add", json!([passkey(1), passkey(2), passkey(2), passkey(0xABC)])), 3);
    assert_eq!(change("add", json!([passkey(1).to_uppercase(), passkey(3)])), 1);
    assert_eq!(change("remove", json!([passkey(2), passkey(9)])), 1);
    assert_eq!(are_listed(&read, &[passkey(1), passkey(2), passkey(0xabc)]), [true, false, true]);
    assert_eq!(count(&read), 3);

    // A refresh replaces all of it at once; one step back is kept.
    let undone = admin.post("/api/v1/whitelist/undo", &json!({}));
    assert_eq!(problem(&undone, 409), "nothing_to_undo");
    let text: String = (10..5010).map(|number| passkey(number) + "\n").collect();
    let text = format!("# of the site\r\n\r\n{}\r\n{text}", passkey(3).to_uppercase());
    assert_eq!(upload(&admin, "", &text).ok(), json!({ "before": 3, "after": 5001 }));
    assert_eq!(are_listed(&read, &[passkey(1), passkey(3), passkey(5009)]), [false, true, true]);

    for (text, line) in [(format!("{text}no passkey\n"), "5004"), ("\n\nxyz".to_owned(), "3")] {
        let refused = upload(&admin, "", &text);
        assert_eq!(problem(&refused, 400), "bad_request");
        assert!(detail(&refused).contains(&format!("line {line}")), "{}", detail(&refused));
    }
    for text in ["", "# empty\n\n"] {
        assert_eq!(problem(&upload(&admin, "", text), 400), "bad_request");
    }
    assert_eq!(count(&read), 5001, "nothing of it has changed anything");
    assert_eq!(upload(&admin, "?allow_empty=true", "").ok(), json!({ "before": 5001, "after": 0 }));
    let undone = admin.post("/api/v1/whitelist/undo", &json!({})).ok();
    assert_eq!(undone, json!({ "before": 0, "after": 5001 }));
    assert_eq!(count(&read), 5001);
    for (what, said) in [
        ("add", json!({ "passkeys": [] })),
        ("add", json!({ "passkeys": vec![passkey(1); 10_001] })),
        ("remove", json!({ "passkeys": ["short"] })),
        ("check", json!({ "passkeys": [passkey(1), "nonsense!"] })),
    ] {
        let refused = admin.post(&format!("{PATH}/{what}"), &said);
        assert_eq!(problem(&refused, 400), "bad_request", "{what}");
    }
    assert_eq!(problem(&upload(&admin, "?allow_empty=perhaps", &text), 400), "bad_request");
    assert_eq!(problem(&upload(&admin, "?nonsense=1", &text), 400), "bad_request");
    an_upload_that_breaks_off_changes_nothing(server, &admin);
}

fn an_upload_that_breaks_off_changes_nothing(server: &Server, admin: &Api) {
    let ended = answered(admin, PATH, 400);
    for (length, body) in [
        ("content-length: 100000", passkey(1) + "\n"),
        ("transfer-encoding: chunked", format!("21\r\n{}\n\r\n", passkey(1))),
        ("transfer-encoding: chunked", format!("21\r\n{}\n\r\n21\r\nabc", passkey(1))),
    ] {
        let mut connection = RawHttp::connect(server.site_addr());
        connection.send(head(admin, length).as_bytes());
        connection.send(body.as_bytes());
        drop(connection);
    }
    // The client is gone, but the failure is in the audit trail.
    eventually_equal(3, PATIENCE, || {
        let records = admin.get("/api/v1/audit?action=passkey.refresh&limit=1000").ok();
        let is_it = |record: &&Json| record["details"].to_string().contains("incomplete");
        records["items"].as_array().unwrap().iter().filter(is_it).count()
    });
    assert_eq!(count(admin), 5001);
    eventually_equal(ended + 3.0, PATIENCE, || answered(admin, PATH, 400));
    // A chunked upload that ends properly works.
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(head(admin, "transfer-encoding: chunked").as_bytes());
    for number in 1..=3 {
        connection.send(format!("11\r\n{}\r\n", &passkey(number)[..17]).as_bytes());
        connection.send(format!("10\r\n{}\n\r\n", &passkey(number)[17..]).as_bytes());
    }
    connection.send(b"0\r\n\r\n");
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(count(admin), 3);
}

#[test]
fn w2_the_whitelist_is_kept_over_the_api_embedded() {
    works(&builder().start());
}

#[test]
fn w2_the_whitelist_is_kept_over_the_api_on_redis() {
    let redis = RedisServer::start();
    let server = builder().set("redis.url", quoted(&redis.url())).start();
    works(&server);
    assert_eq!(redis.cli(&["SCARD", "pt:passkeys"]), "3");
    assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys", &passkey(2)]), "1");
    redis.cli(&["SADD", "pt:passkeys", &passkey(77)]);
    assert_eq!(are_listed(&server.api(&["read"]), &[passkey(77)]), [true], "written by another program");
}

#[test]
fn an_upload_that_is_too_long_is_refused_and_changes_nothing() {
    let server = builder().set("site.upload_mib_max", 1).set("site.request_timeout_s", 1).start();
    let admin = server.api(&["admin"]);
    admin.post("/api/v1/whitelist/add", &json!({ "passkeys": [passkey(1)] })).ok();
    let mut connection = RawHttp::connect(server.site_addr());
    // A megabyte and a byte, and no end: what is refused is not read any further.
    connection.send(head(&admin, "transfer-encoding: chunked").as_bytes());
    connection.send(b"100001\r\n");
    connection.send(&vec![b'\n'; (1 << 20) + 1]);
    let reply = ApiReply { reply: connection.read_reply() };
    assert_eq!(problem(&reply, 413), "too_large");
    assert!(detail(&reply).contains("upload_mib_max"));
    // Refused by its Content-Length before a byte of it is read.
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(head(&admin, "content-length: 1048577").as_bytes());
    assert_eq!(connection.read_reply().status(), 413);
    // One that pauses for longer than an answer may take is given up.
    let mut connection = RawHttp::connect(server.site_addr());
    connection.send(head(&admin, "content-length: 1000").as_bytes());
    connection.send(passkey(2).as_bytes());
    let reply = ApiReply { reply: connection.read_reply() };
    assert_eq!(problem(&reply, 408), "request_timeout");
    assert_eq!(count(&admin), 1);
    assert_eq!((answered(&admin, PATH, 413), answered(&admin, PATH, 408)), (2.0, 1.0));
}
