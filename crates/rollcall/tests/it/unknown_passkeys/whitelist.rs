//! UnknownPasskeys on the whitelist, in Redis and in the database.

use serde_json::json;
use testkit::{Family, RedisServer, RetryIn, eventually};

use crate::unknown_passkeys::{
    EXTERNAL_ID, PATIENCE, TORRENT, announce, builder, cannot_be_checked, is_unknown, leecher, leechers, on,
    refusal, start, stranger, wait_uploaded,
};

#[test]
fn w4_a_whitelisted_passkey_announces_over_http_and_udp_and_gets_an_account() {
    let redis = RedisServer::start();
    let (server, watcher) = start(on(&redis));
    redis.cli(&["SADD", "pt:passkeys", &stranger(1).to_string(), &stranger(2).to_string()]);
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    server
        .udp(Family::V6)
        .announce(&leecher(2), &format!("/announce/{}", stranger(2)))
        .expect("the reply comes once the whitelist was asked");
    assert_eq!(leechers(&server, &watcher), 2);
    assert_eq!(server.scrape(&stranger(2), &TORRENT).incomplete, 2, "they may scrape");
    let reply = server.announce(Family::V4, &stranger(1), &leecher(1).with_totals(5000, 0, 10));
    assert_eq!(reply.failure_reason, None);
    wait_uploaded(&server, EXTERNAL_ID, "5000");
    let users = server.cli(&["user", "list"]);
    let external: Vec<_> = users["users"].as_array().unwrap().iter().map(|user| &user["external"]).collect();
    assert_eq!(external, [&json!(false), &json!(true), &json!(true)]);
}

#[test]
fn w4_an_unlisted_passkey_is_refused_over_http_and_udp() {
    let (server, _) = start(builder());
    assert!(is_unknown(&server, &stranger(1), 1));
    let refused = server.udp(Family::V4).announce(&leecher(1), &format!("/{}/announce", stranger(2)));
    assert!(refused.unwrap_err().contains("unknown passkey"));
    let scrape = server.try_scrape(&stranger(3), &TORRENT).unwrap_err();
    assert!(scrape.contains("unknown passkey"), "{scrape}");
}

#[test]
fn requests_behind_one_with_an_unknown_passkey_are_answered_in_order() {
    let (server, watcher) = start(builder());
    server.cli(&["passkey", "add", &stranger(1).to_string()]);
    let mut connection = server.http(Family::V4);
    let mut bytes = Vec::new();
    for (passkey, client) in [(watcher, 1), (stranger(1), 2), (stranger(9), 3), (watcher, 4)] {
        let target = leecher(client).target(&passkey);
        bytes.extend_from_slice(format!("GET {target} HTTP/1.1\r\nHost: tracker\r\n\r\n").as_bytes());
    }
    connection.send(&bytes);
    let bodies: Vec<String> =
        (0..4).map(|_| String::from_utf8_lossy(&connection.read_reply().body).into_owned()).collect();
    let refused: Vec<bool> = bodies.iter().map(|body| body.contains("failure reason")).collect();
    assert_eq!(refused, [false, false, true, false], "{bodies:?}");
}

