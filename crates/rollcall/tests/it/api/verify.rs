//! `GET /passkey/verify` (W3, W6).

use serde_json::{Value as Json, json};
use testkit::{Api, RedisServer, eventually};

use crate::api::{PATIENCE, builder, items, metric, problem, quoted};

const TRACKER_KEY: &str = "the key of another tracker";
const USER: &str = "0123456789abcdef0123456789abcdef";
const LISTED: &str = "abcdef0123456789abcdef0123456789";
const UNKNOWN: &str = "ffffffffffffffffffffffffffffffff";

fn valid(api: &Api, passkey: &str) -> Json {
    let reply = api.get(&format!("/passkey/verify?passkey={passkey}"));
    assert_eq!(reply.reply.header("content-type"), Some("application/json"));
    reply.ok()
}

#[test]
fn w3_the_whitelist_is_asked_then_the_database() {
    let redis = RedisServer::start();
    let server = builder()
        .set("redis.url", quoted(&redis.url()))
        .set("site.tracker_api_key", quoted(TRACKER_KEY))
        .set("redis.response_timeout_ms", 500)
        .start();
    let (tracker, admin) = (server.anonymous_api().with_key(TRACKER_KEY), server.api(&["admin"]));
    admin.post("/api/v1/users", &json!({ "id": 1, "passkey": USER })).ok();
    redis.cli(&["SADD", "pt:passkeys", LISTED]);

    assert_eq!(valid(&tracker, USER), json!({ "valid": true }));
    assert_eq!(valid(&tracker, &USER.to_uppercase()), json!({ "valid": true }), "W1");
    assert_eq!(valid(&tracker, LISTED), json!({ "valid": true }));
    assert_eq!(valid(&tracker, UNKNOWN), json!({ "valid": false }));
    assert_eq!(valid(&server.api(&["verify"]), UNKNOWN), json!({ "valid": false }));
    admin.json("PATCH", "/api/v1/users/1", &json!({ "enabled": false })).ok();
    assert_eq!(valid(&tracker, USER), json!({ "valid": false }), "who is shut out is shut out");
    redis.cli(&["SADD", "pt:passkeys", USER]);
    assert_eq!(valid(&tracker, USER), json!({ "valid": false }), "also if a list still has them");
    admin.json("PATCH", "/api/v1/users/1", &json!({ "enabled": true })).ok();
    assert_eq!(valid(&tracker, USER), json!({ "valid": true }));

    assert_eq!(server.anonymous_api().get(&format!("/passkey/verify?passkey={USER}")).status(), 401);
    assert_eq!(server.api(&["read"]).get(&format!("/passkey/verify?passkey={USER}")).status(), 403);
    let wrong = ["", "?passkey=", "?passkey=short", "?passkey=0123456789abcdeg", "?Passkey=0123456789abcdef"];
    for query in wrong.map(str::to_owned).into_iter().chain([
        format!("?passkey={}", "a".repeat(65)),
        format!("?passkey={USER}&passkey={UNKNOWN}"),
        format!("?passkey={USER}%0a"),
        format!("?passkey=%20{USER}"),
    ]) {
        assert_eq!(problem(&tracker.get(&format!("/passkey/verify{query}")), 400), "bad_request", "{query}");
    }
    assert_eq!(tracker.post(&format!("/passkey/verify?passkey={USER}"), &json!({})).status(), 405);

    let count =
        |answer: &str| metric(&admin, &format!("rollcall_site_verify_calls_total{{answer=\"{answer}\"}}"));
    assert_eq!((count("valid"), count("invalid")), (4.0, 4.0));
    for _ in 8..1001 {
        valid(&tracker, UNKNOWN);
    }
    let records = admin.get("/api/v1/audit?action=passkey.verify").ok();
    assert_eq!(items(&records).len(), 2, "W6: the first and the thousand-and-first call: {records}");
    assert_eq!(items(&records)[1]["actorId"], "key:tracker_api_key");
    assert!(!records.to_string().contains(USER), "{records}");

    // While Redis is unreachable, a positive result of the database counts; a negative one does not, because Redis
    // might have the passkey.
    drop(redis);
    assert_eq!(valid(&tracker, USER), json!({ "valid": true }));
    let unknown = eventually("an answer without Redis", PATIENCE, || {
        Some(tracker.get(&format!("/passkey/verify?passkey={UNKNOWN}")))
    });
    assert_eq!(problem(&unknown, 503), "unavailable");
    assert!(unknown.reply.header("retry-after").is_some());
}
