//! The commands for `curl` and `redis-cli`.

use serde_json::Value as Json;
use testkit::{Fsync, RedisCluster, RedisSentinel, RedisServer, Server, eventually, eventually_equal};

use crate::sandbox::{BINARY, PATIENCE, command, make, paste, pasted};

fn with_redis(url: &str) -> Server {
    Server::builder(BINARY)
        .set("redis.url", format!("\"{url}\""))
        .set("tracker.min_announce_interval_s", 0)
        .start()
}

#[test]
fn w9_curl_announces_scrapes_and_leaves() {
    let server = Server::builder(BINARY).start();
    let sandbox = make(&server, &[]);
    let seeder = pasted(&sandbox, "announce_seeder");
    assert!(seeder.contains("8:completei1e") && seeder.contains("8:interval"), "{seeder}");
    let leecher = pasted(&sandbox, "announce_leecher");
    assert!(leecher.contains("10:incompletei1e") && leecher.contains("5:peers6:"), "{leecher}");
    let scrape = pasted(&sandbox, "scrape");
    assert!(scrape.contains("8:completei1e") && scrape.contains("10:incompletei1e"), "{scrape}");
    pasted(&sandbox, "stop_leecher");
    pasted(&sandbox, "stop_seeder");
    let scrape = pasted(&sandbox, "scrape");
    assert!(scrape.contains("8:completei0e") && scrape.contains("10:incompletei0e"), "{scrape}");
    let names: Vec<&str> =
        sandbox["commands"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"xadd"), "without Redis there is nothing for redis-cli: {names:?}");
    assert!(pasted(&sandbox, "account").contains("passkey"));
}

#[test]
fn w9_redis_cli_reads_and_writes_as_a_site_would() {
    let redis = RedisServer::builder().append_only(Fsync::EverySecond).start();
    let server = with_redis(&redis.url());
    let sandbox = make(&server, &[]);
    assert_eq!(pasted(&sandbox, "sismember").trim(), "1");
    assert_eq!(pasted(&sandbox, "xgroup_create").trim(), "OK");
    pasted(&sandbox, "xadd");
    let read = pasted(&sandbox, "xreadgroup");
    let passkey = sandbox["users"][0]["passkey"].as_str().unwrap();
    assert!(read.contains(passkey) && read.contains("1048576"), "{read}");
    assert_eq!(pasted(&sandbox, "xgroup_destroy").trim(), "1");
    // What was written counts, as that of any tracker does.
    eventually_equal(Json::from("1048576"), PATIENCE, || {
        server.cli(&["user", "show", "900000001"])["uploaded"].clone()
    });
    let info_hash = sandbox["torrents"][0]["infohash"].as_str().unwrap();
    eventually("the torrent to be in the list", PATIENCE, || {
        pasted(&sandbox, "zrevrange").contains(info_hash).then_some(())
    });
}

#[test]
fn w9_clearing_also_clears_redis() {
    let redis = RedisServer::builder().append_only(Fsync::EverySecond).start();
    let server = with_redis(&redis.url());
    redis.cli(&["SADD", "pt:passkeys", "00000000000000000000000000000001"]);
    let sandbox = make(&server, &[]);
    pasted(&sandbox, "xgroup_create");
    assert_eq!(redis.cli(&["SCARD", "pt:passkeys"]), "3");
    server.cli(&["sandbox", "clear"]);
    assert_eq!(redis.cli(&["SMEMBERS", "pt:passkeys"]), "00000000000000000000000000000001");
    assert!(!redis.cli(&["XINFO", "GROUPS", "tracker:traffic"]).contains("sandbox"));
}

#[test]
fn w9_a_redis_password_is_not_printed() {
    let redis = RedisServer::builder().append_only(Fsync::EverySecond).password("geheim").start();
    let server = with_redis(&redis.url());
    let sandbox = make(&server, &[]);
    assert!(!sandbox.to_string().contains("geheim"));
    assert!(sandbox.to_string().contains("REDISCLI_AUTH"));
    let output = paste(&format!("export REDISCLI_AUTH=geheim\n{}", command(&sandbox, "sismember")));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1");
}

#[test]
fn w9_the_same_works_on_a_cluster() {
    let cluster = RedisCluster::start_with(&RedisServer::builder().append_only(Fsync::EverySecond), 0);
    let server = with_redis(&format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port()));
    let sandbox = make(&server, &[]);
    assert_eq!(pasted(&sandbox, "sismember").trim(), "1");
    assert_eq!(pasted(&sandbox, "xgroup_create").trim(), "OK");
    pasted(&sandbox, "xadd");
    assert!(pasted(&sandbox, "xreadgroup").contains("1048576"));
    let info_hash = sandbox["torrents"][0]["infohash"].as_str().unwrap();
    eventually("the torrent to be in the list", PATIENCE, || {
        pasted(&sandbox, "zrevrange").contains(info_hash).then_some(())
    });
    server.cli(&["sandbox", "clear"]);
    assert_eq!(cluster.cli(&["SCARD", "pt:passkeys"]), "0");
}

#[test]
fn w9_the_same_works_with_sentinels() {
    let sentinels = RedisSentinel::start();
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", sentinels.sentinel_port(), sentinels.master_name());
    let server = with_redis(&url);
    let sandbox = make(&server, &[]);
    assert_eq!(pasted(&sandbox, "sismember").trim(), "1");
    pasted(&sandbox, "xadd");
}