#[test]
fn w2_a_removal_evicts_an_external_users_peers_within_a_second() {
    let (server, watcher) = start(builder());
    let listed = stranger(1).to_string();
    server.cli(&["passkey", "add", &listed]);
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    assert_eq!(leechers(&server, &watcher), 1);
    server.cli(&["passkey", "remove", &listed]);
    eventually("its peers to go", PATIENCE, || (leechers(&server, &watcher) == 0).then_some(()));
    assert!(is_unknown(&server, &stranger(1), 1));
    server.cli(&["passkey", "add", &listed]);
    eventually("the stranger to be let in again", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
    assert_eq!(
        server.cli(&["user", "show", &EXTERNAL_ID.to_string()])["passkey"],
        json!(listed),
        "the same account"
    );
}

#[test]
fn w2_a_refresh_evicts_unlisted_users_on_every_tracker() {
    let redis = RedisServer::start();
    let (server, watcher) = start(on(&redis));
    for number in 1..=3 {
        redis.cli(&["SADD", "pt:passkeys", &stranger(number).to_string()]);
        assert_eq!(refusal(&server, &stranger(number), number as u32), None);
    }
    let list = server.data_folder().join("list");
    std::fs::write(&list, format!("{}\n", stranger(2))).unwrap();
    server.cli(&["passkey", "refresh", list.to_str().unwrap()]);
    eventually("the others to go", PATIENCE, || (leechers(&server, &watcher) == 1).then_some(()));
    assert!(is_unknown(&server, &stranger(1), 1));
    assert_eq!(refusal(&server, &stranger(2), 2), None);
}

#[test]
fn w2_a_passkey_added_after_a_refusal_works_within_seconds_and_its_client_comes_back_soon() {
    let redis = RedisServer::start();
    let (server, _) = start(on(&redis));
    redis.cli(&["SADD", "pt:passkeys", &stranger(9).to_string()]);
    let refused = announce(&server, &stranger(1), 1);
    assert!(refused.failure_reason.unwrap().contains("unknown passkey"));
    assert_eq!((refused.retry_in, refused.interval), (Some(RetryIn::Minutes(1)), Some(60)));
    redis.cli(&["SADD", "pt:passkeys", &stranger(1).to_string()]);
    eventually("the addition to work", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
}

#[test]
fn w2_the_refresh_of_the_document_refuses_no_member() {
    let redis = RedisServer::start();
    let (server, watcher) = start(on(&redis));
    for number in 1..=3 {
        redis.cli(&["SADD", "pt:passkeys", &stranger(number).to_string()]);
        redis.cli(&["SADD", "pt:passkeys:new", &stranger(number).to_string()]);
    }
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    redis.cli(&["RENAME", "pt:passkeys", "pt:passkeys:old"]);
    // One external user is verified again, another for the first time.
    redis.cli(&["PUBLISH", "t:ch:user", &stranger(1).to_string()]);
    for _ in 0..20 {
        assert_eq!(refusal(&server, &stranger(1), 1), None);
    }
    assert!(cannot_be_checked(&server, &stranger(2), 2));
    redis.cli(&["RENAME", "pt:passkeys:new", "pt:passkeys"]);
    assert_eq!(refusal(&server, &stranger(2), 2), None, "no refusal was remembered");
    assert_eq!(refusal(&server, &stranger(3), 3), None);
    assert_eq!(leechers(&server, &watcher), 3);
}

#[test]
fn w4_a_removal_in_redis_itself_works_at_once_when_the_site_publishes_it() {
    let redis = RedisServer::start();
    let (server, watcher) = start(on(&redis));
    redis.cli(&["SADD", "pt:passkeys", &stranger(1).to_string(), &stranger(2).to_string()]);
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    redis.cli(&["SREM", "pt:passkeys", &stranger(1).to_string()]);
    redis.cli(&["PUBLISH", "t:ch:user", &stranger(1).to_string()]);
    eventually("the removal to work", PATIENCE, || is_unknown(&server, &stranger(1), 1).then_some(()));
    eventually("its peers to go", PATIENCE, || (leechers(&server, &watcher) == 0).then_some(()));
    redis.cli(&["SADD", "pt:passkeys", &stranger(1).to_string()]);
    eventually("the addition to work", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
}

#[test]
fn an_external_user_who_is_added_as_a_user_keeps_the_account() {
    let (server, _) = start(builder());
    let passkey = stranger(1).to_string();
    server.cli(&["passkey", "add", &passkey]);
    let reply = server.announce(Family::V4, &stranger(1), &leecher(1).with_totals(0, 0, 10));
    assert_eq!(reply.failure_reason, None);
    server.announce(Family::V4, &stranger(1), &leecher(1).with_totals(700, 0, 10));
    wait_uploaded(&server, EXTERNAL_ID, "700");
    let refused = server.try_cli(&["user", "add", "--id", "5", "--passkey", &passkey]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains(&format!("--id {EXTERNAL_ID}")), "{said}");
    let own = server.cli(&["user", "add", "--id", &EXTERNAL_ID.to_string(), "--passkey", &passkey]);
    assert_eq!((&own["id"], &own["external"]), (&json!(EXTERNAL_ID), &json!(false)));
    server.cli(&["passkey", "remove", &passkey]);
    assert_eq!(server.cli(&["user", "show", &EXTERNAL_ID.to_string()])["uploaded"], "700");
    eventually("the user to need no whitelist", PATIENCE, || {
        announce(&server, &stranger(1), 1).failure_reason.is_none().then_some(())
    });
}

#[test]
fn w2_passkey_check_uses_the_whitelist_for_external_users() {
    let (server, _) = start(builder());
    let passkey = stranger(1).to_string();
    server.cli(&["passkey", "add", &passkey]);
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    assert_eq!(server.cli(&["passkey", "check", &passkey])["valid"], true);
    server.cli(&["passkey", "remove", &passkey]);
    let checked = server.try_cli(&["passkey", "check", &passkey]);
    assert_eq!(checked.status.code(), Some(1), "an account alone does not admit its passkey");
}
