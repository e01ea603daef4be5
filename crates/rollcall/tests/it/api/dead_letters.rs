//! Dead letters and failed entries over the API (J7), written by another program.

use domain::Passkey;
use domain::clock::{Clock, SystemClock};
use serde_json::{Value as Json, json};
use testkit::{Api, RedisServer, Server, eventually, eventually_equal};

use crate::api::{PATIENCE, builder, info_hash, items, problem, quoted, walk};

const UNKNOWN: &str = "feedfacefeedface";

/// Writes an entry as another producer does; `du` is as it is given.
fn write(redis: &RedisServer, passkey: &str, du: &str) {
    let (hash, now) = (info_hash(1), SystemClock.now().0);
    redis.cli_lines(&format!(
        "XADD tracker:traffic * passkey {passkey} infohash {hash} peer_id {} port 6000 ip 192.0.2.7 af IPv4 du {du} \
         dd 3 left 0 event none ts {now} dt 31536000 interval 1800 min_interval 900\n",
        "2d".repeat(20)
    ));
}

fn start(redis: &RedisServer, retry_delay_s: u32) -> (Server, Api, Api, Passkey) {
    let server = builder()
        .set("redis.url", quoted(&redis.url()))
        .set("journal.retry_delay_s", retry_delay_s)
        .set("limits.peer_rate_max_mbit_per_s", 10_000_000)
        .set("limits.user_rate_max_mbit_per_s", 10_000_000)
        .start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    crate::api::add_torrent(&server, &admin, &passkey, 1);
    (server, read, admin, passkey)
}

fn lane(api: &Api, name: &str) -> u64 {
    api.get("/api/v1/journal").ok()[name].as_u64().unwrap()
}

#[test]
fn j7_dead_letters_are_listed_shown_replayed_and_dropped() {
    let redis = RedisServer::start();
    let (server, read, admin, _) = start(&redis, 3600);
    for _ in 0..3 {
        write(&redis, UNKNOWN, "1000");
    }
    write(&redis, UNKNOWN, "minus-one");
    eventually_equal(4, PATIENCE, || lane(&read, "dlq"));
    let letters = walk(&read, "/api/v1/dead-letters/dlq", 3);
    assert_eq!(letters.len(), 4);
    let id = |letter: &Json| letter["id"].as_str().unwrap().to_owned();
    for letter in &letters {
        assert_eq!((&letter["group"], &letter["retry"]), (&"ztorrent".into(), &0.into()), "{letter}");
        assert!(letter["due_at"].as_u64() > letter["failed_at"].as_u64(), "{letter}");
        assert!(!letter.to_string().contains(UNKNOWN), "the passkey is shortened: {letter}");
        assert!(!letter.to_string().contains("192.0.2.7"), "an address is for admins: {letter}");
        let path = format!("/api/v1/dead-letters/dlq/{}", id(letter));
        assert_eq!(&read.get(&path).ok(), letter);
        assert_eq!(admin.get(&path).ok()["fields"]["ip"], "192.0.2.7");
    }
    let broken = letters.iter().find(|letter| letter["fields"]["du"] == "minus-one").unwrap();
    assert!(broken["reason"].as_str().unwrap().contains("du: expected a whole number"), "{broken}");
    let post = |what: &str, said: Json| admin.post(&format!("/api/v1/dead-letters/dlq/{what}"), &said);
    assert_eq!(post("drop", json!({ "ids": [id(broken)] })).ok(), json!({ "count": 1 }));
    assert_eq!(
        post("drop", json!({ "ids": [id(broken)] })).ok(),
        json!({ "count": 0 }),
        "it is gone already"
    );
    let gone = read.get(&format!("/api/v1/dead-letters/dlq/{}", id(broken)));
    assert_eq!(problem(&gone, 404), "unknown_dead_letter");

    // The user is added; one entry is replayed, then all.
    admin.post("/api/v1/users", &json!({ "id": 900, "passkey": UNKNOWN })).ok();
    let passkey = UNKNOWN.parse().unwrap();
    eventually("the user to be known", PATIENCE, || server.try_scrape(&passkey, &info_hash(1)).ok());
    let first = letters.iter().find(|letter| letter["fields"]["du"] == "1000").unwrap();
    let uploaded = || read.get("/api/v1/users/900").ok()["figures"]["uploaded"].clone();
    assert_eq!(post("replay", json!({ "ids": [id(first)] })).ok(), json!({ "count": 1 }));
    eventually_equal(Json::from("1000"), PATIENCE, uploaded);
    assert_eq!(post("replay", json!({ "all": true })).ok(), json!({ "count": 2 }));
    eventually_equal(Json::from("3000"), PATIENCE, uploaded);
    eventually_equal(0, PATIENCE, || lane(&read, "dlq"));

    for said in [
        json!({}),
        json!({ "all": true, "ids": ["1-1"] }),
        json!({ "ids": ["nonsense"] }),
        json!({ "ids": vec!["1-1"; 1001] }),
    ] {
        assert_eq!(problem(&post("replay", said.clone()), 400), "bad_request");
        assert_eq!(problem(&post("drop", said), 400), "bad_request");
    }
    assert_eq!(problem(&read.get("/api/v1/dead-letters/dlq/nonsense"), 400), "bad_request");
    assert_eq!(
        problem(&admin.post("/api/v1/dead-letters/risks/drop", &json!({ "all": true })), 404),
        "unknown_lane"
    );
}

#[test]
fn j6_entries_that_were_given_up_are_listed_and_dropped() {
    let redis = RedisServer::start();
    let (_server, read, admin, _) = start(&redis, 0);
    write(&redis, UNKNOWN, "1000");
    write(&redis, UNKNOWN, "minus-one");
    eventually_equal((0, 2), PATIENCE, || (lane(&read, "dlq"), lane(&read, "failed")));
    let failed = read.get("/api/v1/dead-letters/failed").ok();
    assert!(items(&failed).iter().all(|letter| letter["retry"] == 3), "{failed}");
    assert_eq!(
        admin.post("/api/v1/dead-letters/failed/drop", &json!({ "all": true })).ok(),
        json!({ "count": 2 })
    );
    assert_eq!(lane(&read, "failed"), 0);
}

#[test]
fn l2_amounts_beyond_64_bits_are_exact() {
    let redis = RedisServer::start();
    let (server, read, _admin, passkey) = start(&redis, 3600);
    write(&redis, &passkey.to_string(), "7");
    eventually_equal(Json::from("7"), PATIENCE, || {
        read.get("/api/v1/users/1").ok()["figures"]["uploaded"].clone()
    });
    // What years of uploading come to.
    let before = 7 * u128::from(u64::MAX);
    for table in ["ledger_users", "ledger_torrents", "ledger_accounts"] {
        crate::api::sqlite(&server, &format!("UPDATE {table} SET uploaded = '{before}'"));
    }
    write(&redis, &passkey.to_string(), "7");
    let expected = (before + 7).to_string();
    eventually_equal(Json::from(expected.clone()), PATIENCE, || {
        read.get("/api/v1/users/1").ok()["figures"]["uploaded"].clone()
    });
    let accounts = walk(&read, "/api/v1/users/1/torrents", 10);
    assert_eq!(accounts[0]["figures"]["uploaded"], expected);
    assert_eq!(accounts[0]["figures"]["credited_uploaded"], expected);
    let torrent = read.get(&format!("/api/v1/torrents/{}", info_hash(1))).ok();
    assert_eq!(
        (&torrent["figures"]["uploaded"], &torrent["figures"]["downloaded"]),
        (&expected.into(), &"6".into())
    );
}
